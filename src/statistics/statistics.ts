import { Counter } from './counter';
import { escapeStatisticsKey } from './escape';
import { QuantileSketch } from './quantile-sketch';
import { RuleStatistics } from './rule-statistics';
import { splitTags } from './tags';
import { Timer } from './timer';

/** Calls refused for what they ask or because no configuration is loaded; one a call, through whichever door. */
export const SERVICE_ERRORS = 'ratelimit.service.call.should_rate_limit.service_error';

/** Calls that the counter store, of whatever kind, failed or answered too late; one a call. */
export const STORE_ERRORS = 'ratelimit.service.call.should_rate_limit.redis_error';

const RULE_PREFIX = 'ratelimit.service.rate_limit.';

/** A key that is longer counts under its rule: a bound on the number of keys bounds no memory when a key may be megabytes. */
const LONGEST_RUNTIME_KEY = 1024;

/** A value that is read whenever somebody looks. */
export interface Gauge {
  readonly name: string;
  readonly read: () => number;
}

/**
 * Every statistic of the process, by name. Keys that come from rules are as many as the rules; keys that carry what a
 * caller sent are admitted up to a bound, because an unbounded name is a memory leak that callers control.
 */
export class Statistics {
  readonly #maxRuntimeKeys: number;
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #timers = new Map<string, Timer>();
  readonly #durations = new Map<Timer, QuantileSketch>();
  readonly #timerWatchers: ((timer: Timer) => void)[] = [];
  readonly #rules = new Map<string, RuleStatistics>();
  readonly #counterList: Counter[] = [];
  readonly #ruleList: RuleStatistics[] = [];
  /** Runtime keys as they were built, unescaped, so that a known key costs one look-up. */
  readonly #runtimeRules = new Map<string, RuleStatistics>();
  readonly #runtimeCounters = new Map<string, Counter>();
  #rolledUp = 0;

  /** @param maxRuntimeKeys how many keys that carry request values are kept apart (STATS_MAX_RUNTIME_KEYS) */
  constructor(maxRuntimeKeys: number) {
    this.#maxRuntimeKeys = maxRuntimeKeys;
    this.gauge('ratelimit.statistics.runtime_keys', () => this.#runtimeKeys());
    this.gauge('ratelimit.statistics.rolled_up', () => this.#rolledUp);
  }

  /** Every counter that is not a rule's, in the order of their creation: none ever goes or changes its place. */
  get counters(): readonly Counter[] {
    return this.#counterList;
  }

  /** The statistics of every rule and runtime key, in the order of their creation: none ever goes or changes its place. */
  get rules(): readonly RuleStatistics[] {
    return this.#ruleList;
  }

  get gauges(): Iterable<Gauge> {
    return this.#gauges.values();
  }

  /** The counter of this name, which may end in tags, `.__tag=value`; the same one for the same name. */
  counter(name: string): Counter {
    return this.#counters.get(name) ?? this.#admit(name, new Counter(...splitTags(name)));
  }

  /** A value that is read whenever somebody looks. A second gauge of the name takes the place of the first. */
  gauge(name: string, read: () => number): void {
    this.#gauges.set(name, { name, read });
  }

  /** What the gauge of this name says now; NaN when there is none. */
  readGauge(name: string): number {
    return this.#gauges.get(name)?.read() ?? Number.NaN;
  }

  /** The timer of this name, in milliseconds; the same one for the same name. */
  timer(name: string): Timer {
    let timer = this.#timers.get(name);
    if (timer === undefined) {
      this.#timers.set(name, (timer = new Timer(name)));
      const durations = new QuantileSketch();
      this.#durations.set(timer, durations);
      timer.giveTo(durations);
      for (const watcher of this.#timerWatchers) watcher(timer);
    }
    return timer;
  }

  /** Told of every timer, those to come too. */
  watchTimers(watcher: (timer: Timer) => void): void {
    this.#timerWatchers.push(watcher);
    for (const timer of this.#timers.values()) watcher(timer);
  }

  /** The statistics of a key that the rules alone determine, for example `domain.key_value`, unescaped. */
  rule(key: string): RuleStatistics {
    const name = RULE_PREFIX + escapeStatisticsKey(key);
    let statistics = this.#rules.get(name);
    if (statistics === undefined) {
      this.#rules.set(name, (statistics = new RuleStatistics(name)));
      this.#ruleList.push(statistics);
    }
    return statistics;
  }

  /**
   * The statistics of a key that carries request values, unescaped. A key that is new when the bound is reached is counted
   * under `rollUp` instead, and so is one that is too long; one that was admitted stays.
   */
  runtimeRule(key: string, rollUp: string): RuleStatistics {
    const known = this.#runtimeRules.get(key);
    if (known !== undefined) return known;
    if (this.#rollsUp(key)) return this.rule(rollUp);
    const statistics = this.rule(key);
    this.#runtimeRules.set(key, statistics);
    return statistics;
  }

  /** Whether {@link runtimeRule} admitted this key: it gives the same statistics for it from then on. */
  keepsRuntimeRule(key: string): boolean {
    return this.#runtimeRules.has(key);
  }

  /** A single counter under the rules' names whose key carries request values; bounded as {@link runtimeRule}. */
  runtimeCounter(key: string, rollUp: string): Counter {
    const known = this.#runtimeCounters.get(key);
    if (known !== undefined) return known;
    if (this.#rollsUp(key)) return this.counter(RULE_PREFIX + rollUp);
    const name = RULE_PREFIX + escapeStatisticsKey(key);
    // What looks like a tag in what a caller sent is none.
    const counter = this.#counters.get(name) ?? this.#admit(name, new Counter(name));
    this.#runtimeCounters.set(key, counter);
    return counter;
  }

  /** Every statistic that has moved, every gauge, and what the timers come to, in no particular order. */
  *entries(): IterableIterator<readonly [name: string, value: number]> {
    for (const { fullName, value } of this.#counterList) {
      if (value !== 0) yield [fullName, value];
    }
    for (const { name, read } of this.#gauges.values()) yield [name, read()];
    for (const [timer, durations] of this.#durations) yield* timerEntries(timer, durations);
    for (const statistics of this.#ruleList) yield* statistics.entries();
  }

  #admit(name: string, counter: Counter): Counter {
    this.#counters.set(name, counter);
    this.#counterList.push(counter);
    return counter;
  }

  #runtimeKeys(): number {
    return this.#runtimeRules.size + this.#runtimeCounters.size;
  }

  #rollsUp(key: string): boolean {
    if (this.#runtimeKeys() < this.#maxRuntimeKeys && key.length <= LONGEST_RUNTIME_KEY) return false;
    this.#rolledUp += 1;
    return true;
  }
}

/** How often and, in milliseconds, how long: since the start of the process. */
function* timerEntries(timer: Timer, durations: QuantileSketch): IterableIterator<readonly [string, number]> {
  timer.settle();
  if (durations.count === 0) return;
  yield [`${timer.name}.count`, durations.count];
  yield [`${timer.name}.p50_ms`, rounded(durations.quantile(0.5))];
  yield [`${timer.name}.p99_ms`, rounded(durations.quantile(0.99))];
  yield [`${timer.name}.max_ms`, rounded(durations.max)];
}

function rounded(milliseconds: number): number {
  return Number(milliseconds.toPrecision(3));
}
