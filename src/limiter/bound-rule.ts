import type { Rule } from '../rules/rule-tree';
import { hasRuntimeStatisticsKey, plainStatisticsKey, statisticsKey } from '../rules/statistics-key';
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
    this.#fixedStatistics = hasRuntimeStatisticsKey(rule)
      ? undefined
      : statistics.rule(statisticsKey(rule, configured));
    this.#fixedBody = path.every((step) => step.isExplicit || step.shareThreshold)
      ? cacheKeyBody(options.cacheKeyPrefix, rule.domain, configured, rule)
      : undefined;
  }

  statisticsFor(entries: readonly Entry[]): RuleStatistics {
    return this.#fixedStatistics ?? this.statistics.runtimeRule(statisticsKey(this.rule, entries), this.#plainKey);
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
