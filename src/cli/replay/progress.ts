import type { Output } from '../program';

/** Milliseconds between two lines of progress. */
const INTERVAL = 100;
const WIDTH = 30;

/** A line on a terminal that is written over and over. On anything else, nothing is written. */
export class Progress {
  readonly #output: Output;
  #shown = performance.now();

  constructor(output: Output) {
    this.#output = output;
  }

  /** @param part of the whole, from 0 to 1; undefined when that is not known */
  update(part: number | undefined, lines: number): void {
    if (this.#output.isTTY !== true || performance.now() - this.#shown < INTERVAL) return;
    this.#shown = performance.now();
    const done = Math.round(Math.min(1, part ?? 0) * WIDTH);
    const bar = part === undefined ? '' : `[${'#'.repeat(done).padEnd(WIDTH, '-')}] ${Math.round(part * 100)} %, `;
    this.#output.write(`\r${bar}${lines} lines\u001b[K`);
  }

  end(): void {
    if (this.#output.isTTY === true) this.#output.write('\r\u001b[K');
  }
}
