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
