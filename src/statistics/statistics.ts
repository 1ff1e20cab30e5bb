import { Counter } from './counter';
import { escapeStatisticsKey } from './escape';
import { QuantileSketch } from './quantile-sketch';
import { RuleStatistics } from './rule-statistics';
import { NO_TAGS, type Tags, joinTags, splitTags } from './tags';
import { ownText } from '../text/table-key';
import { Timer } from './timer';

/** Calls rejected as invalid or because no configuration is loaded, counted once per call for all servers. */
export const SERVICE_ERRORS = 'ratelimit.service.call.should_rate_limit.service_error';

/** Calls that failed because of an error or a timeout of the counter store, of any type; counted once per call. */
export const STORE_ERRORS = 'ratelimit.service.call.should_rate_limit.redis_error';

/** What reservations that have expired have given back, once for each counter. */
export const GIVEN_BACK = 'ratelimit.reservations.given_back';

/** Precedes the key of a rule in the names of its statistics. */
export const RULE_PREFIX = 'ratelimit.service.rate_limit.';

/** The key of a rule's statistics, as GET /api/rules has it: that into which one with request values is rolled up. */
export function statisticsKeyOf({ name, rollUp }: Pick<RuleStatistics, 'name' | 'rollUp'>): string {
  return rollUp === undefined ? name.slice(RULE_PREFIX.length) : escapeStatisticsKey(rollUp);
}

/**
 * Longer keys are counted under their rule: without this limit, the number of keys would not limit the memory. In
 * characters.
 */
const MAX_RUNTIME_KEY_LENGTH = 1024;
/**
 * The mean length that all keys with request values may have, in characters: every output keeps each of them in several
 * names.
 */
const MEAN_RUNTIME_KEY_LENGTH = 256;

/** A statistic whose value is computed when it is read. */
export interface Gauge {
  readonly name: string;
  readonly tags: Tags;
  readonly read: () => number;
}

/**
 * All statistics of the process, by name. The number of keys from rules is that of the rules; the number of runtime
 * keys, which contain request values, is limited, because callers could otherwise fill the memory.
 */
export class Statistics {
  readonly #maxRuntimeKeys: number;
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #timers = new Map<string, Timer>();
  readonly #durations = new Map<Timer, QuantileSketch>();
  readonly #timerListeners: ((timer: Timer) => void)[] = [];
  readonly #rules = new Map<string, RuleStatistics>();
  readonly #counterList: Counter[] = [];
  readonly #ruleList: RuleStatistics[] = [];
  /** By unescaped runtime key, so that a known key costs one look-up. */
  readonly #runtimeRules = new Map<string, RuleStatistics>();
  /** By the unescaped key that they are rolled up into: the statistics of the runtime keys. */
  readonly #byRollUp = new Map<string, Set<RuleStatistics>>();
  /** The number of runtime keys of {@link adoptRule}. */
  #adoptedKeys = 0;
  /** The sum of the lengths of the runtime keys. */
  #runtimeCharacters = 0;
  #rolledUp = 0;

