import type { AnsweringPolicy, JsonObject } from '../rules/rule-config';
import type { Counter } from '../statistics/counter';
import type { Operation } from '../counting/operation';
import { closedUntil, countHits, countOverByLocalCache, isUsedUp, judge, judgeOutcome, judgeServed } from './judge';
import { decisionsMetadata, dynamicMetadata } from './metadata';
import type { LimiterOptions } from './options';
import type { OverLimitCache } from './over-limit-cache';
import type { Descriptor, RateLimitRequest } from './request';
import { type LimitedDescriptor, type Resolution, SeveralLimits, limitsOfResolution } from './resolution';
import {
  Code,
  type DescriptorStatus,
  type HeaderValue,
  OverallCode,
  type Verdict,
  isStricter,
  responseHeaders,
  secondsToRetry,
} from './verdict';
import { MAX_UINT32 } from '../text/plain-number';
import { MOST_LIMITS, structuredHeaders } from './structured-headers';

const NO_HEADERS: readonly HeaderValue[] = [];
const NO_POLICIES: readonly AnsweringPolicy[] = [];

/** Says which policies have decided, because the store has not counted; sent with the other response headers. */
const DEGRADED_HEADER = 'x-ratelimit-degraded';

/** The status of a descriptor that no limit applies to. */
const NO_LIMIT: DescriptorStatus = Object.freeze({
  code: Code.OK,
  currentLimit: undefined,
  limitRemaining: 0,
  secondsUntilReset: undefined,
});

/** The status of a descriptor that matches an unlimited rule. */
const UNLIMITED: DescriptorStatus = Object.freeze({ ...NO_LIMIT, limitRemaining: MAX_UINT32 });

/** The status of a descriptor that `on_unmatched` denies. */
const DENIED: DescriptorStatus = Object.freeze({ ...NO_LIMIT, code: Code.OVER_LIMIT });

/** What the decisions of a limiter share. */
export interface DecisionContext {
  readonly options: LimiterOptions;
  readonly overLimitCache: OverLimitCache;
  /** `ratelimit.service.global_shadow_mode` */
  readonly globalShadowMode: Counter;
}

/**
 * One request while it is being decided: the resolutions of its descriptors, and the operations for the store. When
 * every operation has what the store or a policy fills in (see {@link Operation}), the caller asks for the
 * {@link verdict} once.
 */
export class Decision {
  /** The request that is decided. */
  readonly request: RateLimitRequest;
  readonly #context: DecisionContext;
  readonly #resolutions: readonly Resolution[];
  /** {@link OverLimitCache.removals} when its operations were made. */
  readonly #removals: number;
  #isOver = false;
  #isOverInShadow = false;
  #hasFailed = false;
  #policies: readonly AnsweringPolicy[] = NO_POLICIES;

  constructor(
    context: DecisionContext,
    request: RateLimitRequest,
    resolutions: readonly Resolution[],
    /** The operations for the store, in the order of the descriptors; empty if the store is not needed. */
    readonly operations: readonly LimitedDescriptor[],
    /** When it was begun, in Unix seconds: that decides which windows apply. */
    readonly nowSeconds: number,
  ) {
    this.#context = context;
    this.request = request;
    this.#resolutions = resolutions;
    this.#removals = context.overLimitCache.removals;
  }

  /** What applies to each descriptor, for logs; the counts are there once the decision has its verdict. */
  get resolutions(): readonly Resolution[] {
    return this.#resolutions;
  }

  /** Whether the verdict would be OVER_LIMIT without SHADOW_MODE. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether it is over a limit that is not enforced: its rule is in shadow mode, or not enforced for the caller. */
  get isOverInShadow(): boolean {
    return this.#isOverInShadow;
  }

  /**
   * The policies that have decided descriptors which the store has not counted, in the order of the descriptors, each
   * once.
   */
  get policies(): readonly AnsweringPolicy[] {
    return this.#policies;
  }

  /** How many reports are not counted, or perhaps not. What the policy `local` counts is added to the store later. */
  get lostReports(): number {
    return this.operations.filter(({ purpose, failure, countAfter, limit }) => {
      if (purpose !== 'report') return false;
      return failure === undefined ? countAfter < 0 : limit.onStoreFailure !== 'local';
    }).length;
  }

