import { setPriority } from 'node:os';

/** A nice value: next to a main thread that needs a whole core, the thread still gets a quarter of it, and so it finishes. */
const PRIORITY = 5;

/**
 * Lowers the priority of the calling worker thread, so that the main thread, which decides requests, is scheduled first when
 * both need the same core. Only Linux has priorities of single threads; elsewhere this does nothing.
 */
export function lowerPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(PRIORITY);
  } catch {
    // Without the permission both threads have the same priority.
  }
}
