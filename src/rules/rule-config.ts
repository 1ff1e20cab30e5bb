import type { AddressPrefix } from './networks';
import type { ActiveConfig, BlockConfig, CalendarConfig, UnitName } from './unit';

/** A JSON value: the type of a rule's `metadata`. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/**
 * The checked rules of one domain in one file as plain data: every form of configuration (a YAML file, an xDS resource)
 * is read into this, and {@link buildRuleset} builds a ruleset from it. It survives a structured clone.
 */
export interface DomainConfig {
  readonly domain: string;
  /**
   * Where the rules are: the file, relative to the rule folder; for xDS, the name of the resource. Undefined: that is
   * not known.
   */
  readonly file?: string | undefined;
  readonly descriptors: readonly RuleConfig[];
  /**
   * What applies to descriptors that match no rule, as a rule with the key `default_rate_limit`, or with the key
   * `on_unmatched` and the value `deny`; undefined: nothing.
   */
  readonly unmatched?: RuleConfig | undefined;
}

/** A rule: one item of `descriptors`. */
export interface RuleConfig {
  /** Never empty. */
  readonly key: string;
  /** Empty: any value matches, unless one of the three below is given. May contain wildcards (`*`). */
  readonly value: string;
  /** At least one value, each one not empty, and none twice. */
  readonly valueIn?: readonly string[] | undefined;
  /** A network in CIDR notation, without bits after the prefix. */
  readonly valueCidr?: string | undefined;
  /** A regular expression in RE2 syntax. */
  readonly valueRegex?: string | undefined;
  /**
   * None, because the rule allows everything or only contains nested rules; that of `rate_limit`; or those of
   * `rate_limits`.
   */
  readonly limits: readonly RuleLimit[];
  readonly options: RuleOptions;
  readonly metadata: JsonObject | undefined;
  readonly descriptors: readonly RuleConfig[];
  /** The line of the `key` in the file, counted from 1; 0 in a source without lines, such as an xDS resource. */
  readonly line?: number;
  /** Counted from 1, in characters; 0 in a source without lines. */
  readonly column?: number;
}

/** How a rule counts and reports, apart from its limits. Rules with the same options share one object. */
export interface RuleOptions {
  /**
   * Whether the limits are those of `rate_limits`: their statistics and keys are other ones than those of `rate_limit`,
   * also of a single one.
   */
  readonly hasLimitList: boolean;
  /** A call that one of the limits denies counts on none of them. */
  readonly allOrNothing: boolean;
  readonly shadowMode: boolean;
  /** For which share of the callers the limit is enforced, from 0 to 100; undefined: for all. */
  readonly enforcePercent: number | undefined;
  readonly quotaMode: boolean;
  /** Undefined: STORE_FAILURE_POLICY decides. */
  readonly onStoreFailure: FailurePolicy | undefined;
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly shareThreshold: boolean;
  /** Values that are addresses are counted by networks of so many bits; undefined: as they are sent. */
  readonly addressPrefix: AddressPrefix | undefined;
}

/** The options of most rules. */
export const DEFAULT_RULE_OPTIONS: RuleOptions = {
  hasLimitList: false,
  allOrNothing: false,
  shadowMode: false,
  enforcePercent: undefined,
  quotaMode: false,
  onStoreFailure: undefined,
  detailedMetric: false,
  valueToMetric: false,
  shareThreshold: false,
  addressPrefix: undefined,
};

/**
 * How calls are answered that the store does not count: they fail, or are within their limits, or over them, or are
 * counted in this instance.
 */
export const FAILURE_POLICIES = ['error', 'allow', 'deny', 'local'] as const;
export type FailurePolicy = (typeof FAILURE_POLICIES)[number];
/** The failure policies that answer a call instead of failing it. */
export type AnsweringPolicy = Exclude<FailurePolicy, 'error'>;

/** How a limit counts. */
export const ALGORITHMS = ['fixed_window', 'sliding_window', 'token_bucket'] as const;
/** What does not count in windows of the clock. `max_concurrent`, a field of its own, counts open reservations. */
export type AlgorithmName = Exclude<(typeof ALGORITHMS)[number], 'fixed_window'> | 'max_concurrent';

/**
 * The largest `requests_per_unit` of a fixed window. A counter saturates at 2^53 − 1, which has to be over every limit,
 * also where the hits of a pipeline window are added at once.
 */
export const LARGEST_LIMIT = 1e15;

/** A limit of a rule: a `rate_limit` block. Rules with the same limits share one list of them. */
export interface RuleLimit {
  /** Undefined only if unlimited, or if `on_unmatched` denies. */
  readonly unit: UnitName | undefined;
  /** How many units the window has, a whole number of at least 1. */
  readonly unitMultiplier: number;
  /** Undefined: the window has a fixed length. */
  readonly calendar?: CalendarConfig | undefined;
  /** A whole number from 0 to {@link LARGEST_LIMIT}, with an algorithm to 4294967295; 0 when unlimited. */
  readonly requestsPerUnit: number;
  /** Undefined: hits are counted in fixed windows. */
  readonly algorithm?: AlgorithmName | undefined;
  /** The size of a token bucket, a whole number of at least 1; undefined: `requestsPerUnit`. */
  readonly burst?: number | undefined;
  /** Whether calls ask without hits, and report hits afterwards, which count also beyond the limit. */
  readonly postpaid: boolean;
  /** Whether its hits may be leased; undefined: LEASES decides. */
  readonly lease?: boolean | undefined;
  /** Undefined: the limit always applies. */
  readonly active?: ActiveConfig | undefined;
  /** Undefined: only calls that are over the limit are denied. */
  readonly blockFor?: BlockConfig | undefined;
  readonly unlimited: boolean;
  /** Empty: other rules cannot replace this one. */
  readonly name: string;
  /** Names of the rules that this one replaces. */
  readonly replaces: readonly string[];
}

/** The limit of `on_unmatched: deny`, which counts nothing: every field as where a rule file leaves it out. */
export const NO_LIMIT: RuleLimit = {
  unlimited: false,
  unit: undefined,
  unitMultiplier: 1,
  calendar: undefined,
  requestsPerUnit: 0,
  algorithm: undefined,
  burst: undefined,
  postpaid: false,
  lease: undefined,
  active: undefined,
  blockFor: undefined,
  name: '',
  replaces: [],
};

/** The fields that `/rlconfig` shows after the number of requests, by their names in rule files. */
export const SHOWN_AFTER_NUMBER = [
  'algorithm',
  'burst',
  'postpaid',
  'lease',
] as const satisfies readonly (keyof RuleLimit)[];

/** The name of a field in rule files: `requests_per_unit` of `requestsPerUnit`. */
export function nameInFiles(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Where a rule is configured. */
export interface RulePlace {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}
