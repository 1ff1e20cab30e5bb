import { Counter } from './counter';
import { escapeStatisticsKey } from './escape';
import { RuleStatistics } from './rule-statistics';

const RULE_PREFIX = 'ratelimit.service.rate_limit.';

/**
 * Every statistic of the process, by name. Keys that come from rules are as many as the rules; keys that carry what a
 * caller sent are admitted up to a bound, because an unbounded name is a memory leak that callers control.
 */
export class Statistics {
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, () => number>();
  readonly #rules = new Map<string, RuleStatistics>();
  /** Runtime keys as they were built, unescaped, so that a known key costs one look-up. */
  readonly #runtimeRules = new Map<string, RuleStatistics>();
  readonly #runtimeCounters = new Map<string, Counter>();
  #rolledUp = 0;

  /** @param maxRuntimeKeys how many keys that carry request values are kept apart (STATS_MAX_RUNTIME_KEYS) */
  constructor(private readonly maxRuntimeKeys: number) {
    this.gauge('ratelimit.statistics.runtime_keys', () => this.#runtimeKeys());
    this.gauge('ratelimit.statistics.rolled_up', () => this.#rolledUp);
  }

  /** The counter of this name; the same one for the same name. */
  counter(name: string): Counter {
    let counter = this.#counters.get(name);
    if (counter === undefined) this.#counters.set(name, (counter = new Counter(name)));
    return counter;
  }

  /** A value that is read whenever somebody looks. A second gauge of the name takes the place of the first. */
  gauge(name: string, read: () => number): void {
    this.#gauges.set(name, read);
  }

  /** The statistics of a key that the rules alone determine, for example `domain.key_value`, unescaped. */
  rule(key: string): RuleStatistics {
    const name = RULE_PREFIX + escapeStatisticsKey(key);
    let statistics = this.#rules.get(name);
    if (statistics === undefined) this.#rules.set(name, (statistics = new RuleStatistics(name)));
    return statistics;
  }

  /**
   * The statistics of a key that carries request values, unescaped. A key that is new when the bound is reached is counted
   * under `rollUp` instead; one that was admitted stays.
   */
  runtimeRule(key: string, rollUp: string): RuleStatistics {
    const known = this.#runtimeRules.get(key);
    if (known !== undefined) return known;
    if (this.#isFull()) return this.rule(rollUp);
    const statistics = this.rule(key);
    this.#runtimeRules.set(key, statistics);
    return statistics;
  }

  /** A single counter under the rules' names whose key carries request values; bounded as {@link runtimeRule}. */
  runtimeCounter(key: string, rollUp: string): Counter {
    const known = this.#runtimeCounters.get(key);
    if (known !== undefined) return known;
    if (this.#isFull()) return this.counter(RULE_PREFIX + rollUp);
    const counter = this.counter(RULE_PREFIX + escapeStatisticsKey(key));
    this.#runtimeCounters.set(key, counter);
    return counter;
  }

  /** Every statistic that has moved, and every gauge, in no particular order. */
  *entries(): IterableIterator<readonly [name: string, value: number]> {
    for (const { name, value } of this.#counters.values()) {
      if (value !== 0) yield [name, value];
    }
    for (const [name, read] of this.#gauges) yield [name, read()];
    for (const statistics of this.#rules.values()) yield* statistics.entries();
  }

  #runtimeKeys(): number {
    return this.#runtimeRules.size + this.#runtimeCounters.size;
  }

  #isFull(): boolean {
    if (this.#runtimeKeys() < this.maxRuntimeKeys) return false;
    this.#rolledUp += 1;
    return true;
  }
}
