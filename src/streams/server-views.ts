import { BehaviorSubject, type Observable } from 'rxjs';
import type { ServerOutcome } from '../counting/batch';
import { ConditionLog } from '../log/condition-log';
import type { Log } from '../log/log';
import type { Counter } from '../statistics/counter';
import type { Statistics } from '../statistics/statistics';
import { type Tags, joinTags } from '../statistics/tags';
import { type Fault, type ServerName, type ServerReport, ServerState, type ServerStateOptions } from './server-state';

/** 1 while calls are not sent to the server of the tags. */
const BREAKER_OPEN = 'ratelimit.store.breaker_open';
/**
 * Requests that were sent to the server of the tags and have shown whether it works, those that have failed, and the
 * time of the others.
 */
const REQUESTS = 'ratelimit.store.requests';
const FAILED_REQUESTS = 'ratelimit.store.failed_requests';
const REQUEST_TIME = 'ratelimit.store.request_time_ms';
/** Most servers with statistics of their own: these stay, but a cluster or a DNS record may name ever new servers. */
const MAX_SERVERS = 256;

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

/**
 * The servers of the stores of this process: makes their states, and shows them by statistics and a pair of log lines
 * for each fault.
 */
export class ServerStates {
  /** The reports of all servers: the present ones, then all of them at each change. */
  readonly reports$: Observable<readonly ServerReport[]>;
  readonly #options: ServerStatesOptions;
  readonly #reports$ = new BehaviorSubject<readonly ServerReport[]>([]);
  readonly #states = new Set<ServerState>();
  readonly #gaugeOf: ReturnType<typeof breakerGauges>;
  readonly #requestsOf: ReturnType<typeof requestCounters>;

  constructor(options: ServerStatesOptions) {
    this.#options = options;
    this.reports$ = this.#reports$.asObservable();
    this.#gaugeOf = breakerGauges(options.statistics);
    this.#requestsOf = requestCounters(options.statistics);
  }

  get states(): readonly ServerState[] {
    return [...this.#states];
  }

  /** The process ends: what is in flight, or begins from now on, ends in time for a drain of so many milliseconds. */
  drain(milliseconds: number): void {
    for (const state of this.#states) state.drain(milliseconds);
  }

  /** Makes the state of a server, which stays until that ends. */
  open({ lines, ...server }: OpenedServer): ServerState {
    const { scheduler, failures, limit, log } = this.#options;
    const tags = tagsOf(server.name);
    const logged = lines && linesOf(log, server.name, lines);
    const observer = logged && { requested: this.#requestsOf(tags), ...logged };
    const state = new ServerState({ scheduler, failures, limit, observer, ...server });
    this.#states.add(state);
    const showOpen = lines && this.#gaugeOf(tags);
    const report = (): void => {
      const { isHeldBack, reason } = state.report;
      showOpen?.(isHeldBack);
      if (isHeldBack && reason !== undefined) logged?.because(reason);
      this.#reports$.next(Array.from(this.#states, (each) => each.report));
    };
    // oxlint-disable-next-line house-style/kept-subscriptions -- it completes when the state ends
    state.reports$.subscribe({
      next: report,
      complete: () => {
        this.#states.delete(state);
        report();
      },
    });
    return state;
  }
}

/** One line for each fault when it begins, and one when it is over. */
function linesOf(log: Log, name: ServerName, lines: NonNullable<OpenedServer['lines']>) {
  const fields = tagsOf(name);
  const fault = new ConditionLog(log, { ...lines, fields });
  return {
    /** A further reason of the fault. */
    because: (reason: string) => lines.hasReasons === true && fault.because(reason),
    faultBegan: ({ reason = '' }: ServerReport) => fault.because(reason),
    faultEnded: ({ milliseconds, calls, isUp }: Fault) => {
      if (isUp) fault.ended({ milliseconds, calls });
      else log.notice('a counter store that does not answer is no longer called', { ...fields, milliseconds, calls });
    },
  };
}

/**
 * Shows by gauges which servers are not called. @returns what makes the gauge of a server, and then receives its
 * changes
 */
export function breakerGauges(statistics: Statistics): (server: Tags) => (isOpen: boolean) => void {
  const shown = new Set<string>();
  return (server) => {
    let open = 0;
    const name = joinTags(BREAKER_OPEN, server);
    if (shown.size < MAX_SERVERS) shown.add(name);
    if (shown.has(name)) statistics.gauge(BREAKER_OPEN, () => open, server);
    return (isOpen) => (open = Number(isOpen));
  };
}

/** Is called with each request to a server that has ended: its time, and what it shows about the server. */
export type CountRequest = (milliseconds: number, outcome: ServerOutcome) => void;

/** Counts the requests to servers. @returns what makes the counters of a server, and then counts */
export function requestCounters(statistics: Statistics): (server: Tags) => CountRequest | undefined {
  const counted = new Set<string>();
  return (server) => {
    const name = joinTags(REQUESTS, server);
    if (counted.size < MAX_SERVERS) counted.add(name);
    if (!counted.has(name)) return undefined;
    const [all, failed, time] = countersOf(statistics, server);
    return (milliseconds, outcome) => {
      if (outcome === 'none') return;
      all.add(1);
      if (outcome === 'bad') failed.add(1);
      else time.add(Math.max(0, milliseconds));
    };
  };
}

function tagsOf({ server, store }: ServerName): Tags {
  return store === undefined ? { server } : { store, server };
}

function countersOf(statistics: Statistics, server: Tags): readonly [all: Counter, failed: Counter, time: Counter] {
  const [all, failed, time] = [REQUESTS, FAILED_REQUESTS, REQUEST_TIME].map((name) => joinTags(name, server));
  return [statistics.counter(all!), statistics.counter(failed!), statistics.counter(time!)];
}

/** A server of the store, and what was counted for it. */
export interface CountedServer {
  readonly server: string;
  readonly store: string;
  readonly isOpen: boolean;
  readonly requests: Counter;
  readonly failed: Counter;
  /** Milliseconds of those that have not failed. */
  readonly time: Counter;
}

/** The servers that requests were sent to, here or in a worker. */
export function countedServers(statistics: Statistics): readonly CountedServer[] {
  const servers = statistics.counters.filter(({ name }) => name === REQUESTS);
  return servers.map(({ tags }) => {
    const [requests, failed, time] = countersOf(statistics, tags);
    const { server = '', store = '' } = tags;
    return { server, store, isOpen: statistics.readGauge(joinTags(BREAKER_OPEN, tags)) > 0, requests, failed, time };
  });
}

/** The servers that have a gauge of their breaker, here or in a worker, and whether each is not called. */
export function shownBreakers({ gauges }: Statistics) {
  const shown = Array.from(gauges).filter(({ name }) => name === BREAKER_OPEN);
  return shown.map(({ tags: { server = '', store = '' }, read }) => ({ server, store, isOpen: read() > 0 }));
}
