import { NO_LIMIT } from '../rules/rule-config';
import type { Rule } from '../rules/rule-tree';
import type { Ruleset, Search } from '../rules/ruleset';
import { WorkBudget } from '../rules/wildcards';
import type { Counter } from '../statistics/counter';
import { SERVICE_ERRORS, Statistics } from '../statistics/statistics';
import { type Limit, limitOfOverride } from '../counting/limit';
import type { Group } from '../counting/operation';
import { BoundLimits, BoundRule } from './bound-rule';
import { cacheKeyBody, countedEntries, taggedKey } from './cache-key';
import { Decision, type DecisionContext } from './decision';
import type { LimiterOptions } from './options';
import { type Matches, isAnyDecided, isReplaced, matchRequest } from './match-request';
import { OverLimitCache, TrialCache } from './over-limit-cache';
import {
  type Descriptor,
  type LimitOverride,
  MAX_MATCHING_STEPS,
  type RateLimitRequest,
  hitsOf,
  purposeOf,
} from './request';
import {
  LimitedDescriptor,
  NO_MATCH,
  type Resolution,
  SeveralLimits,
  UNKNOWN_DOMAIN,
  limitsOfResolution,
} from './resolution';
import { stopIncrements } from './stop-increments';
import { Trial } from './trial';

/** The statistics key of overrides above the maximum number of runtime keys. */
const OVERRIDE_ROLL_UP = 'override';
/** The statistics key of domains without rules above the maximum number of runtime keys. */
const UNKNOWN_DOMAINS = 'other';

/**
 * Turns requests into decisions: finds the limit of each descriptor and determines the operations for the store. Pure
 * except for the statistics and the local cache; the time is a parameter.
 */
export class Limiter {
  readonly #options: LimiterOptions;
  readonly #statistics: Statistics;
  readonly #isTrial: boolean;
  readonly #context: DecisionContext;
  readonly #serviceErrors: Counter;
  readonly #unknownDomains: Counter;
  readonly #noMatch: Counter;
  /** Renewed for each request. */
  readonly #search: Search = { budget: new WorkBudget(MAX_MATCHING_STEPS), visit: undefined };

