import { HttpError } from '../../server/errors';

/** Lets one request at a time do what costs the whole process. */
export class Slot {
  readonly #busy: string;
  #isTaken = false;
  /** When the slot is expected to be free, in milliseconds of `performance.now()`. */
  #freeAt = 0;

  /** @param busy the message for other requests */
  constructor(busy: string) {
    this.#busy = busy;
  }

  /**
   * Takes the slot. The caller must call {@link release} when it is done or its own caller disconnects.
   *
   * @param milliseconds how long the slot will be taken, about
   * @throws {HttpError} with status 429 while another request has it, and while it rests
   */
  take(milliseconds: number): void {
    const now = performance.now();
    const rest = this.#freeAt - now;
    if (this.#isTaken || rest > 0) {
      const seconds = Math.max(1, Math.ceil(rest / 1_000));
      throw new HttpError({
        status: 429,
        code: 'busy',
        message: this.#busy,
        headers: { 'Retry-After': String(seconds) },
      });
    }
    this.#isTaken = true;
    this.#freeAt = now + milliseconds;
  }

  /** @param restMs how long the slot stays closed for the next request */
  release(restMs = 0): void {
    this.#isTaken = false;
    this.#freeAt = performance.now() + restMs;
  }
}
