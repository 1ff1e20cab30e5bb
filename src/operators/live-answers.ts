import type { Offender, OffenderSummary } from '../limiter/offender';
import type { FailurePolicy } from '../rules/rule-config';
import type { Condition } from '../streams/server-report';
import type { Check, Health, Phase } from '../streams/readiness';
import type { ListedConfiguration } from './answers';

/** How a part of the service is. `unknown`: nothing has shown it, and the text says what would. */
export type HealthState = 'green' | 'amber' | 'red' | 'unknown';

export interface HealthPart {
  readonly state: HealthState;
  /** The state in words: one sentence without its full stop. */
  readonly text: string;
  /** What to do; null: nothing. */
  readonly todo: {
    readonly text: string;
    /** Where more is said, in the repository of weir: `docs/runbook.md#weirstoreaway`. */
    readonly link: string;
  } | null;
}

/** A part with the time at which its state began, which is null in the answer of an instance of an older version. */
export type Timed<Part extends HealthPart = HealthPart> = Part & { readonly since: string | null };

export interface ListedHealth extends Health {
  /** What works in part, and how: `store degraded (allow)`. */
  readonly degraded: readonly string[];
  /** The worst of the four parts; `unknown` when no part is known. */
  readonly state: HealthState;
  readonly store: Timed<StoreHealth>;
  readonly rules: Timed<RulesHealth>;
  readonly process: Timed<ProcessHealth>;
  readonly instances: Timed & {
    /** How many there are, this one included. */
    readonly known: number;
    /** How many of them have answered. */
    readonly seen: number;
  };
}

export interface ProcessHealth extends HealthPart {
  readonly phase: Phase;
}

export interface StoreHealth extends HealthPart {
  /**
   * What calls are answered that the store does not count, unless their rules have a policy of their own; null: its
   * counters count as 0, or they are in the memory of this instance.
   */
  readonly policy: FailurePolicy | null;
  /** The servers, the worst first, 64 at most. */
  readonly servers: readonly ServerHealth[];
}

/** A server of the counter store. Rates and latency are those of the last ten seconds. */
export interface ServerHealth extends HealthPart {
  readonly server: string;
  /** `main` or `per second`; empty for memcached. */
  readonly store: string;
  /** Null, as is the time since which it is, in the answer of an instance of an older version. */
  readonly condition: Condition | null;
  readonly since: string | null;
  /** Whether its circuit breaker is open: calls are not sent. */
  readonly isOpen: boolean;
  /** Requests per second, each of which may carry many calls, and how many of them have failed. */
  readonly requests: number;
  readonly errors: number;
  /** Mean of the requests, in milliseconds; null without requests. */
  readonly latency: number | null;
}

export interface RulesHealth extends HealthPart {
  /** Null before the first successful load, as is the age. */
  readonly version: string | null;
  /** Seconds since they were loaded. */
  readonly age: number | null;
  /** Whether newer ones were rejected. */
  readonly isRejected: boolean;
}

/** A worker process, for the list. */
export interface WorkerInfo {
  /** The number of the worker, from 1. A worker that replaces another one has its number. */
  readonly worker: number;
  readonly pid: number | undefined;
  /** Whether it takes connections. */
  readonly isServing: boolean;
  /** Whether it answers the primary. */
  readonly isResponsive: boolean;
  readonly connections: number;
  /** Since it was started. */
  readonly uptimeSeconds: number;
  /** How often the worker of this number has been replaced. */
  readonly restarts: number;
}

/** The service in the second before it. Rates are per second. */
export interface LiveEvent {
  /** In the format of ISO 8601. */
  readonly at: string;
  readonly health: ListedHealth;
  readonly checks: readonly {
    readonly name: Check['name'];
    readonly failure: string | null;
    readonly note: string | null;
  }[];
  /** Null in the first event, and when no event was read for some seconds. */
  readonly rates: LiveRates | null;
  /** The latency of gRPC calls, in milliseconds; null without calls. */
  readonly latency: { readonly p50: number; readonly p90: number; readonly p99: number; readonly p999: number } | null;
  /** The rules with the most hits, and with the most hits over their limits, of the last seconds. */
  readonly rules: { readonly hits: readonly LiveRule[]; readonly denials: readonly LiveRule[] };
  /** The other processes of the instance. */
  readonly workers: readonly WorkerInfo[];
  readonly loaded: Omit<ListedConfiguration, 'files'> | null;
  readonly rejected: { readonly at: string; readonly isNewest: boolean; readonly reason: string } | null;
  /** Null for a viewer that may not see what callers have sent. */
  readonly offenders: readonly Offender[] | null;
}

