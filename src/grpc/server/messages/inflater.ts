import { gunzip, gunzipSync } from 'node:zlib';
import { MAX_INFLATIONS, MAX_MESSAGE_BYTES, SYNC_INFLATION_BYTES } from '../limits';

export type InflationFailure = 'too large' | 'not gzip';
/** Receives the decompressed message, or why it cannot be decompressed. */
export type InflationCallback = (result: Buffer | InflationFailure) => void;

function failureOf(error: unknown): InflationFailure {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'too large' : 'not gzip';
}

/**
 * Decompresses messages, up to the maximum size of a message. Small messages are decompressed synchronously, large ones in
 * threads and a few at a time, so that they do not block the event loop.
 */
export class Inflater {
  #running = 0;
  readonly #queue: { compressed: Buffer; done: InflationCallback }[] = [];

  /** `done` is called synchronously or later; until then `compressed` must not be modified. */
  inflate(compressed: Buffer, done: InflationCallback): void {
    if (compressed.length <= SYNC_INFLATION_BYTES) {
      let result: Buffer | InflationFailure;
      try {
        result = gunzipSync(compressed, { maxOutputLength: SYNC_INFLATION_BYTES });
      } catch (error) {
        result = failureOf(error);
      }
      if (result !== 'too large') {
        done(result);
        return;
      }
    }
    this.#queue.push({ compressed, done });
    this.#next();
  }

  #next(): void {
    if (this.#running >= MAX_INFLATIONS) return;
    const job = this.#queue.shift();
    if (job === undefined) return;
    this.#running += 1;
    gunzip(job.compressed, { maxOutputLength: MAX_MESSAGE_BYTES }, (error, result) => {
      this.#running -= 1;
      job.done(error === null ? result : failureOf(error));
      this.#next();
    });
  }
}
