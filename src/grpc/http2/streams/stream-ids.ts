import { MAX_31_BITS } from '../protocol';
import { ClosedStreams, type Ending } from './closed-streams';

/** The state of the streams that are not open, derived from their identifiers (RFC 9113, section 5.1.1). */
export class StreamIds {
  readonly closed = new ClosedStreams();
  #highest = 0;
  /** The last stream identifier in the final GOAWAY, once it has been sent. */
  #lastAccepted = MAX_31_BITS;

  /** The last stream identifier for GOAWAY: the highest stream that has been, or may have been, processed. */
  get lastProcessed(): number {
    return Math.min(this.#highest, this.#lastAccepted);
  }

  /** Whether the peer has not opened the stream, or cannot because only a server could. */
  isIdle(id: number): boolean {
    return id > this.#highest || (id & 1) === 0;
  }

  /** Whether the stream is above the last stream identifier in the final GOAWAY, and must be ignored. */
  isAfterGoaway(id: number): boolean {
    return id > this.#lastAccepted;
  }

  /** How a stream that is not open was closed. */
  endingOf(id: number): Ending {
    return this.closed.endingOf(id);
  }

  /** The peer opens this stream. It and all lower ones are no longer idle. */
  open(id: number): void {
    this.#highest = id;
  }

  /** The final GOAWAY is sent: streams opened from now on are ignored. */
  stopAccepting(): void {
    this.#lastAccepted = this.#highest;
  }
}
