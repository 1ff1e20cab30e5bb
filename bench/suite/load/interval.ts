import { Histogram } from './histogram';

/** Milliseconds of one step of {@link Interval.timeline}. */
export const STEP = 100;

/** Calls that were due in one step of time. */
export interface Step {
  readonly answered: number;
  readonly failed: number;
  /** The longest latency, in ms. */
  readonly worst: number;
}

export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** What became of the calls between two marks. Latencies are in ms and count from the time at which a call was due. */
export interface Interval {
  readonly seconds: number;
  /** Calls that were due. */
  readonly sent: number;
  /** Answers by their overall code: UNKNOWN, OK, OVER_LIMIT, others. */
  readonly codes: readonly number[];
  readonly failed: number;
  /** Calls that a server returned unprocessed, and that were sent again. */
  readonly returned: number;
  /** Calls in flight at the end, and at the beginning. */
  readonly outstanding: number;
  readonly outstandingBefore: number;
  readonly latency: Latency;
  /** How much later than due calls were written. It is part of their latency. */
  readonly lag: Latency;
  /** The share of the time in which the generator's event loop was busy. */
  readonly busy: number;
  /** CPU time of the generator, in µs. */
  readonly cpu: number;
  readonly timeline: readonly Step[];
}

/** Records the calls of one interval. */
export class IntervalRecorder {
  readonly #begun = performance.now();
  readonly #loop = performance.eventLoopUtilization();
  readonly #cpu = process.cpuUsage();
  readonly #outstandingBefore: number;
  readonly #latency = new Histogram();
  readonly #lag = new Histogram();
  readonly #codes = [0, 0, 0, 0];
  readonly #steps: { answered: number; failed: number; worst: number }[] = [];
  sent = 0;
  returned = 0;
  #failed = 0;

  constructor(outstanding: number) {
    this.#outstandingBefore = outstanding;
  }

  get answers(): number {
    return this.#latency.count;
  }

  late(milliseconds: number): void {
    this.#lag.add(milliseconds * 1_000);
  }

  answered(code: number, due: number, now: number): void {
    this.#codes[Math.min(code, 3)]! += 1;
    const latency = now - due;
    this.#latency.add(latency * 1_000);
    const step = this.#stepOf(due);
    step.answered += 1;
    if (latency > step.worst) step.worst = latency;
  }

  failed(due: number): void {
    this.#failed += 1;
    this.#stepOf(due).failed += 1;
  }

  finish(outstanding: number): Interval {
    const { user, system } = process.cpuUsage(this.#cpu);
    return {
      seconds: (performance.now() - this.#begun) / 1_000,
      sent: this.sent,
      codes: this.#codes,
      failed: this.#failed,
      returned: this.returned,
      outstanding,
      outstandingBefore: this.#outstandingBefore,
      latency: summary(this.#latency),
      lag: summary(this.#lag),
      busy: performance.eventLoopUtilization(this.#loop).utilization,
      cpu: user + system,
      timeline: this.#steps.map(({ answered, failed, worst }) => ({ answered, failed, worst })),
    };
  }

  #stepOf(due: number): { answered: number; failed: number; worst: number } {
    // A call that was due before the interval counts in its first step.
    const at = Math.max(0, Math.floor((due - this.#begun) / STEP));
    while (this.#steps.length <= at) this.#steps.push({ answered: 0, failed: 0, worst: 0 });
    return this.#steps[at]!;
  }
}

/** In ms. */
function summary(histogram: Histogram): Latency {
  return {
    p50: histogram.at(0.5) / 1_000,
    p99: histogram.at(0.99) / 1_000,
    p999: histogram.at(0.999) / 1_000,
    max: histogram.max / 1_000,
  };
}
