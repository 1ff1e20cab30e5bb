import { type MonoTypeOperatorFunction, type Observable, identity, tap } from 'rxjs';
import type { Statistics } from '../statistics/statistics';
import type { Log } from '../streams/ports/log';
import type { RuleEvent, RuleSource } from '../streams/ports/rule-source';
import { RuleLog } from './rule-log';

/**
 * The events of the rule source, counted and logged as they pass. Two gauges let an alert detect a
 * service that keeps old rules: `ratelimit.config.loaded_at`, when the active rules were loaded, in Unix seconds (0: no rules
 * yet), and `ratelimit.config.rejected`, 1 while the newest rules are rejected.
 *
 * @param activate delays loads until their rules are active; without it they are at once
 */
export function ruleEvents(
  { events$ }: RuleSource,
  { statistics, log }: { readonly statistics: Statistics; readonly log: Log },
  activate: MonoTypeOperatorFunction<RuleEvent> = identity,
): Observable<RuleEvent> {
  const successes = statistics.counter('ratelimit.service.config_load_success');
  const errors = statistics.counter('ratelimit.service.config_load_error');
  const ruleLog = new RuleLog(log);
  let loadedAt = 0;
  let isRejected = false;
  statistics.gauge('ratelimit.config.loaded_at', () => loadedAt);
  statistics.gauge('ratelimit.config.rejected', () => Number(isRejected));
  return events$.pipe(
    activate,
    tap((event) => {
      isRejected = event.kind === 'rejected';
      if (event.kind === 'rejected') {
        errors.add(1);
        ruleLog.rejected(event, loadedAt > 0);
        return;
      }
      successes.add(1);
      if (event.isRepeated === true) return;
      loadedAt = Math.floor(Date.now() / 1000);
      ruleLog.loaded(event);
    }),
  );
}
