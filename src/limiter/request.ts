import type { Entry } from '../rules/ruleset';
import type { Unit } from '../rules/unit';

export type { Entry } from '../rules/ruleset';

/** The `hitsAddend` of a descriptor without one: the request's applies. */
export const NO_HITS_ADDEND = -1;

/**
 * A decoded request, the same for all servers; field names and meaning are those of
 * `envoy.service.ratelimit.v3.RateLimitRequest`.
 */
export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** The hits of every descriptor without its own; 0 means 1. */
  readonly hitsAddend: number;
}

export interface Descriptor {
  readonly entries: readonly Entry[];
  /** A limit in the request; it overrides the rules. */
  readonly limit: LimitOverride | undefined;
  /**
   * The descriptor's own hits, 0 to check without counting, or {@link NO_HITS_ADDEND}. A 64-bit number in the protocol: a server
   * passes on a value above 2^53 - 1 rounded, and {@link checkRequest} rejects it.
   */
  readonly hitsAddend: number;
  /** The hits are subtracted, and the descriptor is never over its limit. */
  readonly isNegativeHits: boolean;
}

export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** Undefined if the request has UNKNOWN or an unknown number; rejected in a domain that has rules. */
  readonly unit: Unit | undefined;
}
