import type { Unit } from '../rules/unit';

/** `hits_addend` of a descriptor that sends none: the request's counts then. */
export const NO_HITS_ADDEND = -1;

/**
 * A question: may this pass? Every door decodes into this shape; field names and meaning are those of
 * `envoy.service.ratelimit.v3.RateLimitRequest`.
 */
export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** Hits of every descriptor without its own; 0 means 1. */
  readonly hitsAddend: number;
}

export interface Descriptor {
  readonly entries: readonly Entry[];
  /** A limit that the caller brings along; it replaces whatever the rules say. */
  readonly limit: LimitOverride | undefined;
  /**
   * This descriptor's own hits, 0 to ask without counting, or {@link NO_HITS_ADDEND}. A 64-bit number on the wire: a door
   * passes one above 2^53 - 1 on as it rounds, and {@link checkRequest} refuses it.
   */
  readonly hitsAddend: number;
  /** Subtract the hits, and never be over. */
  readonly isNegativeHits: boolean;
}

export interface Entry {
  readonly key: string;
  readonly value: string;
}

export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** Undefined when the caller sent UNKNOWN or a number that is no unit; refused in a known domain. */
  readonly unit: Unit | undefined;
}
