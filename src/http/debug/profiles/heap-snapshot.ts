import { Session } from 'node:inspector/promises';
import { getHeapSnapshot } from 'node:v8';
import type { Context } from 'koa';
import { HttpError } from '../../server/errors';
import { nameFile } from './response';
import { Slot } from './slot';

/**
 * The memory that a snapshot takes, in multiples of the heap. Measured with heaps of 41, 176 and 468 MiB of small objects: 15.1, 16.3
 * and 17.6. It is not on the heap, so that the limit of the heap does not matter.
 */
const MEMORY_FACTOR = 18;
/** For the first guess of when it is worth trying again. */
const USUAL_MS = 10_000;
/** A bound of the rest after a snapshot, for callers that receive it slowly. */
const MAX_REST_MS = 60_000;

/** Snapshots of all objects, in the format of the developer tools of browsers; one at a time. */
export class HeapSnapshots {
  readonly #slot = new Slot('another heap snapshot is being written or was just written; try again later');
  readonly #availableMemory: () => number;

  /** @param availableMemory the bytes that the process can still allocate within the limits of the machine and its control group */
  constructor(availableMemory: () => number) {
    this.#availableMemory = availableMemory;
  }

  /**
   * Responds with a snapshot. When the response has been sent, or the caller has disconnected, as much time as it took must pass
   * before the next one: the process does not respond while a snapshot is made, and requests for others wait meanwhile.
   *
   * @throws {HttpError} while another snapshot is being written, in the rest after it, or if there is not enough memory for one. A
   * request that is rejected causes no rest.
   */
  async respond(ctx: Context): Promise<void> {
    this.#slot.take(USUAL_MS);
    try {
      this.#requireMemory();
    } catch (error) {
      this.#slot.release();
      throw error;
    }
    const began = performance.now();
    ctx.res.once('close', () => this.#slot.release(Math.min(performance.now() - began, MAX_REST_MS)));
    const snapshot = getHeapSnapshot();
    // If the caller disconnects meanwhile, Koa destroys the body that it is given.
    await forgetObjectIds();
    nameFile(ctx, 'heapsnapshot');
    ctx.set('Content-Type', 'application/json');
    ctx.body = snapshot;
  }

  #requireMemory(): void {
    const available = this.#availableMemory();
    const needed = MEMORY_FACTOR * process.memoryUsage().heapUsed;
    if (needed <= available) return;
    throw new HttpError({
      status: 503,
      code: 'out_of_memory',
      message: `a heap snapshot may need ${mebibytes(needed)} MiB of memory, and ${mebibytes(available)} MiB are available`,
      headers: { 'Retry-After': '60' },
    });
  }
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}

/**
 * A snapshot gives every object an id, for comparisons with a later one. V8 would keep these ids and update them whenever the
 * garbage collector moves an object: measured, collections then took more than three times as long for the life of the process.
 */
async function forgetObjectIds(): Promise<void> {
  const session = new Session();
  session.connect();
  try {
    await session.post('HeapProfiler.enable');
    await session.post('HeapProfiler.disable');
  } finally {
    session.disconnect();
  }
}
