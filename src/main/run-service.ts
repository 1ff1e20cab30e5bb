import {
  EMPTY,
  type Observable,
  Subscription,
  asyncScheduler,
  concatMap,
  defer,
  finalize,
  ignoreElements,
  lastValueFrom,
  of,
  share,
  take,
  takeUntil,
} from 'rxjs';
import { Limiter } from '../limiter/limiter';
import type { LoadedSettings } from '../settings/read-settings';
import { clockJumps } from '../sources/clock-jumps';
import { turnScheduler } from '../sources/event-loop-turns';
import { signals, terminationSignals } from '../sources/signals';
import type { BoundedLines } from '../sinks/logs/bounded-lines';
import { Statistics } from '../statistics/statistics';
import { type DrainOutcome, type DrainStep, drain } from '../streams/drain';
import type { Log } from '../streams/ports/log';
import type { OffenderSource } from '../streams/ports/offender-source';
import { type Service, service } from '../streams/service';
import { asError } from '../text/thrown';
import { VERSION } from '../cli/version';
import { type CounterStore, counterStore } from './counter-store';
import { type DebugListener, openDebugListener } from './debug-listener';
import { IGNORED_SIGNALS } from './ignored-signals';
import { Listeners } from './listeners';
import { HttpRejections } from './http-rejections';
import { LifeLog, type Serving } from './life-log';
import { decisionLog } from './log-decisions';
import { offenderSource, offendersOf } from './offenders';
import { limiterOptions } from './options';
import { Readiness } from './readiness';
import { RefusedConnections } from './refused-connections';
import { ruleEvents } from './rule-events';
import { countDroppedLines } from './service-log';
import { type StatisticsOutputs, startStatisticsOutputs } from './statistics-outputs';
import { type ServiceTracing, startTracing } from './tracing';

/** Milliseconds after which a drain is aborted. */
const DRAIN_DEADLINE = 10_000;

export interface RunOptions {
  readonly log: Log;
  /** Where the lines of the log go. */
  readonly lines: BoundedLines;
  /** Called when the listeners are open. */
  readonly onServing?: ((serving: Serving) => void) | undefined;
}

/** What the service is made of. */
interface Parts {
  readonly statistics: Statistics;
  readonly offenders: OffenderSource;
  readonly rejections: HttpRejections;
  readonly outputs: StatisticsOutputs;
  readonly tracing: ServiceTracing;
  readonly store: CounterStore;
  readonly signal$: Observable<NodeJS.Signals>;
  readonly streams: Service;
}

/**
 * Makes the parts of the service, subscribes to its streams, opens the listeners when it is ready, and drains at the first signal.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents the service from running, for example a port that is in use
 */
export async function runService(
  reading: LoadedSettings,
  { log, lines, onServing = () => undefined }: RunOptions,
): Promise<number> {
  const parts = await makeParts(reading, log);
  countDroppedLines(lines, parts.statistics);
  const { streams, statistics, rejections, tracing, signal$ } = parts;
  const subscriptions = subscribe(streams);
  const life = new LifeLog(log);
  const readiness = new Readiness(streams);
  const debug = await openDebugListener(reading, {
    config$: streams.config$,
    statistics,
    health: () => readiness.health,
    rejections,
    log,
  });
  const refusals = new RefusedConnections();
  subscriptions.add(refusals.logTo(log).subscribe());
  subscriptions.add(rejections.logConditions().subscribe());
  const { tracer } = tracing;
  const listeners = new Listeners(reading, { streams, statistics, log, refusals, rejections, tracer });

  const serving$ = defer(async () => {
    const serving: Serving = {
      ...(await listeners.open()),
      debug: debug.address,
      metrics: parts.outputs.metricsAddress,
      store: parts.store.description,
      rules: streams.config$.value.loaded,
    };
    readiness.opened();
    life.serving(serving);
    onServing(serving);
  });
  subscriptions.add(clockJumps().subscribe((by) => life.clockJumped(by)));
  subscriptions.add(signal$.pipe(take(1)).subscribe((signal) => life.draining(signal)));
  subscriptions.add(readiness.logAwaited(log).pipe(takeUntil(signal$)).subscribe());
  subscriptions.add(
    signals(IGNORED_SIGNALS).subscribe((signal) => log.warn('signal ignored: it has no meaning for weir', { signal })),
  );
  const drained$ = drain({
    steps: drainSteps(parts, listeners, debug),
    signal$,
    deadline: DRAIN_DEADLINE,
    scheduler: asyncScheduler,
    onFailure: (step, error) => log.error(`failed to drain ${step}`, { error: asError(error) }),
  });
  const outcome$ = streams.phase$.pipe(
    concatMap((phase): Observable<DrainOutcome> => {
      if (phase === 'serving') return serving$.pipe(ignoreElements());
      return phase === 'draining' ? drained$ : EMPTY;
    }),
    finalize(() => subscriptions.unsubscribe()),
  );
  return life.drained(await lastValueFrom(outcome$));
}

