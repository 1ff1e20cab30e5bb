import type { Rule } from '../../rules/rule-tree';
import type { Ruleset } from '../../rules/ruleset';
import { WorkBudget } from '../../rules/wildcards';
import { RuleStatistics } from '../../statistics/rule-statistics';
import { type AppliedLimit, limitOfOverride, limitOfRule } from '../applied-limit';
import { cacheKeyBody, windowStart } from '../cache-key';
import { hitsOf } from '../hits';
import { LimitedDescriptor } from '../limited-descriptor';
import { type Matches, matchRequest } from '../match-request';
import type { LimiterOptions } from '../options';
import type { OverLimitCache } from '../over-limit-cache';
import { isReplaced } from '../replaces';
import type { Descriptor, RateLimitRequest } from '../request';
import { MAX_MATCHING_STEPS } from '../request-bounds';
import type { ResolutionKind } from '../resolution';
import { stopIncrements } from '../stop-increments';
import { ExplainedRequest, type ExplainedDescriptor } from './explained-request';

/** What an explanation reads. */
export interface ExplanationContext {
  readonly options: LimiterOptions;
  /** Only read. */
  readonly overLimitCache: OverLimitCache;
  /** Undefined before the first rules are loaded. */
  readonly ruleset: Ruleset | undefined;
  /** Unix time in milliseconds. */
  readonly now: number;
}

/**
 * Does with a request what a decision does up to the store, without counting anything: no statistic, no counter and no entry of the
 * local cache changes.
 *
 * @throws DecisionError as a decision
 */
export function explainRequest(request: RateLimitRequest, context: ExplanationContext): ExplainedRequest {
  const matches = matchRequest(request, context.ruleset, new WorkBudget(MAX_MATCHING_STEPS));
  const replacers = replacersIn(matches);
  const nowSeconds = Math.floor(context.now / 1000);
  const descriptors = request.descriptors.map((descriptor, index) =>
    explainDescriptor(request, descriptor, { matches, replacers, index, options: context.options, nowSeconds }),
  );
  const operations = operationsOf(descriptors, context, nowSeconds);
  return new ExplainedRequest(request, descriptors, operations, context.options, nowSeconds);
}

interface DescriptorContext {
  readonly matches: Matches | undefined;
  readonly replacers: ReadonlyMap<string, Rule>;
  readonly index: number;
  readonly options: LimiterOptions;
  readonly nowSeconds: number;
}

function explainDescriptor(
  request: RateLimitRequest,
  descriptor: Descriptor,
  { matches, replacers, index, options, nowSeconds }: DescriptorContext,
): ExplainedDescriptor {
  const rule = matches?.rules[index];
  function limitedBy(applied: AppliedLimit): ExplainedDescriptor {
    const body = cacheKeyBody(options.cacheKeyPrefix, request.domain, descriptor.entries, rule);
    const key = body + windowStart(nowSeconds, applied.windowSeconds);
    const hits = hitsOf(descriptor, request);
    const statistics = new RuleStatistics('explanation');
    const limited = new LimitedDescriptor(applied, key, statistics, hits, descriptor.isNegativeHits);
    return { resolution: { kind: 'limited', limited, rule }, replacedBy: undefined };
  }
  function withoutLimit(kind: ResolutionKind, replacedBy?: Rule): ExplainedDescriptor {
    return { resolution: { kind, limited: undefined, rule }, replacedBy };
  }
  if (matches === undefined) return withoutLimit('unknown_domain');
  if (descriptor.limit?.unit !== undefined) {
    const { unit, requestsPerUnit } = descriptor.limit;
    return limitedBy(limitOfOverride({ unit, requestsPerUnit }, options.nearLimitRatio));
  }
  if (rule === undefined) return withoutLimit('no_match');
  if (rule.limit === undefined) return withoutLimit('no_limit');
  if (isReplaced(rule, matches.replaced)) return withoutLimit('replaced', replacers.get(rule.limit.name));
  const applied = limitOfRule(rule, options);
  return applied === undefined ? withoutLimit('unlimited') : limitedBy(applied);
}

/** By the names that they replace: the first of the matched rules. Their number is limited by {@link matchRequest}. */
function replacersIn(matches: Matches | undefined): ReadonlyMap<string, Rule> {
  const replacers = new Map<string, Rule>();
  if (matches?.replaced === undefined) return replacers;
  for (const rule of new Set(matches.rules)) {
    if (rule === undefined) continue;
    for (const name of rule.limit?.replaces ?? []) if (!replacers.has(name)) replacers.set(name, rule);
  }
  return replacers;
}

/** As {@link Limiter}, but with a local cache that is only read. */
function operationsOf(
  descriptors: readonly ExplainedDescriptor[],
  { overLimitCache, options }: ExplanationContext,
  nowSeconds: number,
): readonly LimitedDescriptor[] {
  const operations: LimitedDescriptor[] = [];
  /** Keys that the call itself removes from the cache. */
  const removed = new Set<string>();
  let isAnyOver = false;
  for (const { resolution } of descriptors) {
    const { limited } = resolution;
    if (limited === undefined) continue;
    if (limited.isNegative) removed.add(limited.key);
    else {
      const { key, limit } = limited;
      limited.overByLocalCache = !removed.has(key) && overLimitCache.holds(key, limit, nowSeconds);
      isAnyOver ||= limited.overByLocalCache;
    }
    if (!limited.overByLocalCache) operations.push(limited);
  }
  return options.stopIncrementWhenOverLimit ? stopIncrements(operations, isAnyOver) : operations;
}
