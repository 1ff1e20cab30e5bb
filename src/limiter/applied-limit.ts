import { type CalendarUnit, type CalendarWindows, calendarWindows } from '../rules/calendar';
import type { ALGORITHMS, FailurePolicy } from '../rules/rule-config';
import type { Rule, RuleLimit } from '../rules/rule-tree';
import { limitSuffix, plainStatisticsKey } from '../rules/statistics-key';
import type { Algorithm, AlgorithmLimit } from './algorithm';
import { windowStart } from './cache-key';
import { FixedWindow } from './fixed-window';
import type { LimitOverride } from './request';
import { SlidingWindow } from './sliding-window';
import { TokenBucket } from './token-bucket';
import type { CurrentLimit } from './verdict';

/** The settings of limits. */
export interface LimitOptions {
  /** NEAR_LIMIT_RATIO, from 0 to 1 */
  readonly nearLimitRatio: number;
  /** LIMIT_NAME_FROM_RULE: the path of a rule without a name is the name of its limit */
  readonly limitNameFromRule?: boolean;
  /** STORE_FAILURE_POLICY; undefined: `error` */
  readonly onStoreFailure?: FailurePolicy;
  /** What an operator tries instead of the requests per unit of every limit */
  readonly limitTried?: number | undefined;
}

/** A limit in the form that a decision needs: computed once per rule, or per request for a limit override. */
export interface AppliedLimit {
  /** The path of the rule in its file, as `/rlconfig` shows it: `domain.key_value.key2`. Empty for a limit override. */
  readonly path: string;
  /** Whether it is one of the `rate_limits` of its rule: all of them are counted in one place. */
  readonly isOneOfSeveral: boolean;
  readonly requestsPerUnit: number;
  /** Of a window of the calendar, nothing: see {@link calendar}. */
  readonly windowSeconds: number;
  /** Undefined: the window has a fixed length. */
  readonly calendar: CalendarWindows | undefined;
  /** Undefined: hits are counted in fixed windows. For these, there is one only in a rule with `all_or_nothing`. */
  readonly algorithm: Algorithm | undefined;
  /** The most hits that can count at once: `requestsPerUnit`, of a token bucket its burst. */
  readonly capacity: number;
  /** Counts above this value are near the limit. */
  readonly nearThreshold: number;
  readonly shadowMode: boolean;
  /** The share of the callers for which the limit is enforced, from 0 to 100; for the others, `shadowMode` is true. */
  readonly enforcePercent: number;
  readonly quotaMode: boolean;
  readonly onStoreFailure: FailurePolicy;
  /** The limit as the response contains it. */
  readonly currentLimit: CurrentLimit;
}

/**
 * The count above which hits are near the limit; at most the limit. Computed in single precision, as in the Go service: in double
 * precision, 0.7 of 90 would be 62 instead of 63.
 */
export function nearThreshold(requestsPerUnit: number, nearLimitRatio: number): number {
  const threshold = Math.floor(Math.fround(Math.fround(requestsPerUnit) * Math.fround(nearLimitRatio)));
  // Single precision rounds limits above 2^24 up, too.
  return Math.min(requestsPerUnit, threshold);
}

/** Makes the algorithm of a limit. */
export function algorithmOf(limit: AlgorithmLimit): Algorithm {
  if (limit.name === 'fixed_window') return new FixedWindow(limit);
  return limit.name === 'token_bucket' ? new TokenBucket(limit) : new SlidingWindow(limit);
}