/** Per second: the first four are hits, of every listener, the others calls. */
export interface LiveRates {
  readonly within: number;
  /** Hits of `within` that are near the limit. */
  readonly near: number;
  readonly over: number;
  /** Hits over the limit that shadow mode has allowed. */
  readonly shadow: number;
  /** gRPC calls. */
  readonly calls: number;
  /** Calls that are answered with an error: they are invalid, or there are no rules. */
  readonly invalid: number;
  /** Calls for which the store failed. */
  readonly storeErrors: number;
  /** Calls that no rule matches. */
  readonly noMatch: number;
}

/** Hits and calls of a rule, or of one of several limits, per second. */
export interface LiveRule {
  readonly statisticsKey: string;
  readonly hits: number;
  readonly over: number;
  /** Hits of `over` that shadow mode has allowed. */
  readonly shadow: number;
  readonly calls: number;
}

/**
 * The last 60 minutes of all instances as one, or of one, in lists of equal length, the newest at the end. What is per
 * second is rounded to three digits.
 */
export interface History {
  /** Seconds between two samples. */
  readonly interval: number;
  /** All that are known, this one first, also when they have ended; `until` is the time of the last sample. */
  readonly instances: readonly { readonly id: string; readonly name: string; readonly until: number }[];
  /** When each sample was taken, in Unix seconds, a multiple of the interval; gaps are times without any. */
  readonly times: readonly number[];
  readonly rates: Readonly<Record<keyof LiveRates, Series>>;
  /** The latency of gRPC calls, in milliseconds, of the slowest instance; null in a sample without calls. */
  readonly latency: { readonly p50: Series; readonly p99: Series };
  /**
   * Requests to all servers of the counter store and those that failed, per second, and their mean latency in
   * milliseconds, of the slowest instance.
   */
  readonly store: { readonly requests: Series; readonly errors: Series; readonly latency: Series };
  /**
   * The 50 rules with the most hits, the busiest first; null in samples before a rule was one of the 100 that are
   * followed.
   */
  readonly rules: readonly { readonly statisticsKey: string; readonly hits: Series; readonly over: Series }[];
  /** What has happened, the oldest first; of more than 200, the newest. */
  readonly marks: readonly HistoryMark[];
}

type Series = readonly (number | null)[];

interface Mark {
  /** In Unix seconds. */
  readonly at: number;
  /** The instance, by its name, and of another one its address; undefined: this one. */
  readonly instance?: string;
  /** For example the version of the rules. */
  readonly text: string;
}

/** What has happened at a point in time; `worker`: one has been replaced. */
export interface EventMark extends Mark {
  readonly kind: 'start' | 'stop' | 'reload' | 'rejection' | 'worker';
}

/** An outage of a server of the store, which began at `at`. */
export interface OutageMark extends Mark {
  readonly kind: 'store';
  /** In Unix seconds; null: it lasts. */
  readonly until: number | null;
  readonly server: string;
  /** `main` or `per second`; empty for memcached. */
  readonly store: string;
  /** Calls for which it did not count, so far; null: they are not known. */
  readonly calls: number | null;
  /** What these were answered, as in {@link StoreHealth}; rules may have a policy of their own. */
  readonly policy: FailurePolicy | null;
}

export type HistoryMark = EventMark | OutageMark;

/** What an operator has changed. */
export interface Change {
  /** The id of the instance, and a number. */
  readonly id: string;
  readonly at: string;
  /** The name of the token that the operator has used. */
  readonly name: string;
  /** The address of the operator, or of a proxy. */
  readonly from: string;
  readonly what: 'counter set' | 'counter cleared';
  readonly domain: string;
  readonly descriptor: string;
  /** The window of the limit, if the rule has several; else null. */
  readonly window: string | null;
  readonly before: number;
  readonly after: number;
  /** As the operator gave it; null: none. */
  readonly reason: string | null;
  /** The instance where it was changed: its name, and the address of another one. */
  readonly instance: string;
}

