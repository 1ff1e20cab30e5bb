import type { Limit } from '../counting/limit';
import type { JsonObject } from '../rules/rule-config';
import { wholeNumber } from '../text/plain-number';

/** The codes of `RateLimitResponse.Code`, by their numbers in the protocol. */
export const Code = { OK: 1, OVER_LIMIT: 2 } as const;
export type Code = (typeof Code)[keyof typeof Code];

/** The names of the codes in the protocol. */
export const CODE_NAMES: Readonly<Record<Code, keyof typeof Code>> = {
  [Code.OK]: 'OK',
  [Code.OVER_LIMIT]: 'OVER_LIMIT',
};

/** The result of a decision, which a server encodes as `envoy.service.ratelimit.v3.RateLimitResponse`. */
export interface Verdict {
  readonly overallCode: Code;
  /** One for each descriptor of the request, in its order. */
  readonly statuses: readonly DescriptorStatus[];
  /** Empty unless LIMIT_RESPONSE_HEADERS_ENABLED or LIMIT_RETRY_AFTER_ENABLED. */
  readonly responseHeaders: readonly HeaderValue[];
  /** Undefined unless RESPONSE_DYNAMIC_METADATA. */
  readonly dynamicMetadata: JsonObject | undefined;
}

export interface DescriptorStatus {
  readonly code: Code;
  /** Undefined if no limit applies to the descriptor, and for an unlimited rule. */
  readonly currentLimit: Limit | undefined;
  /** The limits of a rule with `rate_limits`, in its order; the other fields are those of the most restrictive one. */
  readonly limits?: readonly Limit[] | undefined;
  /** The remaining requests in the window, or the tokens left, exactly; 4294967295 for an unlimited rule. */
  readonly limitRemaining: number;
  /**
   * Whole seconds until the window ends, or as the algorithm says; undefined without a limit and for an unlimited rule.
   */
  readonly secondsUntilReset: number | undefined;
}

export interface HeaderValue {
  readonly key: string;
  readonly value: string;
}

/**
 * Combines the statuses into the overall code: OVER_LIMIT if any descriptor that is not a quota is over its limit, or
 * if there are quota descriptors and all of them are over their limits.
 */
export class OverallCode {
  #isOver = false;
  #quotas = 0;
  #quotasAllowed = 0;

  add(code: Code, isQuota: boolean): void {
    if (!isQuota) {
      if (code === Code.OVER_LIMIT) this.#isOver = true;
      return;
    }
    this.#quotas += 1;
    if (code === Code.OK) this.#quotasAllowed += 1;
  }

  get code(): Code {
    return this.#isOver || (this.#quotas > 0 && this.#quotasAllowed === 0) ? Code.OVER_LIMIT : Code.OK;
  }
}

/** The names of the three response headers, as they are sent. */
export interface ResponseHeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
  /** Whether the reset is the Unix time at which the window ends, instead of the seconds until then. */
  readonly isResetTime?: boolean;
}

/**
 * The limit, remaining and reset headers of one selected status: the last one that is over its limit and not of a quota
 * descriptor, otherwise the first of those with the fewest remaining requests, of which one that is over has none.
 * Empty if no status has a limit.
 *
 * @param quotas for each status, whether it is that of a quota descriptor
 */
export function responseHeaders(
  names: ResponseHeaderNames,
  statuses: readonly DescriptorStatus[],
  quotas: readonly boolean[],
  nowSeconds: number,
): readonly HeaderValue[] {
  const selected = select(statuses, quotas);
  if (selected?.currentLimit === undefined) return [];
  return [
    { key: names.limit, value: limitHeader(selected.currentLimit, selected.limits) },
    { key: names.remaining, value: String(wholeNumber(selected.limitRemaining)) },
    {
      key: names.reset,
      value: String((names.isResetTime === true ? nowSeconds : 0) + wholeNumber(selected.secondsUntilReset ?? 0)),
    },
  ];
}

/**
 * The whole seconds, rounded up, after which a call that was denied may pass: when all limits that deny it have begun a
 * new window, and one of the quotas if these deny it. Undefined if it is denied for lack of a limit.
 *
 * @param quotas for each status, whether it is that of a quota descriptor
 */
export function secondsToRetry(statuses: readonly DescriptorStatus[], quotas: readonly boolean[]): number | undefined {
  let ofLimits = 0;
  let ofQuotas = Infinity;
  let doQuotasDeny = quotas.includes(true);
  statuses.forEach(({ code, secondsUntilReset = Infinity }, index) => {
    const isOver = code === Code.OVER_LIMIT;
    if (quotas[index] !== true) ofLimits = Math.max(ofLimits, isOver ? secondsUntilReset : 0);
    else if (isOver) ofQuotas = Math.min(ofQuotas, secondsUntilReset);
    else doQuotasDeny = false;
  });
  const seconds = Math.max(1, ofLimits, doQuotasDeny ? ofQuotas : 0);
  return Number.isFinite(seconds) ? seconds : undefined;
}

/**
 * With the window's length in seconds where the unit alone does not say it: `10, 10;w=300`. Of a token bucket, the
 * burst comes first, as so much can be left: `50, 10;w=1;burst=50`. Of several limits, each one comes after that
 * number, if it has windows: `10, 10;w=1, 250;w=86400`.
 */
function limitHeader(limit: Limit, limits: readonly Limit[] | undefined): string {
  const { requestsPerUnit, unitMultiplier, burst } = limit;
  if (limits === undefined && unitMultiplier === 1 && burst === undefined) return String(wholeNumber(requestsPerUnit));
  return [
    wholeNumber(burst ?? requestsPerUnit),
    ...(limits ?? [limit]).filter(({ hasWindows }) => hasWindows).map(policyOf),
  ].join(', ');
}

function policyOf({ requestsPerUnit, unit, unitMultiplier, burst }: Limit): string {
  const policy = `${wholeNumber(requestsPerUnit)};w=${wholeNumber(unitMultiplier * unit.seconds)}`;
  return burst === undefined ? policy : `${policy};burst=${wholeNumber(burst)}`;
}

/**
 * Whether the status of one limit is more restrictive than that of another limit of its rule before it. One that is
 * over comes before those that are not, also in shadow mode; of those over, the one with the longest reset; of the
 * others, the one with the fewest left; of equal ones, the first.
 *
 * @param areOver whether both are over, or neither is
 */
export function isStricter(one: DescriptorStatus, other: DescriptorStatus, areOver: boolean): boolean {
  if (!areOver) return one.limitRemaining < other.limitRemaining;
  return (one.secondsUntilReset ?? 0) > (other.secondsUntilReset ?? 0);
}

function select(statuses: readonly DescriptorStatus[], quotas: readonly boolean[]): DescriptorStatus | undefined {
  let selected: DescriptorStatus | undefined;
  let fewest = Infinity;
  statuses.forEach((status, index) => {
    if (status.currentLimit === undefined) return;
    const isOver = status.code === Code.OVER_LIMIT;
    // A call that an algorithm denies may leave some for a smaller one.
    const left = isOver ? 0 : status.limitRemaining;
    if ((!isOver || quotas[index] === true) && left >= fewest) return;
    selected = status;
    fewest = left;
  });
  return selected;
}