  /** Compares the counts with the limits, updates the statistics, and combines the statuses into a verdict. */
  verdict(): Verdict {
    const { options, globalShadowMode } = this.#context;
    const resolutions = this.#resolutions;
    // Of its final length, so that it does not have to grow.
    const statuses = new Array<DescriptorStatus>(resolutions.length);
    const overall = new OverallCode();
    for (let index = 0; index < resolutions.length; index += 1) {
      const resolution = resolutions[index] as Resolution;
      const status = this.#status(resolution, index);
      statuses[index] = status;
      overall.add(status.code, isQuota(resolution, options));
    }
    let overallCode = overall.code;
    this.#isOver = overallCode === Code.OVER_LIMIT;
    if (options.shadowMode && overallCode === Code.OVER_LIMIT) {
      overallCode = Code.OK;
      globalShadowMode.add(1);
    }
    return {
      overallCode,
      statuses,
      responseHeaders: hasHeaders(options) ? this.#headers(overallCode, statuses) : NO_HEADERS,
      dynamicMetadata: options.dynamicMetadata ? this.#metadata(statuses) : undefined,
    };
  }

  /**
   * The store has failed, or the caller did not wait for it. The hits are counted nevertheless. The store may have
   * subtracted negative hits although its answer came too late or was lost. If the caller did not wait, a verdict can
   * still follow.
   */
  failed(): void {
    for (const limited of this.operations) if (limited.isNegative) this.#forget(limited);
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    for (const resolution of this.#resolutions) limitsOfResolution(resolution).forEach(countHits);
  }

  /** Limits in shadow mode take part in the headers of draft 03, as in the Go service, and in no others. */
  #headers(overallCode: Code, statuses: readonly DescriptorStatus[]): readonly HeaderValue[] {
    const { options } = this.#context;
    const { responseHeaders: names, hasStructuredHeaders = false, hasRetryAfter = false } = options;
    const quotas = this.#resolutions.map((resolution) => isQuota(resolution, options));
    const headers = names === undefined ? [] : [...responseHeaders(names, statuses, quotas, this.nowSeconds)];
    if (hasStructuredHeaders) headers.push(...structuredHeaders(this.#shownStatuses(statuses), this.nowSeconds));
    const retryAfter = hasRetryAfter && overallCode === Code.OVER_LIMIT ? secondsToRetry(statuses, quotas) : undefined;
    if (retryAfter !== undefined) headers.push({ key: 'Retry-After', value: String(retryAfter) });
    if (this.#policies.length > 0 && (names !== undefined || hasStructuredHeaders)) {
      headers.push({ key: DEGRADED_HEADER, value: this.#policies.join(', ') });
    }
    return headers;
  }

  /** The statuses of the limits that are enforced, of each one of several; at least as many as are shown. */
  #shownStatuses(statuses: readonly DescriptorStatus[]): readonly DescriptorStatus[] {
    const shown: DescriptorStatus[] = [];
    for (let index = 0; index < statuses.length && shown.length < MOST_LIMITS; index += 1) {
      const resolution = this.#resolutions[index]!;
      const { limited } = resolution;
      if (limited === undefined || limited.limit.shadowMode) continue;
      if (resolution instanceof SeveralLimits) shown.push(...resolution.statuses);
      else shown.push(statuses[index]!);
    }
    return shown;
  }

  #forget({ key }: LimitedDescriptor): void {
    const { overLimitCache, options } = this.#context;
    overLimitCache.remove(key);
    if (options.localCacheBytes > 0) options.onForgotten?.(key);
  }

  #metadata(statuses: readonly DescriptorStatus[]): JsonObject {
    const metadata = dynamicMetadata(this.request, metadataOfAllowed(this.#resolutions, statuses));
    if (!this.#context.options.metadataDecisions) return metadata;
    return { ...metadata, decisions: decisionsMetadata(this.#resolutions, statuses) };
  }

  #status(resolution: Resolution, index: number): DescriptorStatus {
    const { limited } = resolution;
    if (limited === undefined) return statusWithoutLimit(resolution);
    if (resolution instanceof SeveralLimits) return this.#statusOfSeveral(resolution, index);
    const isOver = this.#isOverBy(limited);
    if (isOver) this.#addOffender(resolution, limited, index);
    return this.#statusOf(limited, isOver);
  }

  /**
   * The status of the most restrictive of several limits. Each limit has its statistics; the call is recorded
   * as limited at most once, for the limit that is shown.
   */
  #statusOfSeveral(resolution: SeveralLimits, index: number): DescriptorStatus {
    const { limits } = resolution;
    const statuses: DescriptorStatus[] = [];
    let shown: DescriptorStatus | undefined;
    let isShownOver = false;
    for (const limited of limits) {
      const isOver = this.#isOverBy(limited);
      const status = this.#statusOf(limited, isOver);
      statuses.push(status);
      if (shown !== undefined && !(isOver === isShownOver ? isStricter(status, shown, isOver) : isOver)) continue;
      shown = status;
      isShownOver = isOver;
      resolution.limited = limited;
    }
    resolution.statuses = statuses;
    if (isShownOver) this.#addOffender(resolution, resolution.limited, index);
    const { code, currentLimit, limitRemaining, secondsUntilReset } = shown!;
    const all = limits.map(({ limit }) => limit);
    return { code, currentLimit, limits: all, limitRemaining, secondsUntilReset };
  }

  /** Whether the call is over a limit, also in shadow mode. To be called once for each. */
  #isOverBy(limited: LimitedDescriptor): boolean {
    const isOver = limited.failure === undefined ? this.#judge(limited) : this.#byPolicy(limited);
    if (isOver && limited.limit.shadowMode) this.#isOverInShadow = true;
    return isOver;
  }

  /** Records the caller of a call over a limit; a call that a policy answers is over one only if it was counted. */
  #addOffender({ rule }: Resolution, limited: LimitedDescriptor, index: number): void {
    const { offenders } = this.#context.options;
    if (offenders === undefined || (limited.failure !== undefined && limited.limit.onStoreFailure !== 'local')) return;
    const { domain, descriptors } = this.request;
    const { entries } = descriptors[index] as Descriptor;
    offenders.add(limited, rule, domain, entries, this.nowSeconds);
  }

  #statusOf(limited: LimitedDescriptor, isOver: boolean): DescriptorStatus {
    const { limit } = limited;
    const code = isOver && !limit.shadowMode ? Code.OVER_LIMIT : Code.OK;
    const status =
      limit.isFixedWindow && limit.blockFor === undefined
        ? this.#statusInWindow(limited, code, isOver)
        : this.#statusByAlgorithm(limited, code, isOver);
    if (limit.schedule === undefined) return status;
    // When the limit stops to apply, calls pass.
    const left = limit.schedule.changesAfter(this.nowSeconds) - this.nowSeconds;
    return { ...status, secondsUntilReset: Math.min(status.secondsUntilReset!, left) };
  }

  #statusInWindow(limited: LimitedDescriptor, code: Code, isOver: boolean): DescriptorStatus {
    const { limit } = limited;
    const remaining = isOver ? 0 : Math.max(0, limit.requestsPerUnit - Math.max(0, limited.countAfter));
    return {
      code,
      currentLimit: limit,
      limitRemaining: limited.outcome?.remaining ?? remaining,
      secondsUntilReset: limit.endOfWindow(this.nowSeconds) - this.nowSeconds,
    };
  }

