/** How a stream was closed, which determines how later frames on it are treated (RFC 9113, section 5.1). */
export const Ending = {
  UNKNOWN: 0,
  /** Both sides sent END_STREAM. */
  ENDED: 1,
  /** The peer reset it. */
  RESET_BY_PEER: 2,
  /** We reset or ignored it: frames that the peer had already sent are not its fault. */
  RESET_BY_US: 3,
} as const;
export type Ending = (typeof Ending)[keyof typeof Ending];

const REMEMBERED = 128;

/** The most recently closed streams, in a ring buffer: memory does not grow with the streams of a connection. */
export class ClosedStreams {
  #ids: Uint32Array | undefined;
  #endings: Ending[] | undefined;
  #next = 0;

  /** `id` must not be in the buffer. */
  add(id: number, ending: Ending): void {
    this.#ids ??= new Uint32Array(REMEMBERED);
    this.#endings ??= Array.from({ length: REMEMBERED }, () => Ending.UNKNOWN);
    this.#ids[this.#next] = id;
    this.#endings[this.#next] = ending;
    this.#next = (this.#next + 1) % REMEMBERED;
  }

  /** A stream that was already closed has been reset: later frames on it are ignored. */
  markReset(id: number): void {
    const position = this.#ids?.indexOf(id) ?? -1;
    if (position < 0) this.add(id, Ending.RESET_BY_US);
    else this.#endings![position] = Ending.RESET_BY_US;
  }

  /** {@link Ending.UNKNOWN} if the stream is not in the buffer. */
  endingOf(id: number): Ending {
    const position = this.#ids?.indexOf(id) ?? -1;
    return this.#endings?.[position] ?? Ending.UNKNOWN;
  }
}