  /** @param maxRuntimeKeys the maximum number of keys with request values (STATS_MAX_RUNTIME_KEYS) */
  constructor(maxRuntimeKeys: number) {
    this.#maxRuntimeKeys = maxRuntimeKeys;
    this.gauge('ratelimit.statistics.runtime_keys', () => this.#runtimeKeys());
    this.gauge('ratelimit.statistics.rolled_up', () => this.#rolledUp);
  }

  /** The counters that do not belong to rules, in order of creation; never removed or reordered. */
  get counters(): readonly Counter[] {
    return this.#counterList;
  }

  /** The statistics of all rules and runtime keys, in order of creation; never removed or reordered. */
  get rules(): readonly RuleStatistics[] {
    return this.#ruleList;
  }

  get gauges(): Iterable<Gauge> {
    return this.#gauges.values();
  }

  /** The counter of this name, which may end in tags, `.__tag=value`; the same one for the same name. */
  counter(name: string): Counter {
    let counter = this.#counters.get(name);
    if (counter === undefined) {
      this.#counters.set(name, (counter = new Counter(...splitTags(name))));
      this.#counterList.push(counter);
    }
    return counter;
  }

  /** Adds a gauge; it replaces an earlier one of the same name and tags. */
  gauge(name: string, read: () => number, tags: Tags = NO_TAGS): void {
    this.#gauges.set(joinTags(name, tags), { name, tags, read });
  }

  /** The current value of the gauge of this name, with its tags; NaN if there is none. */
  readGauge(fullName: string): number {
    return this.#gauges.get(fullName)?.read() ?? Number.NaN;
  }

  /** The timer of this name, in milliseconds; the same one for the same name. */
  timer(name: string): Timer {
    let timer = this.#timers.get(name);
    if (timer === undefined) {
      this.#timers.set(name, (timer = new Timer(name)));
      const durations = new QuantileSketch();
      this.#durations.set(timer, durations);
      timer.addRecorder(durations);
      for (const listener of this.#timerListeners) listener(timer);
    }
    return timer;
  }

  /** All durations of a timer since the start of the process: not to be changed. */
  durationsOf(name: string): QuantileSketch {
    const timer = this.timer(name);
    timer.flush();
    return this.#durations.get(timer)!;
  }

  /** Calls the listener for each existing timer, and for each new one when it is created. */
  onTimer(listener: (timer: Timer) => void): void {
    this.#timerListeners.push(listener);
    for (const timer of this.#timers.values()) listener(timer);
  }

  /**
   * The statistics of a key that contains no request values, for example `domain.key_value`, unescaped.
   *
   * @param window see {@link RuleStatistics.window}
   */
  rule(key: string, window?: string): RuleStatistics {
    const name = RULE_PREFIX + escapeStatisticsKey(key);
    return this.#rules.get(name) ?? this.#addRule(new RuleStatistics(ownText(name), undefined, window));
  }

  /**
   * The statistics of a key with request values, unescaped. When the maximum number of runtime keys or of their
   * characters is reached, or when the key is too long, a new key is counted under `rollUp` instead; existing keys are
   * kept.
   *
   * @param window see {@link RuleStatistics.window}
   */
  runtimeRule(key: string, rollUp: string, window?: string): RuleStatistics {
    const known = this.#runtimeRules.get(key);
    if (known !== undefined) return known;
    if (this.#rollsUp(key)) return this.rule(rollUp, window);
    const name = RULE_PREFIX + escapeStatisticsKey(key);
    const statistics = this.#rules.get(name) ?? this.#addRule(new RuleStatistics(ownText(name), rollUp, window));
    this.#runtimeRules.set(ownText(key), statistics);
    this.#runtimeCharacters += key.length;
    return this.#rollUpInto(rollUp, statistics);
  }

  /** The statistics of an unescaped key and of the runtime keys that are rolled up into it. Creates none. */
  *rolledUp(key: string): IterableIterator<RuleStatistics> {
    const own = this.#rules.get(RULE_PREFIX + escapeStatisticsKey(key));
    if (own !== undefined) yield own;
    for (const statistics of this.#byRollUp.get(key) ?? []) if (statistics !== own) yield statistics;
  }

  /** Whether the key has statistics of its own, which {@link runtimeRule} then always returns. */
  keepsRuntimeRule(key: string): boolean {
    return this.#runtimeRules.has(key);
  }

  /**
   * The statistics here that correspond to those of another registry. Keys with request values are limited as if they
   * were first used here: beyond the maximum, those of the roll-up.
   */
  adoptRule({ name, rollUp, window }: Pick<RuleStatistics, 'name' | 'rollUp' | 'window'>): RuleStatistics {
    const known = this.#rules.get(name);
    if (known !== undefined) return known;
    const adopted = new RuleStatistics(name, rollUp, window);
    if (rollUp === undefined) return this.#addRule(adopted);
    const key = name.slice(RULE_PREFIX.length);
    if (this.#rollsUp(key)) return this.rule(rollUp, window);
    this.#runtimeCharacters += key.length;
    this.#adoptedKeys += 1;
    return this.#rollUpInto(rollUp, this.#addRule(adopted));
  }

  /** All counters and gauges, a summary of each timer, and what rules have counted, in no particular order. */
  *entries(): IterableIterator<readonly [name: string, value: number]> {
    for (const group of this.groups()) yield* group.entries();
  }

  /** What {@link entries} returns, without a name for each of them. */
  *groups(): IterableIterator<StatisticGroup> {
    for (const counter of this.#counterList) yield groupOf(counter.fullName, () => counter.value);
    for (const { name, tags, read } of this.#gauges.values()) yield groupOf(joinTags(name, tags), read);
    for (const [timer, durations] of this.#durations) {
      yield { name: timer.name, entries: () => timerEntries(timer, durations) };
    }
    yield* this.#ruleList;
  }

  #addRule(statistics: RuleStatistics): RuleStatistics {
    this.#rules.set(statistics.name, statistics);
    this.#ruleList.push(statistics);
    return statistics;
  }

  #rollUpInto(rollUp: string, statistics: RuleStatistics): RuleStatistics {
    const siblings = this.#byRollUp.get(rollUp);
    if (siblings === undefined) this.#byRollUp.set(ownText(rollUp), new Set([statistics]));
    else siblings.add(statistics);
    return statistics;
  }

  #runtimeKeys(): number {
    return this.#runtimeRules.size + this.#adoptedKeys;
  }

  #rollsUp(key: string): boolean {
    const fits =
      this.#runtimeKeys() < this.#maxRuntimeKeys &&
      key.length <= MAX_RUNTIME_KEY_LENGTH &&
      this.#runtimeCharacters + key.length <= this.#maxRuntimeKeys * MEAN_RUNTIME_KEY_LENGTH;
    if (!fits) this.#rolledUp += 1;
    return !fits;
  }
}

/** Statistics whose names begin with that of the group, such as those of a rule. */
export interface StatisticGroup {
  readonly name: string;
  entries(): Iterable<readonly [name: string, value: number]>;
}

function groupOf(name: string, read: () => number): StatisticGroup {
  return { name, entries: () => [[name, read()]] };
}

/** The number of samples and, in milliseconds, their quantiles and maximum since the start of the process. */
function* timerEntries(timer: Timer, durations: QuantileSketch): IterableIterator<readonly [string, number]> {
  timer.flush();
  if (durations.count === 0) return;
  yield [`${timer.name}.count`, durations.count];
  yield [`${timer.name}.p50_ms`, rounded(durations.quantile(0.5))];
  yield [`${timer.name}.p99_ms`, rounded(durations.quantile(0.99))];
  yield [`${timer.name}.max_ms`, rounded(durations.max)];
}

function rounded(milliseconds: number): number {
  return Number(milliseconds.toPrecision(3));
}
