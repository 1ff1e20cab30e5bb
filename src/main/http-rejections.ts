import { type Observable, asyncScheduler } from 'rxjs';
import type { HttpRejection, OnHttpRejected } from '../http/limits';
import type { Statistics } from '../statistics/statistics';
import { PassingConditions } from '../log/condition-log';
import type { Log } from '../log/log';
import { nameOfPeer } from '../text/host-port';

/** Kinds of rejections that can last, and the log lines at their begin and end. The others are logged at level debug only. */
const CONDITIONS: Partial<Record<HttpRejection, { readonly begins: string; readonly ends: string }>> = {
  connections: {
    begins: 'an HTTP listener has too many connections; it closes idle ones for new ones, or else the new ones',
    ends: 'an HTTP listener no longer closes connections for new ones',
  },
  request_memory: {
    begins: 'unfinished bodies of HTTP requests use all of the memory for them; the largest and oldest are rejected',
    ends: 'unfinished bodies of HTTP requests are no longer rejected',
  },
  slow_reader: {
    begins: 'callers do not read their HTTP responses; their connections are closed',
    ends: 'callers read their HTTP responses again',
  },
};

/** Counts and logs what the HTTP listeners reject: a line when a condition begins and when it ends, not one per rejection. */
export class HttpRejections {
  readonly #statistics: Statistics;
  readonly #log: Log;
  readonly #conditions = new PassingConditions();

  constructor(statistics: Statistics, log: Log) {
    this.#statistics = statistics;
    this.#log = log;
  }

  /** @param listener its name in log lines */
  of(listener: string): OnHttpRejected {
    return (kind, caller, reason) => {
      this.#statistics.counter(`ratelimit_server.http.${kind}`).add(1);
      if (this.#log.isDebug) {
        const peer = nameOfPeer(caller);
        this.#log.debug('HTTP connection or request rejected', { listener, kind, reason, peer });
      }
      const lines = CONDITIONS[kind];
      if (lines === undefined) return;
      this.#conditions.occurred({
        condition: `${listener} ${kind}`,
        ...lines,
        beginFields: { listener, reason },
        endFields: (count) => ({ listener, rejected: count }),
      });
    };
  }

  /** Logs the conditions. Never completes. */
  logConditions(scheduler = asyncScheduler): Observable<unknown> {
    return this.#conditions.logTo(this.#log, scheduler);
  }
}
