import { RULE_STATS } from './rule-statistics';
import type { Statistics } from './statistics';
import { NO_TAGS, type Tags } from './tags';

/** The growth of a counter since its last confirmed value. */
export interface Change {
  /** Without tags. */
  readonly name: string;
  readonly tags: Tags;
  readonly delta: number;
}

/** How many statistics may be examined for each change that a batch has room for. */
const EXAMINED_PER_CHANGE = 8;

/**
 * The changes of all counters since they were last confirmed, for outputs that send deltas. Only the last confirmed value of each
 * counter is stored: while an output cannot send, memory does not grow and the next deltas become larger.
 */
export class Changes {
  readonly #statistics: Statistics;
  /** Confirmed values by index of `Statistics.counters`. */
  readonly #counters: number[] = [];
  /** Confirmed values by index of `Statistics.rules` and, within it, of `RULE_STATS`. */
  readonly #rules: number[] = [];
  /** The last batch that was yielded. */
  #batch = new Batch();

  constructor(statistics: Statistics) {
    this.#statistics = statistics;
  }

  /**
   * All changes incrementally, slightly more than `size` at most per batch, so that other work can run in between. A batch is
   * confirmed when the next one is requested. If the caller leaves the loop, the last batch is not confirmed, except for what
   * {@link confirmFirst} confirms.
   */
  *batches(size: number): Generator<readonly Change[], void, void> {
    const { counters, rules } = this.#statistics;
    let batch = (this.#batch = new Batch());
    for (let index = 0; index < counters.length; index += 1) {
      const { name, tags, value } = counters[index] as (typeof counters)[number];
      const delta = batch.examine(this.#counters, index, value);
      if (delta !== 0) batch.changes.push({ name, tags, delta });
      if (batch.isFull(size)) {
        yield batch.changes;
        batch.confirm();
        batch = this.#batch = new Batch();
      }
    }
    for (let index = 0; index < rules.length; index += 1) {
      const rule = rules[index] as (typeof rules)[number];
      let position = index * RULE_STATS.length;
      for (const [stat, field] of RULE_STATS) {
        const delta = batch.examine(this.#rules, position, rule[field]);
        if (delta !== 0) batch.changes.push({ name: `${rule.name}.${stat}`, tags: NO_TAGS, delta });
        position += 1;
      }
      if (batch.isFull(size)) {
        yield batch.changes;
        batch.confirm();
        batch = this.#batch = new Batch();
      }
    }
    if (batch.changes.length > 0) {
      yield batch.changes;
      batch.confirm();
    }
  }

  /** Confirms the first changes of the last batch, for a caller that leaves the loop after sending only these. */
  confirmFirst(count: number): void {
    this.#batch.confirm(count);
  }
}

/** Changes, and where to store their values when they are confirmed. */
class Batch {
  readonly changes: Change[] = [];
  readonly #confirmed: number[][] = [];
  readonly #positions: number[] = [];
  readonly #values: number[] = [];
  #examined = 0;

  /** Returns the difference to the confirmed value at this position, and notes the value when there is one. */
  examine(confirmed: number[], position: number, value: number): number {
    this.#examined += 1;
    const before = confirmed[position];
    if (before === undefined) confirmed[position] = 0;
    const delta = value - (before ?? 0);
    if (delta === 0) return 0;
    this.#confirmed.push(confirmed);
    this.#positions.push(position);
    this.#values.push(value);
    return delta;
  }

  isFull(size: number): boolean {
    return this.changes.length >= size || this.#examined >= size * EXAMINED_PER_CHANGE;
  }

  confirm(count = this.#positions.length): void {
    for (let at = 0; at < count; at += 1) {
      (this.#confirmed[at] as number[])[this.#positions[at] as number] = this.#values[at] as number;
    }
  }
}