  /** Without an outcome, which is without the store, nothing is known to be left, nor whether anything is used. */
  #statusByAlgorithm(limited: LimitedDescriptor, code: Code, isOver: boolean): DescriptorStatus {
    const { limit, outcome } = limited;
    const { capacity, lengthSeconds } = limit;
    if (outcome !== undefined) {
      const { remaining: limitRemaining, blockedUntil } = outcome;
      const isOfWindow = limit.isFixedWindow && blockedUntil === undefined;
      const ofWindow = isOfWindow ? limit.endOfWindow(this.nowSeconds) - this.nowSeconds : undefined;
      return { code, currentLimit: limit, limitRemaining, secondsUntilReset: ofWindow ?? outcome.secondsUntilReset };
    }
    const left = this.#context.overLimitCache.secondsLeft(limited.overKey, this.nowSeconds);
    const secondsUntilReset = left ?? (limit.hasWindows ? lengthSeconds : 0);
    return { code, currentLimit: limit, limitRemaining: isOver ? 0 : capacity, secondsUntilReset };
  }

  /**
   * Whether the policy answers OVER_LIMIT. Except with `local`, that is no decision on a count: it moves no statistics
   * but those of all hits. In any case, the local cache does not learn of it.
   */
  #byPolicy(limited: LimitedDescriptor): boolean {
    const { limit, isNegative } = limited;
    const { onStoreFailure } = limit;
    if (onStoreFailure !== 'error' && !this.#policies.includes(onStoreFailure))
      this.#policies = [...this.#policies, onStoreFailure];
    if (onStoreFailure === 'local') {
      if (limited.countAfter < 0) this.#countLocally();
      return this.#judge(limited);
    }
    if (!this.#hasFailed) countHits(limited);
    if (isNegative) this.#forget(limited);
    return !isNegative && (onStoreFailure === 'deny' || limit.requestsPerUnit === 0);
  }

  /** Counts all operations of the policy `local` that the store has not counted, which may depend on each other. */
  #countLocally(): void {
    const uncounted = this.operations.filter(
      ({ failure, limit }) => failure !== undefined && limit.onStoreFailure === 'local',
    );
    this.#context.options.local?.count(uncounted, this.nowSeconds);
  }

  /**
   * The store has answered, or failed, after policies have decided the call.
   *
   * @param late the operations of which it had done neither by then: hits of others are kept already
   */
  endedLate(late: readonly Operation[]): void {
    this.#context.options.local?.keepUnsent(
      late.filter(({ isSent, limit }) => isSent && limit.onStoreFailure === 'local'),
      this.nowSeconds,
    );
  }

  /** What this process holds of a counter is left, too, for a call that only reads it, or subtracts from it. */
  #addHeld(limited: LimitedDescriptor): void {
    const { leaseTable } = this.#context.options;
    const { limit, outcome, countAfter } = limited;
    const stored = leaseTable?.without(outcome?.state ?? countAfter, limited);
    if (typeof stored === 'number') limited.countAfter = stored;
    else if (stored !== undefined) limited.outcome = limit.algorithm!.decide(stored, 0, limited.purpose);
  }

  /** A call of no hits, which is not negative. */
  #read(limited: LimitedDescriptor): void {
    const { limit, purpose, outcome, statistics } = limited;
    const { asked } = this.#context.options;
    if (limit.lease) this.#addHeld(limited);
    if (purpose === 'ask') asked?.asked(limit, statistics);
    else if (outcome !== undefined) asked?.readOnly(limit, this.nowSeconds);
  }

  #judge(limited: LimitedDescriptor): boolean {
    const { limit, statistics, callHits } = limited;
    // Only here, not before the store is asked, so that at any time the statistics of a rule agree.
    if (!this.#hasFailed) countHits(limited);
    if (limited.isNegative) {
      if (limit.lease) this.#addHeld(limited);
      // A decision that was counted before it, and settled since, may have added the key again.
      this.#forget(limited);
      return false;
    }
    if (limited.isKnownOver) {
      countOverByLocalCache(limit, callHits, statistics);
      if (limited.purpose === 'ask') statistics.asksDenied += 1;
      return true;
    }
    if (callHits === 0) this.#read(limited);
    const { outcome, purpose } = limited;
    const isOver =
      purpose !== undefined
        ? judgeServed(limited)
        : outcome === undefined
          ? judge(limit, callHits, limited.countAfter, statistics)
          : judgeOutcome(limited, outcome);
    // What others hold of a leased limit may come back: its leases remember for a moment that it is over.
    // Only the block of a limit that blocks is known: the next call over the limit starts it.
    const isKnown =
      limited.failure === undefined &&
      !limit.lease &&
      (limit.blockFor === undefined || outcome?.blockedUntil !== undefined) &&
      (purpose === undefined ? isOver : isUsedUp(limited));
    if (isKnown && !this.#context.overLimitCache.wasRemovedSince(this.#removals, limited.overKey)) {
      const nowSeconds = this.nowSeconds;
      const expiry = closedUntil(limit, outcome, nowSeconds);
      if (expiry > nowSeconds) this.#context.overLimitCache.add(limited.overKey, limit.allowance, expiry, nowSeconds);
    }
    return isOver;
  }
}

function hasHeaders({ responseHeaders: names, hasStructuredHeaders, hasRetryAfter }: LimiterOptions): boolean {
  return names !== undefined || hasStructuredHeaders === true || hasRetryAfter === true;
}

function statusWithoutLimit({ kind }: Resolution): DescriptorStatus {
  if (kind === 'denied') return DENIED;
  return kind === 'unlimited' ? UNLIMITED : NO_LIMIT;
}

/** Whether the status of a descriptor counts as that of a quota: see {@link OverallCode}. */
export function isQuota(resolution: Resolution, { quotaMode }: LimiterOptions): boolean {
  if (quotaMode) return resolution.kind !== 'unlimited';
  return resolution.limited !== undefined && resolution.limited.limit.options.quotaMode;
}

function metadataOfAllowed(resolutions: readonly Resolution[], statuses: readonly DescriptorStatus[]): JsonObject[] {
  const allowed: JsonObject[] = [];
  resolutions.forEach((resolution, index) => {
    if (resolution.limited === undefined || statuses[index]?.code === Code.OVER_LIMIT) return;
    if (resolution.rule?.metadata !== undefined) allowed.push(resolution.rule.metadata);
  });
  return allowed;
}
