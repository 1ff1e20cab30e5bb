import type { SampleRecorder } from './timer';

/**
 * Bins per octave, a power of two: a bin is at most a sixty-fourth of its value wide, so its middle differs by less
 * than 1 % from every value in it.
 */
const BINS_PER_OCTAVE_LOG2 = 6;
const BINS_PER_OCTAVE = 2 ** BINS_PER_OCTAVE_LOG2;
/**
 * The binary exponent of the first bin's lower end, in milliseconds: 61 ns. Shorter durations are counted in the first
 * bin.
 */
const SHORTEST_LOG2 = -14;
/** The binary exponent of the last bin's upper end: three days. Longer durations are counted in the last bin. */
const LONGEST_LOG2 = 28;
const BINS = (LONGEST_LOG2 - SHORTEST_LOG2) * BINS_PER_OCTAVE;

/** The upper half of a double contains its exponent plus 1023, followed by 20 bits of its fraction. */
const SHIFT = 20 - BINS_PER_OCTAVE_LOG2;
const FIRST = (SHORTEST_LOG2 + 1023) * BINS_PER_OCTAVE;
const DOUBLE = new Float64Array(1);
const HALVES = new Uint32Array(DOUBLE.buffer);
DOUBLE[0] = 1;
const UPPER = HALVES[0] === 0 ? 1 : 0;

/** Counts samples in bins whose width grows with the value, so that every quantile is accurate to 1 %. */
export class QuantileSketch implements SampleRecorder {
  static readonly BYTES = 8 * BINS;
  readonly #bins = new Float64Array(BINS);
  count = 0;
  sum = 0;
  max = 0;

  add(values: Float64Array, count: number): void {
    const bins = this.#bins;
    let { sum, max } = this;
    for (let at = 0; at < count; at += 1) {
      const value = values[at] as number;
      const bin = binOf(value);
      bins[bin] = (bins[bin] as number) + 1;
      sum += value;
      if (value > max) max = value;
    }
    this.sum = sum;
    this.max = max;
    this.count += count;
  }

  /** Adds the samples of another sketch. */
  merge(other: QuantileSketch): void {
    for (let bin = 0; bin < BINS; bin += 1)
      this.#bins[bin] = (this.#bins[bin] as number) + (other.#bins[bin] as number);
    this.count += other.count;
    this.sum += other.sum;
    this.max = Math.max(this.max, other.max);
  }

  /** A sketch of the samples that this one has in addition to an earlier copy of it. The maximum is that of all. */
  without(earlier: QuantileSketch): QuantileSketch {
    const rest = new QuantileSketch();
    for (let bin = 0; bin < BINS; bin += 1)
      rest.#bins[bin] = (this.#bins[bin] as number) - (earlier.#bins[bin] as number);
    rest.count = this.count - earlier.count;
    rest.sum = this.sum - earlier.sum;
    rest.max = this.max;
    return rest;
  }

  /**
   * @param share from 0 to 1
   * @returns NaN if there are no samples
   */
  quantile(share: number): number {
    if (this.count === 0) return Number.NaN;
    const rank = Math.max(1, Math.ceil(share * this.count));
    let below = 0;
    for (let bin = 0; bin < BINS; bin += 1) {
      below += this.#bins[bin] as number;
      if (below >= rank) return Math.min(this.max, middleOf(bin));
    }
    return this.max;
  }
}

/** Uses the bits of the double: a logarithm would cost several times as much. */
function binOf(value: number): number {
  // Zero, negative values, values below the first bin, and NaN.
  if (!(value > 2 ** SHORTEST_LOG2)) return 0;
  DOUBLE[0] = value;
  return Math.min(BINS - 1, ((HALVES[UPPER] as number) >>> SHIFT) - FIRST);
}

function middleOf(bin: number): number {
  const octave = Math.floor(bin / BINS_PER_OCTAVE);
  return 2 ** (SHORTEST_LOG2 + octave) * (1 + ((bin % BINS_PER_OCTAVE) + 0.5) / BINS_PER_OCTAVE);
}
