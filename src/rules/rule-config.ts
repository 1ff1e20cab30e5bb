import type { UnitName } from './unit';

/** A JSON value: what `metadata` of a rule holds. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/**
 * One domain's rules, checked, as plain data: what every form of a configuration (a YAML file, an xDS resource) is read
 * into, and what {@link buildRuleset} makes a ruleset of. It survives a structured clone.
 */
export interface DomainConfig {
  readonly domain: string;
  readonly descriptors: readonly RuleConfig[];
}

/** A rule: one `descriptors` item of document 1, section 2.1. */
export interface RuleConfig {
  /** Never empty. */
  readonly key: string;
  /** Empty: any value matches. May hold `*`. */
  readonly value: string;
  /** Absent: whitelisted, or a placeholder for the nested rules. */
  readonly rateLimit: RateLimitConfig | undefined;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly shareThreshold: boolean;
  readonly metadata: JsonObject | undefined;
  readonly descriptors: readonly RuleConfig[];
}

/** A `rate_limit` block. */
export interface RateLimitConfig {
  /** Undefined only when unlimited. */
  readonly unit: UnitName | undefined;
  /** A whole number from 0 to 4294967295; 0 when unlimited. */
  readonly requestsPerUnit: number;
  readonly unlimited: boolean;
  /** Empty: other rules cannot replace this one. */
  readonly name: string;
  /** Names of the rules that this one replaces. */
  readonly replaces: readonly string[];
}
