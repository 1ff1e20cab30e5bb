import {
  EMPTY,
  type Observable,
  ReplaySubject,
  Subscription,
  asyncScheduler,
  combineLatest,
  concat,
  concatMap,
  defer,
  filter,
  finalize,
  ignoreElements,
  lastValueFrom,
  map,
  of,
  share,
  shareReplay,
} from 'rxjs';
import type { RulesAbout } from '../http/debug/rlconfig';
import { serveDebug } from '../http/debug/serve-debug';
import { Limiter } from '../limiter/limiter';
import { listRules } from '../rules/list-rules';
import type { SettingsReading } from '../settings/read-settings';
import { terminationSignals } from '../sources/signals';
import { turnScheduler } from '../sources/event-loop-turns';
import { Statistics } from '../statistics/statistics';
import { type CurrentConfig, currentConfig } from '../streams/current-config';
import { decisions } from '../streams/decisions';
import { type DrainOutcome, drain } from '../streams/drain';
import { type Health, health } from '../streams/health';
import { lifecycle } from '../streams/lifecycle';
import type { Log } from '../streams/ports/log';
import { asError } from '../text/thrown';
import { counterStore } from './counter-store';
import { type Addresses, Listeners } from './listeners';
import { limiterOptions } from './options';
import { ruleEvents } from './rule-events';
import { startStatisticsOutputs } from './statistics-outputs';
import { startTracing } from './tracing';

/** A drain that takes longer is cut short, in milliseconds. */
const DRAIN_DEADLINE = 10_000;

/**
 * Puts the parts together and subscribes to what drives them: the rules in force, the health, the pipeline of windows, and
 * the life of the process. Everything else is driven by these four.
 *
 * @returns the exit code, when the process may end
 * @throws what kept the service from running, for example a port that is taken
 */
export async function runService(
  reading: SettingsReading,
  log: Log,
  onServing: (addresses: Addresses) => void = () => undefined,
): Promise<number> {
  const { settings } = reading;
  const statistics = new Statistics(settings.statsMaxRuntimeKeys);
  const outputs = await startStatisticsOutputs(settings, statistics, log);
  const tracing = await startTracing(settings, log);
  const store = counterStore(reading, statistics, log);
  const signal$ = terminationSignals().pipe(share());
  const config$ = ruleEvents(settings, statistics, log).pipe(
    currentConfig(asyncScheduler),
    shareReplay({ bufferSize: 1, refCount: true }),
  );
  const health$ = health({
    'counter store': settings.kvstoreHealthCheckActiveConnection ? store.counters.connected$ : of(true),
    ...(settings.healthyWithAtLeastOneConfigLoaded && { configuration: config$.pipe(map(hasDomains)) }),
    termination: concat(of(true), signal$.pipe(map(() => false))),
  }).pipe(shareReplay({ bufferSize: 1, refCount: true }));

  let config: CurrentConfig = { loaded: undefined, rejected: undefined };
  let wellness: Health = { healthy: false, unhealthy: [] };
  const path = decisions({
    limiter: new Limiter(limiterOptions(settings), statistics),
    ruleset: () => config.loaded?.ruleset,
    counters: store.counters,
    statistics,
    windowSpan: settings.kvstorePipelineWindow,
    windowsInFlight: store.windowsInFlight,
    whenFull: store.whenFull,
    scheduler: turnScheduler,
    tracer: tracing.tracer,
    onDefect: (error) => log.error('a decision met a defect; the service goes on', { error: asError(error) }),
  });
  const answered$ = path.windows$.pipe(ignoreElements(), share({ connector: () => new ReplaySubject(1) }));

  const subscriptions = new Subscription();
  subscriptions.add(config$.subscribe((next) => (config = next)));
  subscriptions.add(health$.subscribe((next) => (wellness = next)));
  subscriptions.add(answered$.subscribe());

  const debug = await serveDebug({
    host: settings.debugHost,
    port: settings.debugPort,
    rules: () => (config.loaded === undefined ? [] : listRules(config.loaded.ruleset)),
    about: () => rulesAbout(config),
    statistics: () => statistics.entries(),
    log,
  });
  const doors = new Listeners(settings, {
    decide: path.decide,
    health$,
    health: () => wellness,
    statistics,
    log,
    tracer: tracing.tracer,
  });

  const serving$ = defer(async () => {
    const addresses = { ...(await doors.open()), debug: debug.address.port };
    log.info('serving', addresses);
    onServing(addresses);
  });
  const completePath$ = defer(() => {
    path.complete();
    return answered$;
  });
  const drained$ = drain({
    steps: [
      { name: 'gRPC calls', run: () => defer(() => doors.drainGrpc(DRAIN_DEADLINE)) },
      { name: 'pipeline windows', run: () => completePath$ },
      { name: 'counter store', run: () => defer(() => store.counters.close()) },
      { name: 'HTTP requests', run: () => defer(() => doors.closeHttp()) },
      { name: 'statistics outputs', run: () => outputs.finish() },
      { name: 'traces', run: () => tracing.finish() },
      { name: 'debug listener', run: () => defer(() => debug.close()) },
    ],
    signal$,
    deadline: DRAIN_DEADLINE,
    scheduler: asyncScheduler,
    onFailure: (step, error) => log.error(`${step} did not end well`, { error: asError(error) }),
  });
  const configured$ = settings.forceStartWithoutInitialConfig
    ? of(true)
    : config$.pipe(filter(({ loaded }) => loaded !== undefined));
  const ready$ = combineLatest([store.ready$, configured$]);

  const outcome$ = lifecycle({ ready$, termination$: signal$ }).pipe(
    concatMap((phase): Observable<DrainOutcome> => {
      if (phase === 'serving') return serving$.pipe(ignoreElements());
      return phase === 'draining' ? drained$ : EMPTY;
    }),
    finalize(() => subscriptions.unsubscribe()),
  );
  return exitCode(await lastValueFrom(outcome$), log);
}

function hasDomains({ loaded }: CurrentConfig): boolean {
  return loaded !== undefined && loaded.ruleset.domains.size > 0;
}

function rulesAbout({ loaded, rejected }: CurrentConfig): RulesAbout {
  return {
    loaded: loaded && { ...loaded.origin, at: new Date(loaded.at) },
    rejected: rejected && { reason: rejected.reason, at: new Date(rejected.at) },
  };
}

function exitCode(outcome: DrainOutcome, log: Log): number {
  if (outcome.kind === 'drained') return 0;
  log.error(`the end was cut short by ${outcome.why}; still under way: ${outcome.step}`);
  return 1;
}
