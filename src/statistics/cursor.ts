import { RULE_COUNTS, RULE_STATS, type RuleStatistics } from './rule-statistics';
import type { Statistics } from './statistics';
import { NO_TAGS, type Tags } from './tags';

type Counts = readonly (typeof RULE_COUNTS)[number][];

/** How many counters and rules are examined for each change that a batch has room for. */
const EXAMINED_PER_CHANGE = 8;
/** Positions of a block, a multiple of the statistics of a rule. */
const BLOCK = 512 * RULE_STATS.length * RULE_COUNTS.length;

/**
 * A counter or a statistic of a rule that has grown since it was taken last; or a new counter, which may still be 0.
 */
export interface Change {
  /** Without tags; of a rule, with the name of the statistic. */
  readonly name: string;
  readonly tags: Tags;
  readonly delta: number;
  readonly value: number;
  /** The statistics of the rule that it is one of; undefined for a counter. */
  readonly rule: RuleStatistics | undefined;
  /** The index in `Statistics.counters`; of a rule, that in its counts, after those of all rules before. */
  readonly position: number;
}

/**
 * What one reader of the counters has taken of them: only the last value of each, so that the memory does not grow, and
 * the next deltas become larger, while a reader cannot go on.
 */
export class Cursor {
  readonly #statistics: Statistics;
  readonly #counts: Counts;
  readonly #counters: number[] = [];
  /** By position, in blocks: an array of millions of numbers would be copied whenever it grows. */
  readonly #rules: Float64Array[] = [];

  /** @param counts which ones of rules it reads */
  constructor(statistics: Statistics, counts: Counts = RULE_STATS) {
    this.#statistics = statistics;
    this.#counts = counts;
  }

  /**
   * All changes since they were taken, slightly more than `size` at most per batch, so that other work can run in
   * between; a batch may be empty. What is not passed to {@link take} is returned again the next time.
   */
  *changes(size: number): Generator<readonly Change[], void, void> {
    const { counters, rules } = this.#statistics;
    const [ofCounters, ofRules] = [counters.length, rules.length];
    let batch: Change[] = [];
    for (let index = 0; index < ofCounters + ofRules; index += 1) {
      if (index < ofCounters) this.#examineCounter(index, batch);
      else this.#examineRule(index - ofCounters, batch);
      if (batch.length < size && (index + 1) % (size * EXAMINED_PER_CHANGE) !== 0) continue;
      yield batch;
      batch = [];
    }
    yield batch;
  }

  take(changes: readonly Change[]): void {
    for (const { rule, position, value } of changes) {
      if (rule === undefined) this.#counters[position] = value;
      else this.#block(position)[position % BLOCK] = value;
    }
  }

  #examineCounter(index: number, changes: Change[]): void {
    const counter = this.#statistics.counters[index] as Statistics['counters'][number];
    const { name, tags, value } = counter;
    const before = this.#counters[index];
    if (value === before) return;
    changes.push({ name, tags, delta: value - (before ?? 0), value, rule: undefined, position: index });
  }

  #examineRule(index: number, changes: Change[]): void {
    const rule = this.#statistics.rules[index] as RuleStatistics;
    let position = index * this.#counts.length;
    const block = this.#block(position);
    for (const [stat, field] of this.#counts) {
      const before = block[position % BLOCK] as number;
      const value = rule[field];
      if (value !== before) {
        changes.push({ name: `${rule.name}.${stat}`, tags: NO_TAGS, delta: value - before, value, rule, position });
      }
      position += 1;
    }
  }

  #block(position: number): Float64Array {
    return (this.#rules[Math.floor(position / BLOCK)] ??= new Float64Array(BLOCK));
  }
}
