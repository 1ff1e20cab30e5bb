import { gunzip, gunzipSync } from 'node:zlib';
import { INLINE_INFLATION_BYTES, MAX_INFLATIONS, MAX_MESSAGE_BYTES } from '../limits';

export type InflationFailure = 'too large' | 'not gzip';
export type Inflated = (result: Buffer | InflationFailure) => void;

function failureOf(error: unknown): InflationFailure {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'too large' : 'not gzip';
}

/**
 * Inflates messages, never beyond what a message may be. Small ones at once; for large ones a thread does it, a few at a
 * time, so that nobody's compressed megabytes hold up everybody's calls.
 */
export class Inflater {
  #running = 0;
  readonly #queue: { compressed: Buffer; inflated: Inflated }[] = [];

  /** `compressed` must stay as it is until `inflated` is called, now or later. */
  inflate(compressed: Buffer, inflated: Inflated): void {
    if (compressed.length <= INLINE_INFLATION_BYTES) {
      let result: Buffer | InflationFailure;
      try {
        result = gunzipSync(compressed, { maxOutputLength: INLINE_INFLATION_BYTES });
      } catch (error) {
        result = failureOf(error);
      }
      if (result !== 'too large') {
        inflated(result);
        return;
      }
    }
    this.#queue.push({ compressed, inflated });
    this.#next();
  }

  #next(): void {
    if (this.#running >= MAX_INFLATIONS) return;
    const job = this.#queue.shift();
    if (job === undefined) return;
    this.#running += 1;
    gunzip(job.compressed, { maxOutputLength: MAX_MESSAGE_BYTES }, (error, result) => {
      this.#running -= 1;
      job.inflated(error === null ? result : failureOf(error));
      this.#next();
    });
  }
}
