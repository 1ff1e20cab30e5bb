import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects all garbage of this process, or with `minor` only that among young objects. */
export const collectGarbage = runInNewContext('gc') as (options?: { readonly type: 'minor' }) => void;

/** Bytes of the heap in use after a garbage collection. */
export function heapAfterCollection(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
