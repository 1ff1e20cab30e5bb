import type { Log } from '../log/log';
import type { Statistics } from '../statistics/statistics';
import { joinTags } from '../statistics/tags';
import type { BreakerObserver } from './circuit-breaker';
import type { CounterLane } from './ports/counters';

/** 1 while calls are not sent to the server of the tags. */
const BREAKER_OPEN = 'ratelimit.store.breaker_open';
/** Most servers with a gauge of their own: a gauge stays, but a cluster or a DNS record may name ever new servers. */
const MAX_SERVERS = 256;

/** The name of a server in log lines and tags. */
type ServerName = NonNullable<CounterLane['server']>;

/** Shows by gauges which servers are not called. @returns what makes the gauge of a server, and then receives its changes */
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

/** The servers that have such a gauge, here or in a worker, and whether each is not called. */
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
