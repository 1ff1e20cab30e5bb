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
    // Buffers are freed by the collection after the one that found them unused, too.
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    if (heapUsed + arrayBuffers > used - 100_000) return heapUsed;
    used = heapUsed + arrayBuffers;
  }
}
