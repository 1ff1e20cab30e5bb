import type { Rule } from '../rules/rule-tree';
import { plainStatisticsKey, runtimeStatisticsLevels, statisticsKey } from '../rules/statistics-key';
import type { RuleStatistics } from '../statistics/rule-statistics';
import type { Statistics } from '../statistics/statistics';
import { type AppliedLimit, limitOfRule } from './applied-limit';
import { cacheKeyBody, windowStart } from './cache-key';
import type { LimiterOptions } from './options';
import type { Entry } from './request';

/** What a decision needs of a rule and does not change from call to call, worked out at the rule's first match. */
export class BoundRule {
  /** Undefined for a rule without a limit and for an unlimited one. */
  readonly applied: AppliedLimit | undefined;
  readonly #plainKey: string;
  readonly #fixedStatistics: RuleStatistics | undefined;
  /** The level whose request value alone tells the statistics of one call from those of another; -1 when several do. */
  readonly #statisticsLevel: number;
  /** By that value; as many as the bound on runtime keys admitted. Spares known ones the making and hashing of a key. */
  readonly #statisticsByValue = new Map<string, RuleStatistics>();
  /** The key's body when no request value stands in it. */
  readonly #fixedBody: string | undefined;
  #keyWindow = -1;
  #keyInWindow = '';

  constructor(
    readonly rule: Rule,
    private readonly options: LimiterOptions,
    /** The registry that the rule's statistics stand in: a binding is good for this one alone. */
    readonly statistics: Statistics,
  ) {
    this.applied = limitOfRule(rule, options.nearLimitRatio);
    this.#plainKey = plainStatisticsKey(rule);
    const { path } = rule;
    const configured = path.map(({ key, value }) => ({ key, value }));
    const levels = runtimeStatisticsLevels(rule);
    this.#fixedStatistics = levels.length > 0 ? undefined : statistics.rule(statisticsKey(rule, configured));
    this.#statisticsLevel = levels.length === 1 ? (levels[0] ?? -1) : -1;
    this.#fixedBody = path.every((step) => step.isExplicit || step.shareThreshold)
      ? cacheKeyBody(options.cacheKeyPrefix, rule.domain, configured, rule)
      : undefined;
  }

  statisticsFor(entries: readonly Entry[]): RuleStatistics {
    if (this.#fixedStatistics !== undefined) return this.#fixedStatistics;
    const value = entries[this.#statisticsLevel]?.value;
    const known = value === undefined ? undefined : this.#statisticsByValue.get(value);
    return known ?? this.#lookUpStatistics(entries, value);
  }

  #lookUpStatistics(entries: readonly Entry[], value: string | undefined): RuleStatistics {
    const key = statisticsKey(this.rule, entries);
    const found = this.statistics.runtimeRule(key, this.#plainKey);
    if (value !== undefined && this.statistics.keepsRuntimeRule(key)) this.#statisticsByValue.set(value, found);
    return found;
  }

  cacheKey(entries: readonly Entry[], applied: AppliedLimit, nowSeconds: number): string {
    const start = windowStart(nowSeconds, applied.windowSeconds);
    if (this.#fixedBody === undefined) {
      return cacheKeyBody(this.options.cacheKeyPrefix, this.rule.domain, entries, this.rule) + start;
    }
    if (start !== this.#keyWindow) {
      this.#keyWindow = start;
      this.#keyInWindow = this.#fixedBody + start;
    }
    return this.#keyInWindow;
  }
}
