import { MAX_31_BITS } from './protocol';
import type { Stream } from './stream';

/** How a stream was closed, which determines how later frames on it are treated (RFC 9113, section 5.1). */
export const Closing = {
  UNKNOWN: 0,
  /** Both sides sent END_STREAM. */
  ENDED: 1,
  /** The peer reset it. */
  RESET_BY_PEER: 2,
  /** We reset or ignored it: frames that the peer had already sent are not its fault. */
  RESET_BY_US: 3,
} as const;
export type Closing = (typeof Closing)[keyof typeof Closing];

const FIRST_SLOTS = 16;
const REMEMBERED = 128;

/**
 * The streams of a connection by their id: those that are open, those that were closed most recently, and what an id
 * says about all others (RFC 9113, section 5.1.1).
 *
 * The open ones are a hash table of slots, each a list of streams. Not a `Map`: V8 replaces the table of a map when as
 * many entries have been deleted as fit into it. The replaced table keeps its last entries and refers to the next one.
 * If a full garbage collection finds it in use, it is old from then on; it, and with it every later table and the calls
 * in them, are kept until the next full collection, and each collection of young objects takes four to nine times as
 * long (measured at 07ebbcd).
 */
export class StreamTable {
  /** The number of open streams. */
  size = 0;
  #slots: (Stream | undefined)[] = emptySlots(FIRST_SLOTS);
  /** The streams that were closed last, in a ring buffer: memory does not grow with the streams of a connection. */
  #closedIds: Uint32Array | undefined;
  #closings: Closing[] = [];
  #nextClosed = 0;
  #highest = 0;
  /** The last stream identifier in the final GOAWAY, once it has been sent. */
  #lastAccepted = MAX_31_BITS;

  // ---------------------------------------------------------------- open streams

  get(id: number): Stream | undefined {
    const slots = this.#slots;
    let stream = slots[(id >> 1) & (slots.length - 1)];
    while (stream !== undefined && stream.id !== id) stream = stream.next;
    return stream;
  }

  /** Adds a stream whose id is not among the open ones. */
  add(stream: Stream): void {
    this.size += 1;
    if (this.size > this.#slots.length) {
      const present = this.list();
      this.#slots = emptySlots(this.#slots.length * 2);
      for (const each of present) this.#put(each);
    }
    this.#put(stream);
  }

  delete(stream: Stream): void {
    const slots = this.#slots;
    const slot = (stream.id >> 1) & (slots.length - 1);
    let before = slots[slot];
    if (before === stream) slots[slot] = stream.next;
    else {
      while (before !== undefined && before.next !== stream) before = before.next;
      if (before === undefined) return;
      before.next = stream.next;
    }
    // A closed stream that is still referred to must not keep others.
    stream.next = undefined;
    this.size -= 1;
  }

  clear(): void {
    for (const stream of this.list()) stream.next = undefined;
    this.#slots.fill(undefined);
    this.size = 0;
  }

  /** The open streams, in no order; the list stays as it is when streams close. */
  list(): readonly Stream[] {
    const streams: Stream[] = [];
    for (const first of this.#slots) {
      for (let stream = first; stream !== undefined; stream = stream.next) streams.push(stream);
    }
    return streams;
  }

  #put(stream: Stream): void {
    const slots = this.#slots;
    const slot = (stream.id >> 1) & (slots.length - 1);
    stream.next = slots[slot];
    slots[slot] = stream;
  }

  // ---------------------------------------------------------------- ids

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

  /** The peer opens this stream. It and all lower ones are no longer idle. */
  opened(id: number): void {
    this.#highest = id;
  }

  /** The final GOAWAY is sent: streams opened from now on are ignored. */
  stopAccepting(): void {
    this.#lastAccepted = this.#highest;
  }

  // ---------------------------------------------------------------- recently closed streams

  /** How a stream that is not open was closed; {@link Closing.UNKNOWN} if it is not remembered. */
  closingOf(id: number): Closing {
    const position = this.#closedIds?.indexOf(id) ?? -1;
    return this.#closings[position] ?? Closing.UNKNOWN;
  }

  /** A stream is closed, or was before and is reset now. */
  closed(id: number, closing: Closing): void {
    this.#closedIds ??= new Uint32Array(REMEMBERED);
    this.#closedIds[this.#nextClosed] = id;
    this.#closings[this.#nextClosed] = closing;
    this.#nextClosed = (this.#nextClosed + 1) % REMEMBERED;
  }

  /** A stream that was already closed has been reset: later frames on it are ignored. */
  closedReset(id: number): void {
    const position = this.#closedIds?.indexOf(id) ?? -1;
    if (position < 0) this.closed(id, Closing.RESET_BY_US);
    else this.#closings[position] = Closing.RESET_BY_US;
  }
}

function emptySlots(length: number): undefined[] {
  return Array.from<undefined>({ length });
}
