import type { CallListener, Connection } from './connection';
import { type Interval, IntervalRecorder } from './interval';
import { Pool, type PoolOptions } from './pool';
import { Ticks } from './ticks';

/** Milliseconds between two moments at which due calls are sent. */
const TICK = 0.25;

export interface GeneratorOptions extends PoolOptions {
  readonly onResponse?: CallListener['onResponse'];
  readonly onFailed?: (number: number, due: number) => void;
}

/**
 * Sends calls in a closed loop, in which each answer is followed by the next call, or in an open loop, in which calls
 * are due at a fixed rate regardless of the answers.
 */
export class Generator {
  readonly #pool: Pool;
  readonly #ticks: Ticks;
  #recorder = new IntervalRecorder(0);
  /** The number of the next call. */
  #next = 0;
  /** Calls that the closed loop may still send. */
  #left = 0;
  #pace = { perSecond: 0, begun: 0, sent: 0 };
  #onIdle: (() => void) | undefined;

  constructor({ onResponse, onFailed, ...options }: GeneratorOptions) {
    this.#pool = new Pool(options, {
      answered: (connection, _number, due, code, now) => this.#answered(connection, due, code, now),
      failed: (number, due) => {
        onFailed?.(number, due);
        this.#failed();
      },
      onResponse,
    });
    this.#ticks = new Ticks(TICK, () => this.#tick());
  }

  open(): Promise<void> {
    return this.#pool.open();
  }

  /** Begins a closed loop of at most this many calls. */
  closed(outstandingPerConnection: number, calls = Infinity): void {
    this.#left = calls;
    const now = performance.now();
    for (const connection of this.#pool.connections) {
      for (let call = 0; call < outstandingPerConnection; call += 1) this.#sendNext(connection, now);
    }
    this.#pool.flush();
  }

  /** Begins an open loop. */
  paced(perSecond: number): void {
    this.#pace = { perSecond, begun: performance.now(), sent: 0 };
    this.#ticks.start();
  }

  /**
   * Sends no further calls. Resolves when those in flight have ended, or after the timeout in ms, with the number in
   * flight.
   */
  async stop(timeout: number): Promise<number> {
    this.#ticks.stop();
    this.#left = 0;
    await this.idle(timeout);
    return this.#pool.outstanding;
  }

  /** Resolves when no call is in flight, or after the timeout in ms. */
  async idle(timeout: number): Promise<void> {
    if (this.#pool.outstanding === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      timer = setTimeout(resolve, timeout);
    });
    clearTimeout(timer);
    this.#onIdle = undefined;
  }

  /** Calls that were answered since the last mark. */
  answers(): number {
    return this.#recorder.answers;
  }

  /** Ends an interval and begins the next one. */
  mark(): Interval {
    const { outstanding } = this.#pool;
    const interval = this.#recorder.finish(outstanding);
    this.#recorder = new IntervalRecorder(outstanding);
    return interval;
  }

  replaceOldestConnection(): Promise<void> {
    return this.#pool.replaceOldest();
  }

  close(): void {
    this.#pool.close();
    this.#ticks[Symbol.dispose]();
  }

  #sendNext(connection: Connection | undefined, due: number): void {
    if (this.#left === 0) return;
    this.#left -= 1;
    this.#recorder.sent += 1;
    if (connection?.isUsable === true) connection.call(this.#next, due);
    else {
      this.#pool.call(this.#next, due);
      // The connection that takes it may be a new one, which has no answers to read.
      this.#pool.flushSoon();
    }
    this.#next += 1;
  }

  #tick(): void {
    const { perSecond, begun, sent } = this.#pace;
    const now = performance.now();
    const due = Math.floor(((now - begun) / 1_000) * perSecond);
    for (let call = sent; call < due; call += 1) {
      const at = begun + (call * 1_000) / perSecond;
      this.#recorder.late(now - at);
      this.#pool.call(this.#next, at);
      this.#next += 1;
    }
    this.#recorder.sent += due - sent;
    this.#pace.sent = due;
    this.#pool.flush();
  }

  #answered(connection: Connection, due: number, code: number, now: number): void {
    this.#recorder.answered(code, due, now);
    // The connection writes it when it has read all answers.
    this.#sendNext(connection, now);
    this.#checkIdle();
  }

  #failed(): void {
    this.#recorder.failed();
    if (this.#left > 0) {
      // The next turn, or a server that rejects every call would keep this loop busy.
      setImmediate(() => this.#sendNext(undefined, performance.now()));
    }
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#onIdle !== undefined && this.#left === 0 && this.#pool.outstanding === 0) this.#onIdle();
  }
}
