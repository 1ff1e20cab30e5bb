import { NONE } from './clock-windows';

/** A power of two. A page is added in a moment, where a table that doubles would be copied as a whole. */
const PAGE = 1024;
const PAGE_BITS = Math.log2(PAGE);
const IN_PAGE = PAGE - 1;

interface Page {
  /** Empty for a free slot, so that nothing is kept alive. */
  readonly keys: string[];
  readonly next: Int32Array;
}

/**
 * The keys with their counts, each in a slot with a number: objects would take more memory, and more time of the garbage collector.
 * A slot also has the number of another one, so that slots form queues.
 */
export class Slots {
  readonly #counts: Float64Array;
  readonly #pages: Page[] = [];
  #size = 0;
  /** The first of the slots that are free, which form a queue. */
  #free = NONE;

  /** @param most how many slots are in use at most */
  constructor(most: number) {
    // Not in pages, because every hit reads it. The system provides the memory of its parts when they are first used.
    this.#counts = new Float64Array(most);
  }

  /** Takes a slot for a key with the count 0, the last one of its queue. Returns its number. */
  take(key: string): number {
    const slot = this.#free === NONE ? this.#add() : this.#free;
    const page = this.#pageOf(slot);
    const at = slot & IN_PAGE;
    if (slot === this.#free) this.#free = page.next[at] as number;
    page.keys[at] = key;
    this.#counts[slot] = 0;
    page.next[at] = NONE;
    return slot;
  }

  release(slot: number): void {
    const page = this.#pageOf(slot);
    page.keys[slot & IN_PAGE] = '';
    page.next[slot & IN_PAGE] = this.#free;
    this.#free = slot;
  }

  key(slot: number): string {
    return this.#pageOf(slot).keys[slot & IN_PAGE] as string;
  }

  count(slot: number): number {
    return this.#counts[slot] as number;
  }

  setCount(slot: number, count: number): void {
    this.#counts[slot] = count;
  }

  /** The next slot of the queue, or {@link NONE}. */
  next(slot: number): number {
    return this.#pageOf(slot).next[slot & IN_PAGE] as number;
  }

  setNext(slot: number, next: number): void {
    this.#pageOf(slot).next[slot & IN_PAGE] = next;
  }

  #add(): number {
    const slot = this.#size;
    this.#size += 1;
    if ((slot & IN_PAGE) === 0) {
      const keys = new Array<string>(PAGE).fill('');
      this.#pages.push({ keys, next: new Int32Array(PAGE) });
    }
    return slot;
  }

  #pageOf(slot: number): Page {
    return this.#pages[slot >>> PAGE_BITS] as Page;
  }
}
