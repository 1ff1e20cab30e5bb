import { type Observable, Subscription, of } from 'rxjs';
import { Limiter } from '../limiter/limiter';
import type { Offenders } from '../limiter/offenders/offenders';
import type { LoadedSettings } from '../settings/read-settings';
import { turnScheduler } from '../sources/event-loop-turns';
import type { Statistics } from '../statistics/statistics';
import type { DecisionLog } from '../streams/pending';
import type { Log } from '../streams/ports/log';
import type { RuleEvent } from '../streams/ports/rule-source';
import { type Service, service } from '../streams/service';
import { asError } from '../text/thrown';
import type { CounterStore } from './counter-store';
import { limiterOptions } from './options';
import type { ServiceTracing } from './tracing';
import { unmatchedWarnings } from './unmatched-warnings';

export interface DecisionPathParts {
  readonly rules$: Observable<RuleEvent>;
  readonly store: CounterStore;
  readonly statistics: Statistics;
  /** Counts the callers over their limits; undefined when they are not counted. */
  readonly offenders: Offenders | undefined;
  readonly tracing: ServiceTracing;
  readonly decisionLog: DecisionLog | undefined;
  /** What ends the process, shared. */
  readonly termination$: Observable<unknown>;
  readonly log: Log;
}

/** The streams of a process that decides, and what decides in it. */
export interface DecisionPath extends Service {
  readonly limiter: Limiter;
}

/** The streams of a process that decides. */
export function decisionPath(
  { settings }: LoadedSettings,
  { rules$, store, statistics, offenders, tracing, decisionLog, termination$, log }: DecisionPathParts,
): DecisionPath {
  const unmatched = settings.unmatchedWarnings ? unmatchedWarnings(log) : undefined;
  const limiter = new Limiter({ ...limiterOptions(settings), offenders, unmatched }, statistics);
  const streams = service(
    {
      rules$,
      storeConnected$: settings.kvstoreHealthCheckActiveConnection ? store.counters.connected$ : of(true),
      storeReady$: store.ready$,
      termination$,
    },
    {
      limiter,
      counters: store.counters,
      statistics,
      scheduler: turnScheduler,
      tracer: tracing.tracer,
      decisionLog,
      onInternalError: (error) => log.error('internal error while deciding a request', { error: asError(error) }),
    },
    {
      startsWithoutRules: settings.forceStartWithoutInitialConfig,
      needsDomain: settings.healthyWithAtLeastOneConfigLoaded,
    },
  );
  return { ...streams, limiter };
}

/** The streams flow until the process has drained, whether or not a server needs them at the moment. */
export function subscribeTo({ config$, health$, windows$ }: Service): Subscription {
  const subscriptions = new Subscription();
  const streams: readonly Observable<unknown>[] = [config$, health$, windows$];
  for (const stream$ of streams) subscriptions.add(stream$.subscribe());
  return subscriptions;
}
