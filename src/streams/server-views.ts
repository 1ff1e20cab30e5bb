import { type Observable, Subject, auditTime, startWith } from 'rxjs';
import type { ServerOutcome } from '../counting/batch';
import { ConditionLog } from '../log/condition-log';
import type { Log } from '../log/log';
import type { Statistics } from '../statistics/statistics';
import { type Tags, joinTags } from '../statistics/tags';
import { elapsedBy } from './deadline';
import { CONDITIONS, type Fault, type ServerName, type ServerRates, type ServerReport } from './server-report';
import { QUIET, type ServerObserver, ServerState, type ServerStateOptions } from './server-state';

/** 1 while calls are not sent to the server of the tags. */
const BREAKER_OPEN = 'ratelimit.store.breaker_open';
/** 1 for the condition that the server of the tags is in, and 0 for the others. */
const CONDITION = 'ratelimit.store.condition';
/**
 * Requests that were sent to the server of the tags and have shown whether it works, those that have failed, and the
 * time of the others.
 */
const REQUESTS = 'ratelimit.store.requests';
const FAILED_REQUESTS = 'ratelimit.store.failed_requests';
const REQUEST_TIME = 'ratelimit.store.request_time_ms';
/** Most servers with statistics of their own: these stay, but a cluster or a DNS record may name ever new servers. */
const MAX_SERVERS = 256;

/** Milliseconds in which the changes of servers are gathered for those who are notified: a cluster has many. */
const GATHERED = 50;

export interface ServerStatesOptions extends Pick<ServerStateOptions, 'scheduler' | 'failures' | 'limit'> {
  readonly statistics: Statistics;
  readonly log: Log;
}

interface FaultLines {
  readonly begins: string;
  readonly ends: string;
  /** Whether each different reason is logged, not only the first, because nothing else logs them. */
  readonly hasReasons?: boolean;
}

/** What differs from one server to the next. */
export interface OpenedServer extends Omit<ServerStateOptions, 'scheduler' | 'failures' | 'limit' | 'observer'> {
  readonly failures?: number;
  /** The log lines of a fault; undefined: none are logged, and the server has no statistics. */
  readonly lines?: FaultLines | undefined;
}

/** A server as it is shown. */
export interface ShownServer extends ServerReport {
  /** The rates of the last ten seconds. */
  readonly rates: ServerRates;
  /** The calls of the present fault so far; undefined: there is none. */
  readonly affected?: number | undefined;
}

/** The servers of the stores of an instance. */
export interface ShownServers {
  /** All servers, as they are now. */
  readonly shown: readonly ShownServer[];
  /** Emits soon after the subscription, and after each change of the reports. */
  readonly changed$: Observable<unknown>;
}

/**
 * The servers of the stores of this process: makes their states, and shows them by statistics and a pair of log lines
 * for each fault.
 */
export class ServerStates implements ShownServers {
  readonly changed$: Observable<unknown>;
  readonly #options: ServerStatesOptions;
  readonly #changed$ = new Subject<unknown>();
  readonly #states = new Set<ServerState>();
  /** The tags of servers with statistics. */
  readonly #counted = new Set<string>();

  constructor(options: ServerStatesOptions) {
    this.#options = options;
    this.changed$ = this.#changed$.pipe(startWith(undefined), auditTime(GATHERED, options.scheduler));
  }

  /** Whether calls to a server that does not answer are held back. */
  get holdsBack(): boolean {
    return this.#options.failures > 0;
  }

