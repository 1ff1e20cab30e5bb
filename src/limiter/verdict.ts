import type { JsonObject } from '../rules/rule-config';
import type { Unit } from '../rules/unit';

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
  /** Empty unless LIMIT_RESPONSE_HEADERS_ENABLED. */
  readonly responseHeaders: readonly HeaderValue[];
  /** Undefined unless RESPONSE_DYNAMIC_METADATA. */
  readonly dynamicMetadata: JsonObject | undefined;
}

export interface DescriptorStatus {
  readonly code: Code;
  /** Undefined if no limit applies to the descriptor, and for an unlimited rule. */
  readonly currentLimit: CurrentLimit | undefined;
  /** The remaining requests in the window; 4294967295 for an unlimited rule. */
  readonly limitRemaining: number;
  /** Whole seconds until the window ends; undefined without a limit and for an unlimited rule. */
  readonly secondsUntilReset: number | undefined;
}

export interface CurrentLimit {
  readonly requestsPerUnit: number;
  readonly unit: Unit;
  /** The rule's `name`; without one, its path with LIMIT_NAME_FROM_RULE. Otherwise empty, as for a limit override. */
  readonly name: string;
}

export interface HeaderValue {
  readonly key: string;
  readonly value: string;
}
