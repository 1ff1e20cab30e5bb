import type { Json } from '../../rules/rule-config';
import type { RulePlace } from '../../rules/rule-place';
import type { UnitName } from '../../rules/unit';

/**
 * What operators see and change of a running service. Parameters and results are plain JSON, apart from lists that arrive in parts, so
 * that a process can forward them to another one. A method rejects with a `DecisionError` when the counter store fails.
 */
export interface Operator {
  /** The active rules; undefined when there is no such domain. @param domain undefined: all domains */
  rules(domain: string | undefined): Promise<RuleListing | undefined>;
  /** The current values of all statistics, in parts. */
  statistics(): AsyncIterable<readonly (readonly [name: string, value: number])[]>;
  health(): Promise<{ readonly healthy: boolean; readonly unhealthy: readonly string[] }>;
  /** The settings with their values, without secrets. */
  settings(): Promise<readonly ListedSetting[]>;
}

/** The active rules and their origin. */
export interface RuleListing {
  /** Null before the first successful load. */
  readonly loaded: {
    readonly source: string;
    readonly version: string;
    /** When they were loaded, in the format of ISO 8601. */
    readonly at: string;
    /** How many there are, of all domains. */
    readonly rules: number;
  } | null;
  /** The last load after that, if it was rejected. */
  readonly rejected: { readonly reason: string; readonly at: string } | null;
  /** The domains and their rules, each parent before its children, in parts. */
  readonly items: AsyncIterable<readonly (ListedDomain | ListedRule)[]>;
}

/** The rules that follow belong to this domain. */
export interface ListedDomain {
  readonly domain: string;
}

/** A rule. Those after it with a greater depth are nested in it. */
export interface ListedRule {
  /** 0 at the top level of a domain. */
  readonly depth: number;
  readonly key: string;
  /** Empty: any value matches. May contain wildcards. */
  readonly value: string;
  /** Null when it is not known. */
  readonly place: RulePlace | null;
  /** Null for a rule that only allows, or only contains others. */
  readonly limit: ListedLimit | null;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  readonly shareThreshold: boolean;
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly metadata: Json;
  /** Without request values, escaped as in the names of statistics. */
  readonly statisticsKey: string;
  /** What was counted for the rule since the start of the process. Null without a limit. */
  readonly totals: RuleTotals | null;
}

/** The `rate_limit` of a rule. */
export interface ListedLimit {
  readonly unlimited: boolean;
  /** Null when unlimited, as is the number. */
  readonly unit: UnitName | null;
  readonly requestsPerUnit: number | null;
  readonly name: string;
  readonly replaces: readonly string[];
}

/** In hits, not in calls. */
export interface RuleTotals {
  readonly hits: number;
  readonly within: number;
  readonly near: number;
  readonly over: number;
  /** Those of `over` that the local cache has answered. */
  readonly overByLocalCache: number;
  /** Hits over the limit that shadow mode has allowed. */
  readonly shadow: number;
}

/** A setting. */
export interface ListedSetting {
  /** The variable that sets it, or else its neutral name. */
  readonly name: string;
  readonly source: 'environment' | 'default';
  /** As a user would write it; `***` for a secret, null when there is none. */
  readonly value: string | null;
}
