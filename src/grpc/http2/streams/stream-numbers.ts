import { ClosedStreams, type Ending } from './closed-streams';
import { MAX_31_BITS } from '../frames/protocol';

/** What the number of a stream tells of it (RFC 9113, section 5.1.1), where it is not one of those open. */
export class StreamNumbers {
  readonly closed = new ClosedStreams();
  #highest = 0;
  /** The last stream that the final GOAWAY promised to serve. */
  #lastPromised = MAX_31_BITS;

  /** The last stream that is served, or may have been, as GOAWAY says it. */
  get lastServed(): number {
    return Math.min(this.#highest, this.#lastPromised);
  }

  /** Above all that the peer has opened, or a number that is not the peer's to open. */
  isIdle(id: number): boolean {
    return id > this.#highest || (id & 1) === 0;
  }

  /** Whether the peer was told, by the final GOAWAY, that this stream is not served. */
  isTooLate(id: number): boolean {
    return id > this.#lastPromised;
  }

  /** How a stream ended that is not open. */
  endingOf(id: number): Ending {
    return this.closed.endingOf(id);
  }

  /** The peer opens this stream: it is idle no more, nor is any below it. */
  use(id: number): void {
    this.#highest = id;
  }

  /** What opens from now on is too late. */
  serveNoMore(): void {
    this.#lastPromised = this.#highest;
  }
}
