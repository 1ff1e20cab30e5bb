import { NONE } from './clock-windows';

/** A power of two. A page is added in a moment, where a table that grows would be copied as a whole. */
const PAGE = 1024;
const PAGE_BITS = Math.log2(PAGE);
const IN_PAGE = PAGE - 1;

/**
 * The keys with their counts, each in a slot with a number: objects would take more memory, and more time of the garbage collector.
 * A slot also has the number of another one, so that slots form queues.
 */
export class Slots {
  // Of their final size: the system provides the memory of their parts when they are first used.
  readonly #counts: Float64Array;
  readonly #next: Int32Array;
  readonly #windowSeconds: Int32Array;
  /** One more than the start of a later window; 0: none. Memory that is never written to is not provided. */
  readonly #laterStarts: Float64Array;
  /** In pages. Empty for a free slot, so that nothing is kept alive. */
  readonly #keys: string[][] = [];
  #size = 0;
  /** The first of the slots that are free, which form a queue. */
  #free = NONE;

  /** @param most how many slots are in use at most */
  constructor(most: number) {
    this.#counts = new Float64Array(most);
    this.#next = new Int32Array(most);
    this.#windowSeconds = new Int32Array(most);
    this.#laterStarts = new Float64Array(most);
  }

  /** Takes a slot for a key with the count 0, the last one of its queue. Returns its number. */
  take(key: string, windowSeconds: number): number {
    const slot = this.#free === NONE ? this.#add() : this.#free;
    if (slot === this.#free) this.#free = this.next(slot);
    this.#setKey(slot, key);
    this.#counts[slot] = 0;
    this.#next[slot] = NONE;
    this.#windowSeconds[slot] = windowSeconds;
    this.setLaterStart(slot, undefined);
    return slot;
  }

  release(slot: number): void {
    this.#setKey(slot, '');
    this.#next[slot] = this.#free;
    this.#free = slot;
  }

  key(slot: number): string {
    return this.#keys[slot >>> PAGE_BITS]![slot & IN_PAGE]!;
  }

  count(slot: number): number {
    return this.#counts[slot] as number;
  }

  setCount(slot: number, count: number): void {
    this.#counts[slot] = count;
  }

  /** The length of the key's window; of the longest one if it counts in several. */
  windowSeconds(slot: number): number {
    return this.#windowSeconds[slot] as number;
  }

  setWindowSeconds(slot: number, windowSeconds: number): void {
    this.#windowSeconds[slot] = windowSeconds;
  }

  /** When a later window begins than that of the slot's queue, in Unix seconds: the one to which the key belongs, if there is one. */
  laterStart(slot: number): number | undefined {
    const stored = this.#laterStarts[slot] as number;
    return stored === 0 ? undefined : stored - 1;
  }

  setLaterStart(slot: number, start: number | undefined): void {
    const stored = start === undefined ? 0 : start + 1;
    if (this.#laterStarts[slot] !== stored) this.#laterStarts[slot] = stored;
  }

  /** The next slot of the queue, or {@link NONE}. */
  next(slot: number): number {
    return this.#next[slot] as number;
  }

  setNext(slot: number, next: number): void {
    this.#next[slot] = next;
  }

  #setKey(slot: number, key: string): void {
    this.#keys[slot >>> PAGE_BITS]![slot & IN_PAGE] = key;
  }

  #add(): number {
    const slot = this.#size;
    this.#size += 1;
    if ((slot & IN_PAGE) === 0) this.#keys.push(new Array<string>(PAGE).fill(''));
    return slot;
  }
}
