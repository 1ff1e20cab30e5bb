import type { Descriptor } from '../limiter/request';
import type { AnsweringPolicy, FailurePolicy, Json, RuleLimit, RulePlace } from '../rules/rule-config';
import type { OpenReservation } from '../streams/ports/reservations';
import type { UnitName } from '../rules/unit';
import type { RuleOrigin } from '../streams/ports/rule-source';

/** Which counter is meant. */
export interface CounterQuery {
  readonly domain: string;
  /** Its hits mean nothing here. */
  readonly descriptor: Descriptor;
  /**
   * Which limit of a rule with `rate_limits`: its window, as in the keys of statistics: `second`, `5minute`. Undefined:
   * the first one is read, and none is changed.
   */
  readonly window?: string | undefined;
}

/** A descriptor has no counter. */
export interface NoCounter {
  /** Why: one sentence. */
  readonly reason: string;
  readonly nearest: Explanation['descriptors'][number]['nearest'];
  /** Of a rule with several limits, of which one must be chosen, their windows. */
  readonly windows?: readonly string[];
}

/** The fields of a limit as answers have them: null where a rule file says nothing. */
type Answered<Fields> = {
  readonly [Name in keyof Fields]-?: undefined extends Fields[Name]
    ? Exclude<Fields[Name], undefined> | null
    : Fields[Name];
};

/** The limit that a counter is compared with; its `burst` is null except for a token bucket, which always has one. */
export interface LimitOfCounter extends Answered<Omit<RuleLimit, 'unit' | 'lease' | 'unlimited' | 'replaces'>> {
  readonly unit: UnitName;
}

export interface CounterState extends LimitOfCounter {
  readonly cacheKey: string;
  /** Null for a limit sent with the request. */
  readonly rule: RuleReference | null;
  /** The window of the limit, and those of all limits of the rule: see {@link CounterQuery.window}. */
  readonly window: string;
  readonly windows: readonly string[];
  /** Of a token bucket, the tokens left; of a sliding window, the hits that count. */
  readonly count: number;
  /** The hits of it that this instance holds for later calls. Null: it leases none of this limit. */
  readonly leased: number | null;
  /** Whole seconds until the store removes the counter; null when there is none, or the store cannot report it. */
  readonly timeToLive: number | null;
  /** With an algorithm, the present. */
  readonly windowStart: string;
  /** With an algorithm, when no hits will count. */
  readonly windowEnd: string;
  /** Whether the local cache of this process has the counter as over its limit. */
  readonly isInLocalCache: boolean;
  /** Null where there can be none, or where they cannot be read. */
  readonly openReservations: CounterReservations | null;
}

/** The open reservations of a counter, of which those that expire first are listed. */
export interface CounterReservations {
  readonly count: number;
  readonly first: readonly (Omit<OpenReservation, 'expiresAt'> & { readonly expiresAt: string })[];
}

export interface CounterChange extends CounterState {
  readonly countBefore: number;
}

/** The origin of the active rules. */
export interface RulesOrigin {
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
}

/** The active rules. */
export interface RulesAnswer extends RulesOrigin {
  readonly domains: readonly (ListedDomain & { readonly descriptors: readonly NestedRule[] })[];
}

export type NestedRule = Omit<ListedRule, 'depth'> & { readonly descriptors: readonly NestedRule[] };

export interface ListedDomain {
  readonly domain: string;
  /** What applies to descriptors that match no rule; null: nothing. */
  readonly unmatched: NestedRule | null;
}

/** A rule. Those after it with a greater depth are nested in it. */
export interface ListedRule {
  /** 0 at the top level of a domain. */
  readonly depth: number;
  readonly key: string;
  /** Empty: any value matches. May contain wildcards. Of the three below, their text. */
  readonly value: string;
  readonly valueIn: readonly string[] | null;
  readonly valueCidr: string | null;
  readonly valueRegex: string | null;
  /** Null when it is not known. */
  readonly place: RulePlace | null;
  /** Null for a rule that only allows, or only contains others, and for `on_unmatched`. */
  readonly limit: ListedLimit | null;
  /** Those of a rule with `rate_limits`, the first of which is `limit`; null for any other rule. */
  readonly limits: readonly ListedLimit[] | null;
  /** A call that one of `limits` denies counts on none of them. */
  readonly allOrNothing: boolean;
  readonly shadowMode: boolean;
  /** For which share of the callers the limit is enforced. Null: for all, or in shadow mode for none. */
  readonly enforcePercent: number | null;
  readonly quotaMode: boolean;
  /** Null: STORE_FAILURE_POLICY decides. */
  readonly onStoreFailure: FailurePolicy | null;
  readonly shareThreshold: boolean;
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly metadata: Json;
  /** Without request values, escaped as in the names of statistics. */
  readonly statisticsKey: string;
  /** What was counted for the rule since the start of the process, of several limits the sums. Null without a limit. */
  readonly totals: RuleTotals | null;
}

/** The limit of a rule as {@link RuleLimit} has it; when unlimited, its numbers are null, too. */
export interface ListedLimit extends Answered<Omit<RuleLimit, 'unitMultiplier' | 'requestsPerUnit'>> {
  readonly unitMultiplier: number | null;
  readonly requestsPerUnit: number | null;
}

/** In hits, not in calls. */
export interface RuleTotals {
  readonly hits: number;
  readonly within: number;
  /** Those of `within` that are near the limit: above NEAR_LIMIT_RATIO of it. */
  readonly near: number;
  readonly over: number;
  /** Those of `over` that the local cache has answered. */
  readonly overByLocalCache: number;
  /** Hits over the limit that shadow mode has allowed. */
  readonly shadow: number;
}

