import type { Output } from './program';

/** Between two writes. */
const INTERVAL_MS = 100;

/** A line on a terminal that is written over and over. On anything else, nothing is written. */
export class Progress {
  readonly #output: Output;
  #shown = performance.now();

  constructor(output: Output) {
    this.#output = output;
  }

  update(text: () => string): void {
    if (this.#output.isTTY !== true || performance.now() - this.#shown < INTERVAL_MS) return;
    this.#shown = performance.now();
    this.#output.write(`\r${text()}\u001b[K`);
  }

  end(): void {
    if (this.#output.isTTY === true) this.#output.write('\r\u001b[K');
  }
}