  get states(): readonly ServerState[] {
    return [...this.#states];
  }

  get shown(): readonly ShownServer[] {
    return Array.from(this.#states, (state) => ({ ...state.report, rates: state.rates(10), affected: state.affected }));
  }

  /** The process ends: what is in flight, or begins from now on, ends in time for a drain of so many milliseconds. */
  drain(milliseconds: number): void {
    for (const state of this.#states) state.drain(milliseconds);
  }

  /** Makes the state of a server, which stays until that ends. */
  open({ lines, ...server }: OpenedServer): ServerState {
    const { scheduler, failures, limit, log } = this.#options;
    const tags = tagsOf(server.name);
    const isCounted = lines !== undefined && this.#counts(tags);
    const logged = lines && linesOf(log, tags, { ...lines, now: elapsedBy(scheduler) });
    const counted = isCounted ? this.#counterOf(tags) : undefined;
    const observer = logged && {
      ...logged,
      requested: (milliseconds: number, outcome: ServerOutcome) => {
        counted?.(milliseconds, outcome);
        if (outcome === 'ok') logged.succeeded();
      },
    };
    const state = new ServerState({ scheduler, failures, limit, observer, ...server });
    this.#states.add(state);
    if (isCounted) this.#showByGauges(state, tags);
    // oxlint-disable-next-line house-style/kept-subscriptions -- it completes when the state ends
    state.reports$.subscribe({
      next: ({ isHeldBack, reason }) => {
        if (isHeldBack && reason !== undefined) logged?.because(reason);
        this.#changed$.next(undefined);
      },
      complete: () => {
        this.#states.delete(state);
        this.#changed$.next(undefined);
      },
    });
    return state;
  }

  /** Whether there is room for the statistics of a server. */
  #counts(tags: Tags): boolean {
    const name = joinTags('', tags);
    if (this.#counted.size < MAX_SERVERS) this.#counted.add(name);
    return this.#counted.has(name);
  }

  #showByGauges(state: ServerState, tags: Tags): void {
    const { statistics } = this.#options;
    statistics.gauge(BREAKER_OPEN, () => Number(state.report.isHeldBack), tags);
    for (const condition of CONDITIONS) {
      const isInIt = (): boolean => this.#states.has(state) && state.report.condition === condition;
      statistics.gauge(CONDITION, () => Number(isInIt()), { ...tags, condition });
    }
  }

  #counterOf(tags: Tags): ServerObserver['requested'] {
    const { statistics } = this.#options;
    const [all, failed, time] = [REQUESTS, FAILED_REQUESTS, REQUEST_TIME].map((name) =>
      statistics.counter(joinTags(name, tags)),
    );
    return (milliseconds, outcome) => {
      if (outcome === 'none') return;
      all!.add(1);
      if (outcome === 'bad') failed!.add(1);
      else time!.add(Math.max(0, milliseconds));
    };
  }
}

/** One line for each fault when it begins, and one when it is over; so for requests that fail without a fault. */
function linesOf(log: Log, fields: Tags, { now, ...lines }: FaultLines & { readonly now: () => number }) {
  const fault = new ConditionLog(log, { ...lines, fields });
  const failures = new ConditionLog(log, {
    begins: 'requests to a counter store fail',
    ends: 'requests to a counter store no longer fail',
    ...{ fields, quiet: { milliseconds: QUIET, now } },
  });
  return {
    /** A further reason of the fault. */
    because: (reason: string) => lines.hasReasons === true && fault.because(reason),
    failed: (reason: string) => failures.because(reason),
    succeeded: () => failures.ended(),
    faultBegan: ({ reason = '' }: ServerReport) => fault.because(reason),
    faultEnded: ({ milliseconds, calls, isUp }: Fault) => {
      if (isUp) fault.ended({ milliseconds, calls });
      else log.notice('a counter store that does not answer is no longer called', { ...fields, milliseconds, calls });
    },
  };
}

/** What was measured of several servers together, or of one by several processes. */
export function sumOfRates(all: readonly ServerRates[]): ServerRates {
  let [requests, failures, time] = [0, 0, 0];
  for (const each of all) {
    requests += each.requests;
    failures += each.failures;
    time += (each.requests - each.failures) * (each.latency ?? 0);
  }
  return { requests, failures, latency: requests > failures ? time / (requests - failures) : null };
}

function tagsOf({ server, store }: ServerName): Tags {
  return store === undefined ? { server } : { store, server };
}
