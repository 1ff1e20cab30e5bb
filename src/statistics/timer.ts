/** Receives the samples of a timer in batches. */
export interface SampleRecorder {
  /** Adds the first `count` of the values, in milliseconds; the array is reused afterwards. */
  add(values: Float64Array, count: number): void;
}

/** A worker sends each batch to the primary, which costs both more than what is in it. */
const BATCH_SIZE = 4_096;

/**
 * Durations of one kind, in milliseconds. To record one costs no more than an assignment, because timers are on the
 * decision path. The recorders receive the samples in batches.
 */
export class Timer {
  readonly #batch = new Float64Array(BATCH_SIZE);
  #count = 0;
  readonly #recorders: SampleRecorder[] = [];

  constructor(readonly name: string) {}

  record(milliseconds: number): void {
    this.#batch[this.#count] = milliseconds;
    this.#count += 1;
    if (this.#count === BATCH_SIZE) this.flush();
  }

  /** Records the first `count` of the values, in milliseconds; the array may be reused afterwards. */
  recordAll(values: Float64Array, count: number): void {
    this.flush();
    for (const recorder of this.#recorders) recorder.add(values, count);
  }

  /** Passes all samples recorded from now on to the recorder. */
  addRecorder(recorder: SampleRecorder): void {
    this.flush();
    this.#recorders.push(recorder);
  }

  /** Passes the pending samples to the recorders; to be called before a recorder is read. */
  flush(): void {
    const count = this.#count;
    if (count === 0) return;
    this.#count = 0;
    for (const recorder of this.#recorders) recorder.add(this.#batch, count);
  }
}
