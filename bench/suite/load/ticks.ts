import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

const [RUNNING, PENDING] = [0, 1];

/**
 * Calls back each period of so many milliseconds, also for periods below the millisecond of the event loop's timers.
 */
export class Ticks implements Disposable {
  readonly #cells = new Int32Array(new SharedArrayBuffer(8));
  readonly #thread: Worker;

  constructor(period: number, onTick: () => void) {
    this.#thread = new Worker(join(__dirname, 'ticks-thread.cjs'), { workerData: { cells: this.#cells, period } });
    this.#thread.on('message', () => {
      Atomics.store(this.#cells, PENDING, 0);
      if (this.#cells[RUNNING] === 1) onTick();
    });
  }

  start(): void {
    Atomics.store(this.#cells, RUNNING, 1);
    Atomics.notify(this.#cells, RUNNING);
  }

  stop(): void {
    Atomics.store(this.#cells, RUNNING, 0);
    Atomics.notify(this.#cells, RUNNING);
  }

  [Symbol.dispose](): void {
    void this.#thread.terminate();
  }
}
