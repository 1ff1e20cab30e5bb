import type { JsonObject } from '../rules/rule-config';
import type { Rule } from '../rules/rule-tree';
import type { Counter } from '../statistics/counter';
import { windowStart } from './cache-key';
import { dynamicMetadata } from './dynamic-metadata';
import type { LimitedDescriptor } from './limited-descriptor';
import { countOverByLocalCache, judge } from './judge';
import type { LimiterOptions } from './options';
import type { OverLimitCache } from './over-limit-cache';
import { OverallCode } from './overall-code';
import type { RateLimitRequest } from './request';
import { responseHeaders } from './response-headers';
import { Code, type DescriptorStatus, type HeaderValue, type Verdict } from './verdict';

const MAX_UINT32 = 4294967295;
const NO_HEADERS: readonly HeaderValue[] = [];

/** The status of a descriptor that no limit applies to. */
const NO_LIMIT: DescriptorStatus = Object.freeze({
  code: Code.OK,
  currentLimit: undefined,
  limitRemaining: 0,
  secondsUntilReset: undefined,
});

/** The status of a descriptor that meets an unlimited rule (document 1, rule 9). */
const UNLIMITED: DescriptorStatus = Object.freeze({ ...NO_LIMIT, limitRemaining: MAX_UINT32 });

/** What a descriptor met: a limit, an unlimited rule, or nothing that limits it. */
export type Resolution = { readonly item: LimitedDescriptor; readonly rule: Rule | undefined } | 'unlimited' | 'none';

/** What all decisions of a limiter share. */
export interface DecisionContext {
  readonly options: LimiterOptions;
  readonly overLimitCache: OverLimitCache;
  /** `ratelimit.service.global_shadow_mode` */
  readonly globalShadowMode: Counter;
}

/**
 * One request on its way to a verdict: what each of its descriptors met, and which counts it waits for. The counts come
 * back into the operations' `after`; then {@link verdict} is asked for, once.
 */
export class Decision {
  readonly #context: DecisionContext;
  readonly #request: RateLimitRequest;
  readonly #resolutions: readonly Resolution[];
  readonly #nowSeconds: number;
  constructor(
    context: DecisionContext,
    request: RateLimitRequest,
    resolutions: readonly Resolution[],
    /** What the store has to be asked, in the order of the descriptors; empty when nothing. */
    readonly operations: readonly LimitedDescriptor[],
    nowSeconds: number,
  ) {
    this.#context = context;
    this.#request = request;
    this.#resolutions = resolutions;
    this.#nowSeconds = nowSeconds;
  }

  /** Judges the counts, moves the statistics, and folds the statuses into an answer. */
  verdict(): Verdict {
    const { options, globalShadowMode } = this.#context;
    const resolutions = this.#resolutions;
    const statuses: DescriptorStatus[] = [];
    const overall = new OverallCode();
    for (const resolution of resolutions) {
      const status = this.#status(resolution);
      statuses.push(status);
      overall.add(status.code, isQuota(resolution, options));
    }
    let overallCode = overall.code;
    if (options.shadowMode && overallCode === Code.OVER_LIMIT) {
      overallCode = Code.OK;
      globalShadowMode.add(1);
    }
    return {
      overallCode,
      statuses,
      responseHeaders:
        options.responseHeaders === undefined
          ? NO_HEADERS
          : responseHeaders(
              options.responseHeaders,
              statuses,
              resolutions.map((resolution) => isQuota(resolution, options)),
            ),
      dynamicMetadata: options.dynamicMetadata
        ? dynamicMetadata(this.#request, metadataOfPassed(resolutions, statuses))
        : undefined,
    };
  }

  #status(resolution: Resolution): DescriptorStatus {
    if (resolution === 'none') return NO_LIMIT;
    if (resolution === 'unlimited') return UNLIMITED;
    const { item } = resolution;
    const { applied } = item;
    const isOver = this.#judge(item);
    return {
      code: isOver && !applied.shadowMode ? Code.OVER_LIMIT : Code.OK,
      currentLimit: applied.currentLimit,
      limitRemaining: isOver ? 0 : Math.max(0, applied.requestsPerUnit - item.after),
      secondsUntilReset: applied.windowSeconds - (this.#nowSeconds % applied.windowSeconds),
    };
  }

  #judge(item: LimitedDescriptor): boolean {
    const { applied, statistics, callHits } = item;
    if (item.isNegative) return false;
    if (item.overByLocalCache) {
      countOverByLocalCache(applied, callHits, statistics);
      return true;
    }
    const isOver = judge(applied, callHits, item.after, statistics);
    if (isOver) {
      const nowSeconds = this.#nowSeconds;
      const windowEnd = windowStart(nowSeconds, applied.windowSeconds) + applied.windowSeconds;
      this.#context.overLimitCache.add(item.key, applied.requestsPerUnit, windowEnd, nowSeconds);
    }
    return isOver;
  }
}

function isQuota(resolution: Resolution, { quotaMode }: LimiterOptions): boolean {
  if (quotaMode) return resolution !== 'unlimited';
  return typeof resolution === 'object' && resolution.item.applied.quotaMode;
}

function metadataOfPassed(resolutions: readonly Resolution[], statuses: readonly DescriptorStatus[]): JsonObject[] {
  const passed: JsonObject[] = [];
  resolutions.forEach((resolution, index) => {
    if (typeof resolution !== 'object' || statuses[index]?.code === Code.OVER_LIMIT) return;
    if (resolution.rule?.metadata !== undefined) passed.push(resolution.rule.metadata);
  });
  return passed;
}
