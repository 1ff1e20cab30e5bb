import { setPriority } from 'node:os';

/** A nice value: a quarter of a core for the thread where the one that decides wants all of it, so that it ends all the same. */
const PRIORITY = 5;

/**
 * Called in a thread: where it and the thread that decides want the same core, the one that decides goes first. Only Linux
 * knows priorities of single threads.
 */
export function lowerPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(PRIORITY);
  } catch {
    // Where that is refused, the system shares the cores out evenly.
  }
}
