/** How a stream ended; what a late frame on it means depends on that (RFC 9113, section 5.1). */
export const Ending = {
  UNKNOWN: 0,
  /** Both sides sent END_STREAM. */
  ENDED: 1,
  /** The peer reset it. */
  RESET_BY_PEER: 2,
  /** We reset or ignored it: what the peer had sent by then is no fault of its. */
  RESET_BY_US: 3,
} as const;
export type Ending = (typeof Ending)[keyof typeof Ending];

const REMEMBERED = 128;

/** The streams that closed last, in a ring: memory does not grow with the streams a connection has seen. */
export class ClosedStreams {
  #ids: Uint32Array | undefined;
  #endings: Ending[] | undefined;
  #next = 0;

  /** `id` has not closed before, as far as this remembers. */
  add(id: number, ending: Ending): void {
    this.#ids ??= new Uint32Array(REMEMBERED);
    this.#endings ??= Array.from({ length: REMEMBERED }, () => Ending.UNKNOWN);
    this.#ids[this.#next] = id;
    this.#endings[this.#next] = ending;
    this.#next = (this.#next + 1) % REMEMBERED;
  }

  /** We reset a stream that had closed before: what follows on it is to be ignored. */
  markReset(id: number): void {
    const position = this.#ids?.indexOf(id) ?? -1;
    if (position < 0) this.add(id, Ending.RESET_BY_US);
    else this.#endings![position] = Ending.RESET_BY_US;
  }

  /** {@link Ending.UNKNOWN} for a stream forgotten, or never opened. */
  endingOf(id: number): Ending {
    const position = this.#ids?.indexOf(id) ?? -1;
    return this.#endings?.[position] ?? Ending.UNKNOWN;
  }
}
