import type { Rule } from '../rules/rule-tree';
import type { LimitOverride } from './request';
import type { CurrentLimit } from './verdict';

/** A limit as a decision needs it: worked out once for a rule, or for each request that brings its own. */
export interface AppliedLimit {
  readonly requestsPerUnit: number;
  readonly windowSeconds: number;
  /** Counts above this are near the limit. */
  readonly nearThreshold: number;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** The limit as the answer shows it. */
  readonly currentLimit: CurrentLimit;
}

/**
 * The count above which hits are near the limit. In single precision, as the Go service works it out: with plain doubles 0.7 of
 * 90 would be 62, not 63.
 */
export function nearThreshold(requestsPerUnit: number, nearLimitRatio: number): number {
  return Math.floor(Math.fround(Math.fround(requestsPerUnit) * Math.fround(nearLimitRatio)));
}

/** The limit of a rule; undefined when the rule has none or is unlimited. */
export function limitOfRule({ limit, shadowMode, quotaMode }: Rule, nearLimitRatio: number): AppliedLimit | undefined {
  if (limit?.unit === undefined || limit.unlimited) return undefined;
  const { requestsPerUnit, unit, name } = limit;
  return {
    requestsPerUnit,
    windowSeconds: unit.seconds,
    nearThreshold: nearThreshold(requestsPerUnit, nearLimitRatio),
    shadowMode,
    quotaMode,
    currentLimit: { requestsPerUnit, unit, name },
  };
}

/** The limit that a request brought along: never in shadow mode, never a quota of its own, without a name. */
export function limitOfOverride(
  { requestsPerUnit, unit }: LimitOverride & { readonly unit: NonNullable<LimitOverride['unit']> },
  nearLimitRatio: number,
): AppliedLimit {
  return {
    requestsPerUnit,
    windowSeconds: unit.seconds,
    nearThreshold: nearThreshold(requestsPerUnit, nearLimitRatio),
    shadowMode: false,
    quotaMode: false,
    currentLimit: { requestsPerUnit, unit, name: '' },
  };
}