/** What the source of rules has sent last. */
export interface ListedConfigurations<File = ConfigurationFile> {
  readonly active: ListedConfiguration<File> | null;
  /** Those before the active ones. */
  readonly previous: ListedConfiguration<File> | null;
  /** Those that were rejected last. */
  readonly rejected: {
    readonly at: string;
    /** Whether no rules were accepted since. */
    readonly isNewest: boolean;
    readonly reason: string;
    /** Each with its line and carets below it, if the line is known. */
    readonly errors: readonly string[];
    readonly files: readonly File[] | null;
  } | null;
}

export interface ListedConfiguration<File = ConfigurationFile> extends RuleOrigin {
  /** When they were loaded, in the format of ISO 8601. */
  readonly at: string;
  /** How many there are. */
  readonly rules: number;
  /** Null when they are too large to be kept, or do not come from files. */
  readonly files: readonly File[] | null;
}

export interface ConfigurationFile {
  readonly path: string;
  readonly text: string;
}

/** A setting. */
export interface ListedSetting {
  /** The variable that sets it, or else its neutral name. */
  readonly name: string;
  readonly source: 'environment' | 'file' | 'default';
  /**
   * As a user would write it; `***` for a secret, the path of the file for a secret from one, null when there is none.
   */
  readonly value: string | null;
  /** Null for the variables of a mogrifier. */
  readonly documentation: { readonly help: string; readonly allowed: string; readonly default: string | null } | null;
}

/** Why a request would be answered as it would be. */
export interface Explanation {
  readonly domain: string;
  /** The time of the explanation, in the format of ISO 8601. */
  readonly at: string;
  readonly descriptors: readonly ExplainedDescriptor[];
  /** Null when there would be an error. */
  readonly answer: ExplainedAnswer | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export interface ExplainedAnswer {
  readonly overallCode: 'OK' | 'OVER_LIMIT';
  readonly reason: string;
  readonly responseHeaders: readonly { readonly key: string; readonly value: string }[];
}

export interface ExplainedDescriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  /** The look-up, one step for each level of the rules; empty for a limit sent with the request. */
  readonly steps: readonly ExplainedStep[];
  /** How the look-up ended. `override`: there was none, because the request has a limit. */
  readonly outcome:
    | 'limit'
    | 'unlimited'
    | 'replaced'
    | 'override'
    /** No rule matches, and `default_rate_limit` applies. */
    | 'default'
    /** No rule matches, and `on_unmatched` denies that. */
    | 'denied'
    | 'no limit'
    | 'no match'
    | 'too deep'
    | 'no entries'
    | 'unknown domain';
  /** The rule that the descriptor matches, applied or not. */
  readonly rule: RuleReference | null;
  readonly replacedBy: RuleReference | null;
  /** The rule that it nearly matches, when no limit applies. */
  readonly nearest: { readonly rule: RuleReference | null; readonly difference: string } | null;
  /** What is counted and compared; null when nothing is. */
  readonly counter: ExplainedCounter | null;
  /** Of the other limits of a rule with `rate_limits`: `counter` is that of the most restrictive one. */
  readonly otherCounters: readonly ExplainedCounter[];
  /** Null when there would be an error. */
  readonly status: ExplainedStatus | null;
  /** One sentence. */
  readonly reason: string;
}

/** The look-up at one level of the rules. */
export interface ExplainedStep {
  readonly key: string;
  readonly value: string;
  /** The rules of the key in the order in which they are tried, without those of another exact value. */
  readonly candidates: readonly {
    readonly rule: RuleReference;
    readonly outcome: 'chosen' | 'passed over' | 'not tried';
  }[];
  /** How many more candidates there are than are listed. */
  readonly omitted: number;
  /** How many rules of the key have another exact value. */
  readonly otherValues: number;
  /** When no rule has the key: the first keys that the rules of the level have. */
  readonly keys: readonly string[];
}

export interface RuleReference {
  /** As {@link ListedRule.statisticsKey}. */
  readonly statisticsKey: string;
  readonly key: string;
  readonly value: string;
  readonly place: RulePlace | null;
}

export interface ExplainedCounter extends LimitOfCounter {
  readonly cacheKey: string;
  /** Also if `enforce_percent` leaves the caller out. */
  readonly shadowMode: boolean;
  /** Null: the limit is enforced for all callers. */
  readonly enforcePercent: number | null;
  readonly quotaMode: boolean;
  readonly onStoreFailure: FailurePolicy;
  readonly hits: number;
  readonly isNegativeHits: boolean;
  /** Whether the local cache answers, so that the store is not called. */
  readonly isInLocalCache: boolean;
  /** Which policy answers, because the store does not; otherwise null. */
  readonly answeredByPolicy: AnsweringPolicy | null;
  /**
   * The present count, with an algorithm the hits that count, with the policy `local` what this instance has counted;
   * null when it was not read, because the local cache answers or the store failed.
   */
  readonly count: number | null;
  /** The hits of `count` that the process that explains holds for later calls. Null: it leases none of this limit. */
  readonly leased: number | null;
  /** What the count would be after the call, without `leased`. */
  readonly countAfter: number | null;
  /**
   * How many open reservations count. Null where there can be none, where they cannot be read, and with more than 16
   * descriptors.
   */
  readonly openReservations: number | null;
  readonly windowStart: string;
  /** When the window ends and the counter starts again at 0; with an algorithm, as the status says. */
  readonly resetAt: string;
}

export interface ExplainedStatus {
  readonly code: 'OK' | 'OVER_LIMIT';
  readonly limitRemaining: number;
  readonly secondsUntilReset: number | null;
}
