import { setFlagsFromString } from 'node:v8';

/**
 * Makes V8 collect its young objects on one thread. Few of them are alive when that happens, so that the work takes a fraction of a
 * millisecond, and by default V8 shares it with helper threads: when the cores are busy, the event loop stands still until each of
 * them has had its turn (measured at 49038a6).
 */
export function collectOnOneThread(): void {
  setFlagsFromString('--no-parallel-scavenge');
}
