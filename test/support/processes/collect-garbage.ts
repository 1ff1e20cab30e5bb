import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects all garbage of this process, or with `minor` only that among young objects. */
export const collectGarbage = runInNewContext('gc') as (options?: { readonly type: 'minor' }) => void;

/**
 * Bytes of the heap in use after garbage collections, of which there are several: what a context of an ended test held
 * is freed by the collection after the one that found it unused.
 */
export function heapAfterCollection(): number {
  let used = Infinity;
  for (;;) {
    collectGarbage();
    const { heapUsed } = process.memoryUsage();
    if (heapUsed > used - 100_000) return heapUsed;
    used = heapUsed;
  }
}
