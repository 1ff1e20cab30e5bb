import type { AnsweringPolicy, FailurePolicy, RuleLimit, RulePlace } from '../rules/rule-config';
import type { LimitActivity, UnitName } from '../rules/unit';

/** Why a request would be answered as it would be. */
export interface Explanation {
  readonly domain: string;
  /** The time of the explanation, in the format of ISO 8601. */
  readonly at: string;
  readonly descriptors: readonly ExplainedDescriptor[];
  /** Null when there would be an error. */
  readonly answer: {
    readonly overallCode: 'OK' | 'OVER_LIMIT';
    readonly reason: string;
    readonly responseHeaders: readonly { readonly key: string; readonly value: string }[];
  } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export interface ExplainedDescriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  /** The entries that are counted by another value than was sent. */
  readonly countedAs: ExplainedDescriptor['entries'];
  /** The look-up, one step for each level of the rules; empty for a limit sent with the request. */
  readonly steps: readonly ExplainedStep[];
  readonly outcome: ExplainedOutcome;
  /** The rule that the descriptor matches, applied or not. */
  readonly rule: RuleReference | null;
  readonly replacedBy: RuleReference | null;
  /** The rule that it nearly matches, when no limit applies. */
  readonly nearest: { readonly rule: RuleReference | null; readonly difference: string } | null;
  /** What is counted and compared; null when nothing is. */
  readonly counter: ExplainedCounter | null;
  /** The counters of the other limits of a rule with `rate_limits`: `counter` is that of the most restrictive one. */
  readonly otherCounters: readonly ExplainedCounter[];
  /** Null when there would be an error. */
  readonly status: {
    readonly code: 'OK' | 'OVER_LIMIT';
    readonly limitRemaining: number;
    readonly secondsUntilReset: number | null;
  } | null;
  /** One sentence. */
  readonly reason: string;
}

/** How the search for the rule of a descriptor ended. */
export type MatchOutcome =
  /** No rule file names the domain. */
  | 'unknown domain'
  /** A descriptor without entries matches nothing. */
  | 'no entries'
  /** No rule matches at the last level that was searched. */
  | 'no match'
  /** Entries remain, but no rules are nested in the rule that matched. */
  | 'too deep'
  /** The rule that matched has no limit: it exempts, or only contains others. */
  | 'no limit'
  /** The rule that matched has a limit or is unlimited. */
  | 'limit';

/** How the search ended, or what became of the rule that it found. */
export type ExplainedOutcome =
  | MatchOutcome
  | 'unlimited'
  | 'replaced'
  /** The limits of the rule do not apply at this hour. */
  | 'inactive'
  /** There was no search, because the request has a limit. */
  | 'override'
  /** No rule matches, and `default_rate_limit` applies. */
  | 'default'
  /** No rule matches, and `on_unmatched` denies that. */
  | 'denied';

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
  /** Without request values, escaped as in the names of statistics. */
  readonly statisticsKey: string;
  readonly key: string;
  readonly value: string;
  readonly place: RulePlace | null;
}

/** For whom a limit is enforced. */
export interface EnforcementModes {
  /** Whether it limits nothing; of a counter, also if `enforce_percent` leaves the caller out. */
  readonly shadowMode: boolean;
  /** The share of the callers for which it is enforced, in percent. Null: for all, or in shadow mode for none. */
  readonly enforcePercent: number | null;
  readonly quotaMode: boolean;
}

export interface ExplainedCounter extends LimitOfCounter, EnforcementModes {
  readonly cacheKey: string;
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
  /** The hits of `count` beyond the limit. Null: it is not postpaid, or was not read. */
  readonly overdrawn: number | null;
  /** The hits of `count` that the process that explains holds for later calls. Null: it leases none of this limit. */
  readonly leased: number | null;
  /** The block that denies the call; null: none does, or that was not read. */
  readonly block: PresentBlock | null;
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

/** The fields of a limit as answers have them: null where a rule file says nothing. */
type Answered<Fields> = {
  readonly [Name in keyof Fields]-?: undefined extends Fields[Name]
    ? Exclude<Fields[Name], undefined> | null
    : Fields[Name];
};

/** A time in which a limit with `block_for` denies all calls. */
export interface PresentBlock {
  /** The end of the block, in the format of ISO 8601. */
  readonly until: string;
  /** The whole length of the block. */
  readonly seconds: number;
}

/** The limit that a counter is compared with; its `burst` is null except for a token bucket, which always has one. */
export interface LimitOfCounter extends Answered<Omit<RuleLimit, 'unit' | 'lease' | 'unlimited' | 'replaces'>> {
  readonly unit: UnitName;
  /** Null: the limit always applies. */
  readonly activity: LimitActivity | null;
}

/** The limit of a rule as {@link RuleLimit} has it; when unlimited, its numbers are null, too. */
export interface ListedLimit extends Answered<Omit<RuleLimit, 'unitMultiplier' | 'requestsPerUnit'>> {
  readonly unitMultiplier: number | null;
  readonly requestsPerUnit: number | null;
  readonly activity: LimitActivity | null;
}
