import type { Rule } from '../rules/rule-tree';
import { plainStatisticsKey, runtimeStatisticsLevels, statisticsKey } from '../rules/statistics-key';
import type { RuleStatistics } from '../statistics/rule-statistics';
import type { Statistics } from '../statistics/statistics';
import { type AppliedLimit, limitOfRule } from './applied-limit';
import { ByValues } from './by-values';
import { cacheKeyBody, runtimeKeyLevels, windowStart } from './cache-key';
import type { LimiterOptions } from './options';
import type { Entry } from './request';

/** What calls of the same values share: their statistics, and their cache key where no other value stands in it. */
class Shared {
  /** The window that {@link key} is of. */
  window = -1;
  key = '';

  constructor(readonly statistics: RuleStatistics) {}
}

/** What a decision needs of a rule and does not change from call to call, worked out at the rule's first match. */
export class BoundRule {
  readonly #options: LimiterOptions;
  /** Undefined for a rule without a limit and for an unlimited one. */
  readonly applied: AppliedLimit | undefined;
  readonly #plainKey: string;
  /** By the request values that stand in the statistics key; as many as the bound on runtime keys admitted. */
  readonly #shared: ByValues<Shared>;
  /** Whether calls that share statistics share a cache key too, so that it need not be made for each. */
  readonly #sharesKeys: boolean;

  constructor(
    readonly rule: Rule,
    options: LimiterOptions,
    /** The registry that the rule's statistics stand in: a binding is good for this one alone. */
    readonly statistics: Statistics,
  ) {
    this.#options = options;
    this.applied = limitOfRule(rule, options.nearLimitRatio);
    this.#plainKey = plainStatisticsKey(rule);
    const levels = runtimeStatisticsLevels(rule);
    // The values in a statistics key are always among those in the cache key: as many of both are the same ones.
    this.#sharesKeys = levels.length === runtimeKeyLevels(rule).length;
    this.#shared = new ByValues(levels);
    if (levels.length === 0) {
      const configured = rule.path.map(({ key, value }) => ({ key, value }));
      this.#shared.set(configured, new Shared(statistics.rule(statisticsKey(rule, configured))));
    }
  }

  /** What the call shares with others of its values. One look-up, where making a key and hashing it would be two. */
  sharedBy(entries: readonly Entry[]): Shared {
    return this.#shared.get(entries) ?? this.#meet(entries);
  }

  /** @param shared what {@link sharedBy} gave for these entries */
  cacheKey(shared: Shared, entries: readonly Entry[], { windowSeconds }: AppliedLimit, nowSeconds: number): string {
    const start = windowStart(nowSeconds, windowSeconds);
    if (this.#sharesKeys && shared.window === start) return shared.key;
    const key = cacheKeyBody(this.#options.cacheKeyPrefix, this.rule.domain, entries, this.rule) + start;
    if (this.#sharesKeys) {
      shared.window = start;
      shared.key = key;
    }
    return key;
  }

  /** Values that were not met before; those beyond the bound are strangers each time. */
  #meet(entries: readonly Entry[]): Shared {
    const key = statisticsKey(this.rule, entries);
    const shared = new Shared(this.statistics.runtimeRule(key, this.#plainKey));
    if (this.statistics.keepsRuntimeRule(key)) this.#shared.set(entries, shared);
    return shared;
  }
}
