const FREE = -1;
/** The code of a call without a response. */
export const NO_CODE = 255;

/**
 * The calls in flight on one connection, by their order on it: their number, when they were due, and the code of their
 * response.
 */
export class CallTable {
  #numbers = new Float64Array(1_024).fill(FREE);
  #dues = new Float64Array(1_024);
  #codes = new Uint8Array(1_024);
  #first = 0;
  #next = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The order of the next call. */
  get next(): number {
    return this.#next;
  }

  add(number: number, due: number): void {
    if (this.#next - this.#first === this.#numbers.length) this.#grow();
    const slot = this.#next & (this.#numbers.length - 1);
    this.#numbers[slot] = number;
    this.#dues[slot] = due;
    this.#codes[slot] = NO_CODE;
    this.#next += 1;
    this.#size += 1;
  }

  /** The number of a call; negative when it is not in flight. */
  number(order: number): number {
    if (order < this.#first || order >= this.#next) return FREE;
    return this.#numbers[order & (this.#numbers.length - 1)]!;
  }

  due(order: number): number {
    return this.#dues[order & (this.#numbers.length - 1)]!;
  }

  code(order: number): number {
    return this.#codes[order & (this.#codes.length - 1)]!;
  }

  setCode(order: number, code: number): void {
    this.#codes[order & (this.#codes.length - 1)] = code;
  }

  remove(order: number): void {
    const mask = this.#numbers.length - 1;
    this.#numbers[order & mask] = FREE;
    this.#size -= 1;
    while (this.#first < this.#next && this.#numbers[this.#first & mask] === FREE) this.#first += 1;
  }

  /** Removes the calls from this order on. */
  removeFrom(order: number, onRemoved: (number: number, due: number) => void): void {
    for (let at = Math.max(order, this.#first); at < this.#next; at += 1) {
      const number = this.number(at);
      if (number === FREE) continue;
      const due = this.due(at);
      this.remove(at);
      onRemoved(number, due);
    }
  }

  #grow(): void {
    const [numbers, dues, codes] = [this.#numbers, this.#dues, this.#codes];
    this.#numbers = new Float64Array(numbers.length * 2).fill(FREE);
    this.#dues = new Float64Array(dues.length * 2);
    this.#codes = new Uint8Array(codes.length * 2);
    for (let order = this.#first; order < this.#next; order += 1) {
      const [from, to] = [order & (numbers.length - 1), order & (this.#numbers.length - 1)];
      this.#numbers[to] = numbers[from]!;
      this.#dues[to] = dues[from]!;
      this.#codes[to] = codes[from]!;
    }
  }
}
