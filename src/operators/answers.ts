import type {
  EnforcementModes,
  ExplainedDescriptor,
  LimitOfCounter,
  ListedLimit,
  PresentBlock,
  RuleReference,
} from '../explain/explanation';
import type { Descriptor } from '../limiter/request';
import type { AddressPrefix } from '../rules/networks';
import type { FailurePolicy, Json, RulePlace } from '../rules/rule-config';
import type { RulesetChanges } from '../rules/compare-rulesets';
import type { OpenReservation } from '../streams/ports/reservations';
import type { RuleOrigin } from '../streams/ports/rule-source';

/** Which counter is meant. */
export interface CounterQuery {
  readonly domain: string;
  /** The descriptor of the counter; its hits are ignored. */
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
  readonly nearest: ExplainedDescriptor['nearest'];
  /** The windows of the limits of a rule with several, of which one must be chosen. */
  readonly windows?: readonly string[];
}

export interface CounterState extends LimitOfCounter {
  readonly cacheKey: string;
  /** Null for a limit sent with the request. */
  readonly rule: RuleReference | null;
  /** The window of the limit, and those of all limits of the rule: see {@link CounterQuery.window}. */
  readonly window: string;
  readonly windows: readonly string[];
  /** The hits that count; of a token bucket, the tokens left. */
  readonly count: number;
  /** The hits of it that this instance holds for later calls. Null: it leases none of this limit. */
  readonly leased: number | null;
  /** Hits beyond the limit. Null: it is not postpaid. */
  readonly overdrawn: number | null;
  /** Whole seconds until the store removes the counter; null when there is none, or the store cannot report it. */
  readonly timeToLive: number | null;
  /** With an algorithm, the present. */
  readonly windowStart: string;
  /** With an algorithm, when no hits will count. */
  readonly windowEnd: string;
  /** The block that denies all calls; null: none does. */
  readonly block: PresentBlock | null;
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
export interface ListedRule extends EnforcementModes {
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
  /** The limits of a rule with `rate_limits`, the first of which is `limit`; null for any other rule. */
  readonly limits: readonly ListedLimit[] | null;
  /** A call that one of `limits` denies counts on none of them. */
  readonly allOrNothing: boolean;
  /** Null: STORE_FAILURE_POLICY decides. */
  readonly onStoreFailure: FailurePolicy | null;
  readonly shareThreshold: boolean;
  /** Addresses are counted by networks of so many bits; null: as they are sent. */
  readonly addressPrefix: AddressPrefix | null;
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly metadata: Json;
  /** Without request values, escaped as in the names of statistics. */
  readonly statisticsKey: string;
  /** What was counted for the rule since the start of the process, of several limits the sums. Null without a limit. */
  readonly totals: RuleTotals | null;
}

/** In hits, apart from the calls. */
export interface RuleTotals {
  /** A call of a rule with several limits is one. */
  readonly calls: number;
  readonly hits: number;
  readonly within: number;
  /** Hits of `within` that are near the limit: above NEAR_LIMIT_RATIO of it. */
  readonly near: number;
  readonly over: number;
  /** Hits of `over` that the local cache has answered. */
  readonly overByLocalCache: number;
  /** Hits over the limit that shadow mode has allowed. */
  readonly shadow: number;
}

/** What the source of rules has sent last. */
export interface ListedConfigurations<File = ConfigurationFile> {
  readonly active: ListedConfiguration<File> | null;
  /** The rules that were active before. */
  readonly previous: ListedConfiguration<File> | null;
  /** The rules that were rejected last. */
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

/** A load of rules, and what it has changed. */
export interface ListedLoad extends Omit<ListedConfiguration, 'files'> {
  /** Null: it was the first one. */
  readonly changes: RulesetChanges | null;
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