async function makeParts(reading: LoadedSettings, log: Log): Promise<Parts> {
  const { settings } = reading;
  const statistics = new Statistics(settings.statsMaxRuntimeKeys);
  statistics.gauge('ratelimit.build_info', () => 1, { version: VERSION, node: process.versions.node });
  const rejections = new HttpRejections(statistics, log);
  const counted = offendersOf(settings);
  const offenders = offenderSource(counted);
  const outputs = await startStatisticsOutputs(reading, { statistics, offenders, rejections, log });
  const tracing = await startTracing(settings, log);
  const store = counterStore(reading, statistics, log);
  const signal$ = terminationSignals().pipe(share());
  const streams = service(
    {
      rules$: ruleEvents(reading, statistics, log),
      storeConnected$: settings.kvstoreHealthCheckActiveConnection ? store.counters.connected$ : of(true),
      storeReady$: store.ready$,
      termination$: signal$,
    },
    {
      limiter: new Limiter({ ...limiterOptions(settings), offenders: counted }, statistics),
      counters: store.counters,
      statistics,
      scheduler: turnScheduler,
      tracer: tracing.tracer,
      decisionLog: decisionLog(log),
      onInternalError: (error) => log.error('internal error while deciding a request', { error: asError(error) }),
    },
    {
      startsWithoutRules: settings.forceStartWithoutInitialConfig,
      needsDomain: settings.healthyWithAtLeastOneConfigLoaded,
    },
  );
  return { statistics, offenders, rejections, outputs, tracing, store, signal$, streams };
}

/** The streams flow until the service has drained, whether or not a listener needs them at the moment. */
function subscribe({ config$, health$, windows$ }: Service): Subscription {
  const subscriptions = new Subscription();
  const streams: readonly Observable<unknown>[] = [config$, health$, windows$];
  for (const stream$ of streams) subscriptions.add(stream$.subscribe());
  return subscriptions;
}

/** First no new calls, then what carries the calls in flight, then what reports about them. */
function drainSteps(
  { streams, store, outputs, tracing }: Parts,
  listeners: Listeners,
  debug: DebugListener,
): readonly DrainStep[] {
  const completed$ = defer(() => {
    streams.complete();
    return streams.windows$;
  });
  return [
    { name: 'gRPC calls', run: () => defer(() => listeners.drainGrpc(DRAIN_DEADLINE)) },
    { name: 'pipeline windows', run: () => completed$ },
    { name: 'counter store', run: () => defer(() => store.counters.close()) },
    { name: 'HTTP requests', run: () => defer(() => listeners.closeHttp()) },
    { name: 'statistics outputs', run: () => outputs.finish() },
    { name: 'traces', run: () => tracing.finish() },
    { name: 'debug listener', run: () => defer(() => debug.close()) },
  ];
}
