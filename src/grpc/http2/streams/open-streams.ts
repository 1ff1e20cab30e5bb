import type { Stream } from './stream';

// Looked up once: in the contexts of Jest, each use of `Math` costs as much as the search of a stream.
const { clz32, imul } = Math;

const FIRST_SLOTS = 16;

/**
 * The open streams of a connection by their id: a hash table with open addressing, of which at most half is used.
 *
 * Not a `Map`: V8 replaces the table of a map when as many entries have been deleted as fit into it. The replaced table keeps its last
 * entries and refers to the next one. If a full garbage collection finds it in use, it is old from then on; it, and with it every later
 * table and the calls in them, are kept until the next full collection, and each collection of young objects takes four to nine times
 * as long (measured at 07ebbcd).
 */
export class OpenStreams<S> {
  #slots: (Stream<S> | undefined)[] = emptySlots(FIRST_SLOTS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Stream<S> | undefined {
    return this.#slots[this.#slotOf(id)];
  }

  /** Adds a stream whose id is not among the present ones. */
  add(stream: Stream<S>): void {
    this.#size += 1;
    if (this.#size * 2 > this.#slots.length) this.#grow();
    this.#put(stream);
  }

  delete(id: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let empty = this.#slotOf(id);
    if (slots[empty] === undefined) return;
    this.#size -= 1;
    // Those after it move up, so that no search for them ends at the empty slot.
    for (let slot = (empty + 1) & mask; ; slot = (slot + 1) & mask) {
      const stream = slots[slot];
      if (stream === undefined) break;
      const distance = (slot - home(stream.id, mask)) & mask;
      if (distance < ((slot - empty) & mask)) continue;
      slots[empty] = stream;
      empty = slot;
    }
    slots[empty] = undefined;
  }

  clear(): void {
    this.#slots.fill(undefined);
    this.#size = 0;
  }

  /** The present streams, in no order; the list stays as it is when streams close. */
  list(): readonly Stream<S>[] {
    return this.#slots.filter((stream) => stream !== undefined);
  }

  #put(stream: Stream<S>): void {
    this.#slots[this.#slotOf(stream.id)] = stream;
  }

  #grow(): void {
    const present = this.#slots;
    this.#slots = emptySlots(present.length * 2);
    for (const stream of present) if (stream !== undefined) this.#put(stream);
  }

  /** The slot of a stream, or the empty one at which the search for it ends. */
  #slotOf(id: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = home(id, mask); ; slot = (slot + 1) & mask) {
      const stream = slots[slot];
      if (stream === undefined || stream.id === id) return slot;
    }
  }
}

function emptySlots(length: number): undefined[] {
  return Array.from<undefined>({ length });
}

/**
 * Spreads ids over the table, by the golden ratio: those of most clients follow one another, and next to one another they would be one
 * long row, of which a deletion has to look at every stream. Ids that are chosen to have the same place are such a row, too, of at most
 * `maxConcurrentStreams`.
 */
function home(id: number, mask: number): number {
  return imul(id, 0x9e37_79b1) >>> clz32(mask);
}
