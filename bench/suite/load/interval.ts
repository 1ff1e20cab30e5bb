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
  /** Calls in flight at the end, and at the beginning. */
  readonly outstanding: number;
  readonly outstandingBefore: number;
  readonly latency: Latency;
  /** How much later than due calls were written. It is part of their latency. */
  readonly lag: Latency;
  /** The share of the time in which the generator's event loop was busy. */
  readonly busy: number;
}

/** Records the calls of one interval. */
export class IntervalRecorder {
  readonly #begun = performance.now();
  readonly #loop = performance.eventLoopUtilization();
  readonly #outstandingBefore: number;
  readonly #latency = new Histogram();
  readonly #lag = new Histogram();
  readonly #codes = [0, 0, 0, 0];
  sent = 0;
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
    this.#latency.add((now - due) * 1_000);
  }

  failed(): void {
    this.#failed += 1;
  }

  finish(outstanding: number): Interval {
    return {
      seconds: (performance.now() - this.#begun) / 1_000,
      sent: this.sent,
      codes: this.#codes,
      failed: this.#failed,
      outstanding,
      outstandingBefore: this.#outstandingBefore,
      latency: summary(this.#latency),
      lag: summary(this.#lag),
      busy: performance.eventLoopUtilization(this.#loop).utilization,
    };
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

/** Values below this are counted exactly, others by their seven leading bits. */
const EXACT = 128;
const PER_OCTAVE = EXACT / 2;
const OCTAVES = 26;

/** Counts whole numbers, here latencies in µs, in buckets whose relative width is below 1.6 %. */
export class Histogram {
  readonly #counts = new Float64Array(EXACT + PER_OCTAVE * OCTAVES);
  #count = 0;
  #max = 0;

  get count(): number {
    return this.#count;
  }

  add(value: number): void {
    const whole = value > 0 ? value | 0 : 0;
    const shift = whole < EXACT ? 0 : 25 - Math.clz32(whole);
    this.#counts[shift * PER_OCTAVE + (whole >> shift)]! += 1;
    this.#count += 1;
    if (whole > this.#max) this.#max = whole;
  }

  /** The value that this share of all values does not exceed; 0 without values. */
  at(share: number): number {
    const rank = Math.ceil(this.#count * share);
    let passed = 0;
    for (let bucket = 0; bucket < this.#counts.length && rank > 0; bucket += 1) {
      passed += this.#counts[bucket]!;
      if (passed >= rank) return Math.min(this.#max, middleOf(bucket));
    }
    return this.#max;
  }

  get max(): number {
    return this.#max;
  }
}

function middleOf(bucket: number): number {
  if (bucket < EXACT) return bucket;
  const shift = Math.floor(bucket / PER_OCTAVE) - 1;
  return ((bucket - shift * PER_OCTAVE) << shift) + ((1 << shift) - 1) / 2;
}