  /** @param trialCache the local cache of a trial, which keeps nothing with the rules; see {@link trial} */
  constructor(options: LimiterOptions, statistics: Statistics, trialCache?: TrialCache) {
    this.#options = options;
    this.#statistics = statistics;
    this.#isTrial = trialCache !== undefined;
    this.#context = {
      options,
      overLimitCache: trialCache ?? new OverLimitCache(options.localCacheBytes, options.localCacheMaxAge),
      globalShadowMode: statistics.counter('ratelimit.service.global_shadow_mode'),
    };
    this.#serviceErrors = statistics.counter(SERVICE_ERRORS);
    this.#unknownDomains = statistics.counter('ratelimit.service.unknown_domain');
    this.#noMatch = statistics.counter('ratelimit.service.no_match');
    if (options.localCacheBytes > 0) this.#context.overLimitCache.publish(statistics);
  }

  /**
   * Starts a decision. Counts the hits in `total_hits`, regardless of the store's later result.
   *
   * @param ruleset the active rules, undefined before the first ones are loaded; the decision uses only these
   * @param now Unix time in milliseconds
   * @throws DecisionError `invalid_request`, `no_configuration` or `too_much_work`; only the error is counted in this
   * case
   */
  begin(request: RateLimitRequest, ruleset: Ruleset | undefined, now: number): Decision {
    const matches = this.#match(request, ruleset);
    const nowSeconds = Math.floor(now / 1000);
    if (matches === undefined) return this.#unknownDomain(request, ruleset, nowSeconds);
    if (!isAnyDecided(request, matches)) {
      this.#noMatch.add(1);
      this.#reportUnmatched(request, ruleset, nowSeconds);
    }
    const resolutions = this.#resolve(request, matches, nowSeconds);
    return new Decision(this.#context, request, resolutions, this.#operations(resolutions, nowSeconds), nowSeconds);
  }

  /**
   * What {@link begin} would do with a request: a decision with statistics of its own and a local cache that is only
   * read, so that nothing is counted.
   *
   * @param limitTried the requests per unit of every limit, instead of those of its rule or of the request
   * @throws DecisionError as {@link begin}
   */
  trial(request: RateLimitRequest, ruleset: Ruleset | undefined, now: number, limitTried?: number): Trial {
    const options = {
      ...this.#options,
      limitTried,
      local: undefined,
      leaseTable: undefined,
      offenders: undefined,
      unmatched: undefined,
      asked: undefined,
      onForgotten: undefined,
    };
    const limiter = new Limiter(options, new Statistics(0), new TrialCache(this.#context.overLimitCache));
    return new Trial(limiter.begin(request, ruleset, now), options, this.#options.local);
  }

  /** Removes a counter that an operator has changed from the local cache and from the counts for the policy `local`. */
  forget(cacheKey: string): void {
    this.#context.overLimitCache.remove(cacheKey);
    this.#options.local?.forget(cacheKey);
    this.#options.leaseTable?.giveBack([cacheKey]);
  }

  /** Removes counters that other processes have reduced from the local cache. */
  forgetReduced(cacheKeys: readonly string[] | 'all'): void {
    const { overLimitCache } = this.#context;
    if (cacheKeys === 'all') overLimitCache.clear();
    else for (const cacheKey of cacheKeys) overLimitCache.remove(cacheKey);
  }

  /** Whether the local cache has a counter as over this limit. */
  isInLocalCache(cacheKey: string, limit: number, nowSeconds: number): boolean {
    return this.#context.overLimitCache.holds(cacheKey, limit, nowSeconds);
  }

  /** As {@link matchRequest}; counts a request that is rejected. */
  #match(request: RateLimitRequest, ruleset: Ruleset | undefined): Matches | undefined {
    this.#search.budget.renew(MAX_MATCHING_STEPS);
    try {
      return matchRequest(request, ruleset, this.#search);
    } catch (error) {
      this.#serviceErrors.add(1);
      throw error;
    }
  }

  #unknownDomain(request: RateLimitRequest, ruleset: Ruleset | undefined, nowSeconds: number): Decision {
    this.#unknownDomains.add(1);
    this.#reportUnmatched(request, ruleset, nowSeconds);
    const ofDomain = this.#statistics.runtimeRule(request.domain, UNKNOWN_DOMAINS);
    ofDomain.domainNotFound += request.descriptors.length;
    const resolutions = request.descriptors.map(() => UNKNOWN_DOMAIN);
    return new Decision(this.#context, request, resolutions, [], nowSeconds);
  }

  #reportUnmatched(request: RateLimitRequest, ruleset: Ruleset | undefined, nowSeconds: number): void {
    if (ruleset !== undefined) this.#options.unmatched?.found(request, ruleset, nowSeconds);
  }

  #resolve(request: RateLimitRequest, matches: Matches, nowSeconds: number): readonly Resolution[] {
    const { descriptors } = request;
    const resolutions = new Array<Resolution>(descriptors.length);
    for (let index = 0; index < descriptors.length; index += 1) {
      const resolution = this.#resolveOne(request, index, matches, nowSeconds);
      resolutions[index] = resolution;
      const { limited } = resolution;
      if (limited !== undefined && (limited.limit.postpaid || request.purpose !== undefined))
        servePurpose(resolution, descriptors[index] as Descriptor, request);
    }
    return resolutions;
  }

  #resolveOne(request: RateLimitRequest, index: number, matches: Matches, nowSeconds: number): Resolution {
    const { rules, replaced, overridden } = matches;
    const descriptor = request.descriptors[index] as Descriptor;
    const hits = hitsOf(descriptor, request);
    if (descriptor.limit !== undefined)
      return this.#override({ request, descriptor, hits, rule: overridden?.[index] }, descriptor.limit, nowSeconds);
    const rule = rules[index];
    if (rule === undefined) return NO_MATCH;
    if (rule.limit === undefined) return { kind: 'no_limit', limited: undefined, rule };
    const counted = rule.countsNetworks
      ? { ...descriptor, entries: countedEntries(rule, descriptor.entries) }
      : descriptor;
    if (rule.options.hasLimitList) return this.#several({ descriptor: counted, rule, hits, replaced }, nowSeconds);
    if (isReplaced(rule.limit, replaced)) return { kind: 'replaced', limited: undefined, rule };
    return this.#limited(counted, rule, hits, nowSeconds);
  }

  /** @param descriptor with its entries as they are counted */
  #limited(descriptor: Descriptor, rule: Rule, hits: number, nowSeconds: number): Resolution {
    const bound = this.#bind(rule);
    const limit = bound.limitOf(descriptor.entries);
    if (limit === undefined) {
      const isUnlimited = rule.limit?.unlimited === true;
      // A rule that is unlimited, or denies all, needs no store, but its hits are counted. Negative hits have no count
      // to be subtracted from, and are never denied.
      if (!descriptor.isNegativeHits) {
        const { statistics } = bound.sharedBy(descriptor.entries);
        statistics.totalHits += hits;
        statistics.calls += 1;
        if (isUnlimited) statistics.withinLimit += hits;
        else statistics.overLimit += hits;
      } else if (!isUnlimited) return NO_MATCH;
      return { kind: isUnlimited ? 'unlimited' : 'denied', limited: undefined, rule };
    }
    if (isInactive(limit, nowSeconds)) return { kind: 'inactive', limited: undefined, rule };
    return { kind: 'limited', limited: limitedBy(bound, limit, descriptor, hits, nowSeconds), rule };
  }

  /** A rule with `rate_limits`, of which some may be replaced or not active. */
  #several({ descriptor, rule, hits, replaced }: SeveralOf, nowSeconds: number): Resolution {
    const limits: LimitedDescriptor[] = [];
    let kind: 'replaced' | 'inactive' = 'replaced';
    for (const bound of this.#bindLimits(rule)) {
      const limit = bound.limitOf(descriptor.entries);
      if (limit === undefined || isReplaced(bound.limit!, replaced)) continue;
      if (isInactive(limit, nowSeconds)) {
        kind = 'inactive';
        continue;
      }
      limits.push(limitedBy(bound, limit, descriptor, hits, nowSeconds));
    }
    return limits.length === 0 ? { kind, limited: undefined, rule } : new SeveralLimits(limits, rule);
  }

  #override(
    { request: { domain }, descriptor: { entries, isNegativeHits }, hits, rule }: Overriding,
    { requestsPerUnit, unit }: LimitOverride,
    nowSeconds: number,
  ): Resolution {
    if (unit === undefined) return NO_MATCH;
    const prefix = this.#options.cacheKeyPrefix;
    // An override of a rule with several limits replaces all of them.
    const { algorithm: ofRule } = rule?.limit ?? NO_LIMIT;
    const isKept = ofRule !== undefined && ofRule !== 'max_concurrent' && rule?.options.hasLimitList === false;
    const base = isKept ? rule : undefined;
    const { algorithm: name, burst } = base?.limit ?? NO_LIMIT;
    const kept = { algorithm: name, burst, postpaid: rule?.limit?.postpaid === true };
    const limit = limitOfOverride({ requestsPerUnit, unit }, kept, this.#options);
    const { algorithm } = limit;
    const path = entries.map(({ key, value }) => (value === '' ? `.${key}` : `.${key}_${value}`)).join('');
    const statistics = this.#statistics.runtimeRule(domain + path, `${domain}.${OVERRIDE_ROLL_UP}`);
    const key =
      algorithm === undefined
        ? cacheKeyBody(prefix, domain, entries, undefined) + limit.startOfWindow(nowSeconds)
        : taggedKey(prefix, cacheKeyBody('', domain, base ? countedEntries(base, entries) : entries, base), algorithm);
    const limited = new LimitedDescriptor(limit, key, statistics, hits, isNegativeHits);
    return { kind: 'limited', limited, rule: undefined };
  }

  /** Consults the local cache, and returns the remaining operations for the store. */
  #operations(resolutions: readonly Resolution[], nowSeconds: number): readonly LimitedDescriptor[] {
    // Mostly of its final length: V8 makes room for 17 elements when one is added to an empty array.
    const operations = new Array<LimitedDescriptor>(resolutions.length);
    let count = 0;
    for (const resolution of resolutions) {
      const { limited, limits } = resolution;
      if (limited === undefined) continue;
      if (limits !== undefined) {
        for (const each of this.#leftOf(limits, resolution.rule?.options.allOrNothing === true, nowSeconds)) {
          operations[count] = each;
          count += 1;
        }
      } else if (!this.#isOverInCache(limited, nowSeconds)) {
        operations[count] = limited;
        count += 1;
      }
    }
    if (count < operations.length) operations.length = count;
    const { stopIncrementWhenOverLimit, quotaMode } = this.#options;
    return stopIncrementWhenOverLimit ? stopIncrements(operations, resolutions, quotaMode) : operations;
  }

  /** Which of the limits of a rule with several need the store. */
  #leftOf(
    limits: readonly LimitedDescriptor[],
    allOrNothing: boolean,
    nowSeconds: number,
  ): readonly LimitedDescriptor[] {
    const left = limits.filter((each) => !this.#isOverInCache(each, nowSeconds));
    // Asks count on none of them, reports on all.
    if (!allOrNothing || limits[0]?.purpose !== undefined) return left;
    const group: Group | undefined = left.length === limits.length ? { mode: 'all_or_nothing' } : undefined;
    for (const each of left) {
      each.group = group;
      // One that is over keeps the call from counting: the others are only read.
      if (group === undefined) each.hits = 0;
    }
    return left;
  }

  /** Whether a limit needs no store, because the local cache has its counter as over it. */
  #isOverInCache(limited: LimitedDescriptor, nowSeconds: number): boolean {
    const { overLimitCache } = this.#context;
    // Hits that are given back do not end a block.
    if (limited.isNegative) overLimitCache.remove(limited.key);
    else if (mayBeKnown(limited))
      limited.isKnownOver = overLimitCache.isOver(limited.overKey, limited.limit.allowance, nowSeconds);
    return limited.isKnownOver;
  }

  #bind(rule: Rule): BoundRule {
    if (this.#isTrial) return new BoundRule(rule, this.#options, this.#statistics);
    const { bound } = rule;
    if (bound instanceof BoundRule && bound.statistics === this.#statistics) return bound;
    const created = new BoundRule(rule, this.#options, this.#statistics);
    rule.bound = created;
    return created;
  }

  #bindLimits(rule: Rule): readonly BoundRule[] {
    if (this.#isTrial) return new BoundLimits(rule, this.#options, this.#statistics).limits;
    const { bound } = rule;
    if (bound instanceof BoundLimits && bound.statistics === this.#statistics) return bound.limits;
    const created = new BoundLimits(rule, this.#options, this.#statistics);
    rule.bound = created;
    return created.limits;
  }
}

/** Whether a limit does not apply at a time. */
function isInactive({ schedule }: Limit, nowSeconds: number): boolean {
  return schedule !== undefined && !schedule.isActiveAt(nowSeconds);
}

/** Gives the limits of a descriptor what it is for on them. */
function servePurpose(resolution: Resolution, descriptor: Descriptor, request: RateLimitRequest): void {
  for (const limited of limitsOfResolution(resolution)) {
    const purpose = purposeOf(limited.limit.postpaid, descriptor, request);
    if (purpose !== undefined) limited.serve(purpose);
  }
}

/** Whether the local cache may answer: reports count in any case, and an algorithm may have room again for 0 hits. */
function mayBeKnown({ purpose, limit, callHits }: LimitedDescriptor): boolean {
  if (purpose !== undefined) return purpose === 'ask';
  return limit.algorithm === undefined || callHits > 0;
}

function limitedBy(
  bound: BoundRule,
  limit: Limit,
  { entries, isNegativeHits }: Descriptor,
  hits: number,
  nowSeconds: number,
): LimitedDescriptor {
  const shared = bound.sharedBy(entries);
  const key = bound.cacheKey(shared, entries, limit, nowSeconds);
  return new LimitedDescriptor(limit, key, shared.statistics, hits, isNegativeHits);
}

/** A descriptor that matches a rule with `rate_limits`. */
interface SeveralOf {
  /** With its entries as they are counted. */
  readonly descriptor: Descriptor;
  readonly rule: Rule;
  readonly hits: number;
  /** Names of limits that are not applied. */
  readonly replaced: Matches['replaced'];
}

/** A descriptor with a limit of its own. @property rule that it matches, if such a limit keeps anything of it */
interface Overriding {
  readonly request: RateLimitRequest;
  readonly descriptor: Descriptor;
  readonly hits: number;
  readonly rule: Rule | undefined;
}
