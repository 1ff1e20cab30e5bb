import type { Statistics } from '../statistics/statistics';
import { joinTags } from '../statistics/tags';
import type { BreakerObserver } from './circuit-breaker';
import type { CounterLane } from './ports/counters';
import type { Log } from '../log/log';

/** 1 while calls are not sent to the server of the tags. */
export const BREAKER_OPEN = 'ratelimit.store.breaker_open';
/** Most servers with a gauge of their own: a gauge stays, but a cluster may name ever new nodes. */
const MAX_SERVERS = 256;

/** Reports the circuit breakers of lanes: each by a gauge, and by a pair of log lines for each fault. */
export function storeFaults(
  statistics: Statistics,
  log: Log,
): (server: NonNullable<CounterLane['server']>) => BreakerObserver {
  const shown = new Set<string>();
  return (server) => {
    let open = 0;
    const name = joinTags(BREAKER_OPEN, server);
    if (shown.size < MAX_SERVERS) shown.add(name);
    if (shown.has(name)) statistics.gauge(BREAKER_OPEN, () => open, server);
    return {
      changed: (isOpen) => (open = Number(isOpen)),
      faultBegan: () => log.warn('a counter store does not answer; its calls are not sent until it does', server),
      faultEnded: ({ milliseconds, calls, isUp }) =>
        log.notice(
          isUp ? 'a counter store answers again' : 'a counter store that does not answer is no longer called',
          { ...server, milliseconds, calls },
        ),
    };
  };
}
