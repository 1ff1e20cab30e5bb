import type { RuleLimit } from '../rules/rule-config';
import type { Rule, RuleBinding } from '../rules/rule-tree';
import { limitSuffix, plainStatisticsKey, runtimeStatisticsLevels, statisticsKey } from '../rules/statistics-key';
import type { RuleStatistics } from '../statistics/rule-statistics';
import type { Statistics } from '../statistics/statistics';
import { ownText } from '../text/table-key';
import { type Limit, limitOfRule } from '../counting/limit';
import { cacheKeyBody, runtimeKeyLevels, taggedKey } from './cache-key';
import type { LimiterOptions } from './options';
import { isEnforced } from './enforcement';
import type { Entry } from './request';

/** A map whose key is the combination of the values of a descriptor's entries at certain levels. */
class ByValues<T extends object> {
  readonly #levels: readonly number[];
  /** Nested maps, one per level, by the entry's value at that level; without levels, the only value itself. */
  #root: unknown;

  /** @param levels indices of entries; empty for a single value that applies to every descriptor */
  constructor(levels: readonly number[]) {
    this.#levels = levels;
    this.#root = levels.length === 0 ? undefined : new Map();
  }

  get(entries: readonly Entry[]): T | undefined {
    let node = this.#root;
    for (const level of this.#levels) {
      node = (node as Map<string, unknown>).get((entries[level] as Entry).value);
      if (node === undefined) return undefined;
    }
    return node as T | undefined;
  }

  set(entries: readonly Entry[], stored: T): void {
    const last = this.#levels.length - 1;
    let node = this.#root as Map<string, unknown>;
    this.#levels.forEach((level, depth) => {
      const value = ownText((entries[level] as Entry).value);
      if (depth === last) node.set(value, stored);
      else node = mapIn(node, value);
    });
    if (last < 0) this.#root = stored;
  }
}

function mapIn(parent: Map<string, unknown>, value: string): Map<string, unknown> {
  let map = parent.get(value) as Map<string, unknown> | undefined;
  if (map === undefined) parent.set(value, (map = new Map()));
  return map;
}

/** State shared by calls with the same values: their statistics, and their cache key if it contains no other value. */
class Shared {
  /** The start of the window that {@link key} belongs to. */
  window = -1;
  key = '';

  constructor(readonly statistics: RuleStatistics) {}
}

/** The data of a rule that is the same for all its calls, computed at its first match. */
export class BoundRule implements RuleBinding {
  readonly #options: LimiterOptions;
  /** As in {@link limitOf}, where it is enforced. */
  readonly #limit: Limit | undefined;
  /** The limit for the callers that `enforce_percent` leaves out; undefined without it. */
  readonly #shadow: Limit | undefined = undefined;
  /** What follows the keys of the rule's statistics: see {@link limitSuffix}. */
  readonly #suffix: string;
  /** See {@link RuleStatistics.window}. */
  readonly #window: string | undefined;
  readonly #plainKey: string;
  /** By the request values in the statistics key; limited by the maximum number of runtime keys. */
  readonly #shared: ByValues<Shared>;
  /**
   * The statistics of the values in {@link #shared}. Undefined if fewer than two values are part of the statistics key,
   * which then differs whenever a value does.
   */
  readonly #kept: Set<RuleStatistics> | undefined;
  /** Whether calls that share statistics also share a cache key, so that it is built only once per window. */
  readonly #sharesKeys: boolean;

