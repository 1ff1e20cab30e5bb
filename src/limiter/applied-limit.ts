import type { FailurePolicy } from '../rules/rule-config';
import type { Rule } from '../rules/rule-tree';
import { plainStatisticsKey } from '../rules/statistics-key';
import type { LimitOverride } from './request';
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
  readonly requestsPerUnit: number;
  readonly windowSeconds: number;
  /** Counts above this value are near the limit. */
  readonly nearThreshold: number;
  readonly shadowMode: boolean;
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

/** The limit of a rule; undefined when the rule has none or is unlimited. */
export function limitOfRule(
  rule: Rule,
  { nearLimitRatio, limitNameFromRule = false, onStoreFailure = 'error', limitTried }: LimitOptions,
): AppliedLimit | undefined {
  const { limit, shadowMode, quotaMode } = rule;
  if (limit?.unit === undefined || limit.unlimited) return undefined;
  const { requestsPerUnit: configured, unit, unitMultiplier, name } = limit;
  const requestsPerUnit = limitTried ?? configured;
  const path = plainStatisticsKey(rule);
  return {
    path,
    requestsPerUnit,
    windowSeconds: unitMultiplier * unit.seconds,
    nearThreshold: nearThreshold(requestsPerUnit, nearLimitRatio),
    shadowMode,
    quotaMode,
    onStoreFailure: rule.onStoreFailure ?? onStoreFailure,
    currentLimit: { requestsPerUnit, unit, unitMultiplier, name: name === '' && limitNameFromRule ? path : name },
  };
}

/** A limit override of a request: without shadow mode, quota mode and name. */
export function limitOfOverride(
  { requestsPerUnit: sent, unit }: LimitOverride & { readonly unit: NonNullable<LimitOverride['unit']> },
  { nearLimitRatio, onStoreFailure = 'error', limitTried }: LimitOptions,
): AppliedLimit {
  const requestsPerUnit = limitTried ?? sent;
  return {
    path: '',
    requestsPerUnit,
    windowSeconds: unit.seconds,
    nearThreshold: nearThreshold(requestsPerUnit, nearLimitRatio),
    shadowMode: false,
    quotaMode: false,
    onStoreFailure,
    currentLimit: { requestsPerUnit, unit, unitMultiplier: 1, name: '' },
  };
}
