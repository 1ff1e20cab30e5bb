import type { ServerOutcome } from '../counting/batch';
import type { Log } from '../log/log';
import type { Counter } from '../statistics/counter';
import type { Statistics } from '../statistics/statistics';
import { type Tags, joinTags } from '../statistics/tags';
import type { BreakerObserver } from './circuit-breaker';
import type { CounterLane } from './ports/counters';

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

/** The name of a server in log lines and tags. */
type ServerName = NonNullable<CounterLane['server']>;

/**
 * Shows by gauges which servers are not called. @returns what makes the gauge of a server, and then receives its
 * changes
 */
export function breakerGauges(statistics: Statistics): (server: ServerName) => (isOpen: boolean) => void {
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
export function requestCounters(statistics: Statistics): (server: ServerName) => CountRequest | undefined {
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

/** Reports the circuit breakers of lanes: each by a gauge, and by a pair of log lines for each fault. */
export function storeFaults(statistics: Statistics, log: Log): (server: ServerName) => BreakerObserver {
  const gaugeOf = breakerGauges(statistics);
  return (server) => ({
    changed: gaugeOf(server),
    faultBegan: () => log.warn('a counter store does not answer; its calls are not sent until it does', server),
    faultEnded: ({ milliseconds, calls, isUp }) =>
      log.notice(isUp ? 'a counter store answers again' : 'a counter store that does not answer is no longer called', {
        ...server,
        milliseconds,
        calls,
      }),
  });
}