  constructor(
    readonly rule: Rule,
    options: LimiterOptions,
    /** The registry of the rule's statistics; the binding is valid only for this registry. */
    readonly statistics: Statistics,
    /** One of those of the rule. */
    readonly limit: RuleLimit | undefined = rule.limit,
  ) {
    this.#options = options;
    this.#limit = limitOfRule(rule, limit, options);
    const { shadowMode, enforcePercent = 100 } = rule.options;
    if (!shadowMode && enforcePercent < 100) this.#shadow = limitOfRule(rule, limit, { ...options, isInShadow: true });
    this.#suffix = limit === undefined ? '' : limitSuffix(rule, limit);
    this.#window = this.#suffix === '' ? undefined : this.#suffix.slice(1);
    this.#plainKey = plainStatisticsKey(rule) + this.#suffix;
    const levels = runtimeStatisticsLevels(rule);
    // The values in a statistics key are a subset of those in the cache key, so equal numbers mean equal sets.
    this.#sharesKeys = levels.length === runtimeKeyLevels(rule).length;
    this.#shared = new ByValues(levels);
    this.#kept = levels.length > 1 ? new Set() : undefined;
    if (levels.length === 0) {
      const configured = rule.path.map(({ key, value }) => ({ key, value }));
      this.#shared.set(
        configured,
        new Shared(statistics.rule(statisticsKey(rule, configured) + this.#suffix, this.#window)),
      );
    }
  }

  /** The limit for the callers with a descriptor. Undefined for a rule without a limit and for an unlimited one. */
  limitOf(entries: readonly Entry[]): Limit | undefined {
    if (this.#shadow === undefined) return this.#limit;
    const { domain, options } = this.rule;
    return isEnforced(options.enforcePercent as number, domain, entries) ? this.#limit : this.#shadow;
  }

  /** The shared state of the call's values. Costs one look-up; building a key and hashing it would cost two. */
  sharedBy(entries: readonly Entry[]): Shared {
    return this.#shared.get(entries) ?? this.#addShared(entries);
  }

  /** @param shared the result of {@link sharedBy} for the same entries */
  cacheKey(shared: Shared, entries: readonly Entry[], limit: Limit, nowSeconds: number): string {
    const { algorithm, isFixedWindow } = limit;
    // The key of the other algorithms is the same at all times.
    const start = isFixedWindow ? limit.startOfWindow(nowSeconds) : 0;
    if (this.#sharesKeys && shared.window === start) return shared.key;
    const prefix = this.#options.cacheKeyPrefix;
    const { rule } = this;
    const key =
      algorithm === undefined && !rule.options.hasLimitList
        ? cacheKeyBody(prefix, rule.domain, entries, rule) + start
        : this.#taggedKey(entries, limit, start);
    if (!this.#sharesKeys) return key;
    shared.window = start;
    shared.key = ownText(key);
    return shared.key;
  }

  #taggedKey(entries: readonly Entry[], limit: Limit, start: number): string {
    const { algorithm, isFixedWindow, lengthSeconds } = limit;
    const body = cacheKeyBody('', this.rule.domain, entries, this.rule);
    const prefix = this.#options.cacheKeyPrefix;
    if (algorithm !== undefined && !isFixedWindow) return taggedKey(prefix, body, algorithm);
    // Two names, as a count and the state of an algorithm are not the same for every store.
    const name = algorithm === undefined ? 'fixed_window' : 'all_or_nothing';
    return `${taggedKey(prefix, body, { name, lengthSeconds })}_${start}`;
  }

  /**
   * Creates the state of new values. Above the maximum number of runtime keys, it is not kept. Different values can
   * have the same key: its text can be divided between two levels in as many ways as the name of the lower one occurs
   * in it. Only the first values of a key are kept, so that the number of keys limits the number of values, too.
   */
  #addShared(entries: readonly Entry[]): Shared {
    const key = statisticsKey(this.rule, entries) + this.#suffix;
    const shared = new Shared(this.statistics.runtimeRule(key, this.#plainKey, this.#window));
    if (this.statistics.keepsRuntimeRule(key) && this.#kept?.has(shared.statistics) !== true) {
      this.#kept?.add(shared.statistics);
      this.#shared.set(entries, shared);
    }
    return shared;
  }
}

/** The limits of a rule with `rate_limits`, each of which has statistics and keys of its own. */
export class BoundLimits implements RuleBinding {
  readonly limits: readonly BoundRule[];

  /** @param statistics as {@link BoundRule.statistics} */
  constructor(
    readonly rule: Rule,
    options: LimiterOptions,
    readonly statistics: Statistics,
  ) {
    this.limits = rule.limits.map((limit) => new BoundRule(rule, options, statistics, limit));
  }
}
