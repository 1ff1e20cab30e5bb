import { RULE_STATS } from './rule-statistics';
import type { Statistics } from './statistics';
import { NO_TAGS, type Tags } from './tags';

/** What a counter has grown by. */
export interface Change {
  /** Without tags. */
  readonly name: string;
  readonly tags: Tags;
  readonly delta: number;
}

/** How many statistics are looked at for one change that is hoped for. */
const LOOKED_AT = 8;

/**
 * What has moved since it was last taken, for one who sends deltas. Nothing is kept but the last value taken of each
 * counter: while nobody takes anything, memory stays as it is and the next delta becomes larger.
 */
export class Changes {
  readonly #statistics: Statistics;
  readonly #counters: number[] = [];
  readonly #rules: number[] = [];
  /** The last that was given out. */
  #batch = new Batch();

  constructor(statistics: Statistics) {
    this.#statistics = statistics;
  }

  /**
   * The changes by and by, at most some more than `size` at a time, so that other work can go between. A batch counts as
   * taken when the next one is asked for: leaving the loop in the middle leaves its batch for the next time, but for what
   * {@link takeFirst} was told.
   */
  *batches(size: number): Generator<readonly Change[], void, void> {
    const { counters, rules } = this.#statistics;
    let batch = (this.#batch = new Batch());
    for (let index = 0; index < counters.length; index += 1) {
      const { name, tags, value } = counters[index] as (typeof counters)[number];
      batch.look(this.#counters, index, name, tags, '', value);
      if (batch.isFull(size)) {
        yield batch.changes;
        batch.take();
        batch = this.#batch = new Batch();
      }
    }
    for (let index = 0; index < rules.length; index += 1) {
      const rule = rules[index] as (typeof rules)[number];
      let place = index * RULE_STATS.length;
      for (const [stat, field] of RULE_STATS) {
        batch.look(this.#rules, place, rule.name, NO_TAGS, stat, rule[field]);
        place += 1;
      }
      if (batch.isFull(size)) {
        yield batch.changes;
        batch.take();
        batch = this.#batch = new Batch();
      }
    }
    if (batch.changes.length > 0) {
      yield batch.changes;
      batch.take();
    }
  }

  /** Counts the first changes of the batch last given out as taken: for one who leaves the loop with the rest. */
  takeFirst(count: number): void {
    this.#batch.take(count);
  }
}

/** Changes and where they stand among the values taken. */
class Batch {
  readonly changes: Change[] = [];
  readonly #taken: number[][] = [];
  readonly #places: number[] = [];
  readonly #values: number[] = [];
  #looks = 0;

  look(taken: number[], place: number, name: string, tags: Tags, stat: string, value: number): void {
    this.#looks += 1;
    const before = taken[place];
    if (before === undefined) taken[place] = 0;
    const delta = value - (before ?? 0);
    if (delta === 0) return;
    this.changes.push({ name: stat === '' ? name : `${name}.${stat}`, tags, delta });
    this.#taken.push(taken);
    this.#places.push(place);
    this.#values.push(value);
  }

  isFull(size: number): boolean {
    return this.changes.length >= size || this.#looks >= size * LOOKED_AT;
  }

  take(count = this.#places.length): void {
    for (let at = 0; at < count; at += 1) {
      (this.#taken[at] as number[])[this.#places[at] as number] = this.#values[at] as number;
    }
  }
}