/** A limit of a rule; undefined when it is unlimited, or none. */
export function limitOfRule(rule: Rule, limit: RuleLimit | undefined, options: LimitOptions): AppliedLimit | undefined {
  const { shadowMode, enforcePercent = 100, quotaMode } = rule;
  if (limit?.unit === undefined || limit.unlimited) return undefined;
  const { limitNameFromRule = false, onStoreFailure = 'error', limitTried } = options;
  const { requestsPerUnit: configured, unit, unitMultiplier, calendar, name } = limit;
  const requestsPerUnit = limitTried ?? configured;
  const counting = {
    algorithm: limit.algorithm ?? (rule.allOrNothing ? 'fixed_window' : undefined),
    burst: limit.burst,
  } as const;
  const path = plainStatisticsKey(rule);
  return {
    path,
    isOneOfSeveral: rule.limits !== undefined,
    shadowMode,
    enforcePercent: shadowMode ? 100 : enforcePercent,
    quotaMode,
    onStoreFailure: usable(rule.onStoreFailure ?? onStoreFailure, counting),
    ...countedBy(
      counting,
      {
        requestsPerUnit,
        unit,
        unitMultiplier,
        calendar,
        name: name === '' && limitNameFromRule ? path + limitSuffix(rule, limit) : name,
      },
      options,
    ),
  };
}

/**
 * A limit override of a request: without shadow mode, quota mode and name.
 *
 * @param rule the limit of the rule that the descriptor matches, if it has an algorithm
 */
export function limitOfOverride(
  { requestsPerUnit: sent, unit }: LimitOverride & { readonly unit: NonNullable<LimitOverride['unit']> },
  rule: RuleLimit | undefined,
  options: LimitOptions,
): AppliedLimit {
  const requestsPerUnit = options.limitTried ?? sent;
  return {
    path: '',
    isOneOfSeveral: false,
    shadowMode: false,
    enforcePercent: 100,
    quotaMode: false,
    onStoreFailure: usable(options.onStoreFailure ?? 'error', rule),
    ...countedBy(rule, { requestsPerUnit, unit, unitMultiplier: 1, name: '' }, options),
  };
}

/** `local` counts in fixed windows only. */
function usable(policy: FailurePolicy, counting: Counting | undefined): FailurePolicy {
  return policy === 'local' && counting?.algorithm !== undefined ? 'error' : policy;
}

/** The algorithm that decides a limit, if there is one. */
interface Counting {
  readonly algorithm?: (typeof ALGORITHMS)[number] | undefined;
  readonly burst?: number | undefined;
}

/** How a limit counts. */
function countedBy(
  counting: Counting | undefined,
  limit: CurrentLimit,
  { nearLimitRatio }: LimitOptions,
): Pick<
  AppliedLimit,
  'requestsPerUnit' | 'windowSeconds' | 'calendar' | 'algorithm' | 'capacity' | 'nearThreshold' | 'currentLimit'
> {
  const { requestsPerUnit, unit, unitMultiplier } = limit;
  const windowSeconds = unitMultiplier * unit.seconds;
  const calendar = limit.calendar && calendarWindows(unit.name as CalendarUnit, limit.calendar);
  const common = { requestsPerUnit, windowSeconds, calendar };
  const name = counting?.algorithm;
  if (name === undefined) {
    const capacity = requestsPerUnit;
    return {
      ...common,
      algorithm: undefined,
      capacity,
      nearThreshold: nearThreshold(capacity, nearLimitRatio),
      currentLimit: limit,
    };
  }
  const algorithm = algorithmOf({ ...common, name, burst: counting?.burst });
  const { capacity } = algorithm;
  return {
    ...common,
    algorithm,
    capacity,
    nearThreshold: nearThreshold(capacity, nearLimitRatio),
    currentLimit:
      name === 'fixed_window'
        ? limit
        : { ...limit, algorithm: name, ...(capacity !== requestsPerUnit && { burst: capacity }) },
  };
}

/** Also where an algorithm decides them together with other limits. */
export function countsInFixedWindows({ currentLimit }: AppliedLimit): boolean {
  return currentLimit.algorithm === undefined;
}

/** When the window of a limit that contains a time has begun, in Unix seconds. */
export function startOfWindow({ calendar, windowSeconds }: AppliedLimit, nowSeconds: number): number {
  return calendar === undefined ? windowStart(nowSeconds, windowSeconds) : calendar.at(nowSeconds).start;
}

/** When it ends. */
export function endOfWindow({ calendar, windowSeconds }: AppliedLimit, nowSeconds: number): number {
  return calendar === undefined ? windowStart(nowSeconds, windowSeconds) + windowSeconds : calendar.at(nowSeconds).end;
}