/** What an instance reports to the others that ask. */
export interface InstanceReport {
  /** Random, from the start of the process: an instance recognises itself by it. */
  readonly id: string;
  /** INSTANCE_NAME, or else the name of the machine, in Kubernetes that of the Pod. */
  readonly name: string;
  /** The version of weir. */
  readonly version: string;
  readonly startedAt: string;
  readonly health: Omit<ListedHealth, 'instances'>;
  readonly loaded: LiveEvent['loaded'];
  /** The settings that are set, without secrets, and without those that say where an instance is. */
  readonly settings: Readonly<Record<string, string>>;
  /** The rates of the last sample of its history; null before the first one. */
  readonly rates: LiveRates | null;
  readonly latency: { readonly p50: number; readonly p99: number } | null;
  readonly rules: LiveEvent['rules'];
  readonly offenders: OffenderSummary;
  /** Another number when there are other changes in GET /api/changes. */
  readonly changes: number;
}

/** What is kept of the answer of a peer. */
export interface PeerReport {
  readonly report: InstanceReport;
  /** What of the answer was dropped, as it was too much or is not known here; null: nothing. */
  readonly note: string | null;
}

/** What differs between instances, which should be equal. */
export type FleetAspect = 'rules' | 'version' | 'settings';

/** All instances as one. */
export interface Fleet {
  readonly at: string;
  /** The instance that answers comes first. */
  readonly instances: readonly FleetInstance[];
  /** How many of them have not been asked yet: the next answer has more. */
  readonly pending: number;
  /** How many more addresses there are than the 100 that are asked. */
  readonly omitted: number;
  /** The sums of those that answer, of the last ten seconds of each; null before the first sample. */
  readonly rates: LiveRates | null;
  /** The latency of the slowest instance. */
  readonly latency: InstanceReport['latency'];
  /** The 20 with the most hits, and with the most hits over their limits. */
  readonly rules: LiveEvent['rules'];
  /** What differs. Of settings, those that may differ come last, and those that most instances have set first. */
  readonly differences: readonly FleetDifference[];
  /** How many more settings differ than the 200 that are listed, of the first 1,024. */
  readonly omittedDifferences: number;
  /** The 50 that are limited most. Null for a viewer that may not see what callers have sent. */
  readonly offenders: readonly Offender[] | null;
}

export interface FleetInstance {
  /** As {@link InstanceReport.id}; null until it has answered. */
  readonly id: string | null;
  /** Where it was asked, as OPERATOR_PEERS has it, or DNS; null for this one. */
  readonly address: string | null;
  /**
   * This and all that follow down to `answeredAt` are null until it has answered, and then those of its last answer.
   */
  readonly name: string | null;
  readonly version: string | null;
  readonly startedAt: string | null;
  readonly health: InstanceReport['health'] | null;
  readonly loaded: InstanceReport['loaded'];
  readonly rates: LiveRates | null;
  readonly latency: InstanceReport['latency'];
  /** When it has answered last. */
  readonly answeredAt: string | null;
  /** Why it does not answer now; null: it does, or has not been asked yet. */
  readonly problem: string | null;
  /** What of its last answer was dropped; null: nothing. */
  readonly note: string | null;
  /** In what it differs from most instances. */
  readonly differs: readonly FleetAspect[];
}

export interface FleetDifference {
  readonly aspect: FleetAspect;
  /** The setting; empty for rules and version. */
  readonly name: string;
  /** Whether it may differ, so that no instance is odd: addresses, names, OPERATOR_EXPECTED_DIFFERENCES. */
  readonly isExpected: boolean;
  /** Whether the viewer may not see the values, which are null then. */
  readonly isHidden: boolean;
  /** Each value, that of the most instances first, with its instances: `name (address)`. Null: it is not set. */
  readonly values: readonly { readonly value: string | null; readonly instances: readonly string[] }[];
}
