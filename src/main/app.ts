import { type Observable, Subscription, defer, finalize, merge, of, take, tap, timer } from 'rxjs';
import { Leases } from '../counting/leases';
import { Limiter } from '../limiter/limiter';
import { LocalCounts } from '../limiter/local-counts';
import { Offenders } from '../limiter/offenders';
import { LocalDecisions } from '../operators/decisions';
import { StoredReservations } from '../reservations/reservations';
import { type LoadedSettings, readSettings } from '../settings/read-settings';
import { type OpenDecisionLog, openDecisionLog } from '../sinks/logs/decision-log';
import type { BoundedLines } from '../sinks/logs/bounded-lines';
import { type Logger, createLogger } from '../sinks/logs/logger';
import { rejectionWarnings, unmatchedWarnings } from '../sinks/logs/sampled-warnings';
import { turnScheduler } from './turn-scheduler';
import { Statistics } from '../statistics/statistics';
import type { DrainStep } from '../streams/drain';
import type { OffenderSource } from '../streams/ports/offender-source';
import type { Reservations } from '../streams/ports/reservations';
import type { RuleEvent } from '../streams/ports/rule-source';
import type { Readiness } from '../streams/readiness';
import { type Service, service } from '../streams/service';
import { BREAKER_OPEN, storeFaults } from '../streams/store-faults';
import { counted } from '../text/counted';
import type { SecretMask } from '../text/secret-mask';
import { asError } from '../text/thrown';
import { type CounterStore, countsInMemory } from './counter-store';
import { decisionTimeout, limiterOptions } from './options';
import { processCount } from './process';
import { maskingReader } from '../sources/secret-files';
import { startChecks } from './start-checks';
import { type ServiceTracing, startTracing } from './tracing';

/** What every part of a process is made with. */
export interface App extends LoadedSettings {
  readonly log: Logger;
  /** Where the lines of the log go. */
  readonly lines: BoundedLines;
  readonly statistics: Statistics;
  /** Is called with each call that is rejected without a decision. */
  readonly onRejectedCall: ReturnType<typeof rejectionWarnings>;
  /** Closes every listener that is still open when the service ends, because its drain was aborted or it could not start. */
  readonly listeners: Subscription;
}

export interface AppOptions {
  /** Where the lines of the log go. */
  readonly lines: BoundedLines;
  /** What hides the secrets in them, and from now on also those that are read from files. */
  readonly secrets: SecretMask;
  /** The number of the worker that this process is, if it is one. */
  readonly worker?: number | undefined;
}

/**
 * Reads the settings and opens the log, and from then on logs what is not caught anywhere.
 *
 * @throws SettingsError
 */
export function createApp(environment: NodeJS.ProcessEnv, { lines, secrets, worker }: AppOptions): App {
  // The primary has inspected what its workers use, too.
  const inspect = worker === undefined ? startChecks() : undefined;
  const reading = readSettings(environment, maskingReader(secrets), inspect);
  const { logLevel: level, logFormat: format } = reading.settings;
  const common = worker === undefined ? {} : { common: { worker } };
  const log = createLogger({ level, format, stream: lines, mask: secrets.hide, ...common });
  const app = appOf(reading, log, lines);
  const dropped = app.statistics.counter('ratelimit.log.dropped');
  lines.onDropped((count) => dropped.add(count));
  lines.onResumed((count) => {
    log.warn('log lines were dropped, because standard error was blocked, too slow or closed', { lines: count });
  });
  exitOnUncaught(log, lines);
  return app;
}

/** What every part is made with, by settings. */
export function appOf(reading: LoadedSettings, log: Logger, lines: BoundedLines): App {
  const statistics = new Statistics(reading.settings.statsMaxRuntimeKeys);
  const onRejectedCall = rejectionWarnings(log, Date.now);
  return { ...reading, log, lines, statistics, onRejectedCall, listeners: new Subscription() };
}

/**
 * Logs an exception that was not caught anywhere, also one of a promise, and ends the process with 1. Node would write it in a
 * format of its own and with the secrets in it, and end the process before the last lines of the log are written.
 */
function exitOnUncaught(log: Logger, lines: BoundedLines): void {
  // Once: an exception that is thrown while the lines are written ends the process immediately.
  process.once('uncaughtException', (thrown: unknown) => {
    const error = asError(thrown);
    log.fatal('internal error; the process exits', { error, stack: error.stack });
    void lines.flush().then(() => process.exit(1));
  });
}

/** What differs between the only process of an instance and one of several workers. */
export interface DecisionInputs {
  readonly rules$: Observable<RuleEvent>;
  readonly store: CounterStore;
  /** What ends the process, shared. */
  readonly termination$: Observable<unknown>;
  /** Called with each key that the limiter has removed from its local cache: other processes have to do so, too. */
  readonly onForgotten?: (cacheKey: string) => void;
}

/** What decides in a process, and what records its decisions. */
export interface DecisionPath extends Service {
  readonly limiter: Limiter;
  readonly store: CounterStore;
  /** Undefined when the callers over their limits are not counted. */
  readonly offenders: Offenders | undefined;
  readonly tracing: ServiceTracing;
  readonly decisionLog: OpenDecisionLog;
  readonly reservations: Reservations;
}

/**
 * Makes what decides in a process.
 *
 * @throws when a file or an address of the settings cannot be used, naming the setting
 */
export async function decisionPath(app: App, inputs: DecisionInputs): Promise<DecisionPath> {
  const { settings, statistics, log } = app;
  const { rules$, store, termination$, onForgotten } = inputs;
  const decisionLog = await openDecisionLog(app);
  const offenders = offendersOf(app);
  const tracing = await startTracing(app, log);
  const unmatched = settings.unmatchedWarnings ? unmatchedWarnings(log, showsValues(settings, log)) : undefined;
  const local = localCounts(app, store);
  const leaseTable = leasesOf(app, store);
  const leases = leaseTable === undefined ? 'off' : settings.leases;
  const limiter = new Limiter(
    { ...limiterOptions(settings), offenders, unmatched, local, leases, leaseTable, onForgotten },
    statistics,
  );
  const streams = service(
    {
      rules$,
      storeConnected$: settings.kvstoreHealthCheckActiveConnection ? store.counters.connected$ : of(true),
      storeReady$: storeReady(app, store),
      termination$,
    },
    {
      limiter,
      counters: store.counters,
      statistics,
      scheduler: turnScheduler,
      timeout: decisionTimeout(settings),
      breaker: { failures: settings.storeBreakerFailures, observe: storeFaults(statistics, log) },
      tracer: tracing.tracer,
      decisionLog: decisionLog.log,
      onRejected: app.onRejectedCall,
      onInternalError: (error) => log.error('internal error while deciding a request', { error: asError(error) }),
    },
    {
      startsWithoutRules: settings.forceStartWithoutInitialConfig,
      needsDomain: settings.healthyWithAtLeastOneConfigLoaded,
    },
  );
  streams.readiness.storeNote = storeNote(app, streams);
  const reservations = reservationsOf(app, inputs, { ...streams, limiter, offenders, decisionLog });
  return { ...streams, limiter, store, offenders, tracing, decisionLog, reservations };
}

/** Whether values of callers may be in the log: only where the operator has them written anyway. */
export function showsValues(
  { decisionLog }: LoadedSettings['settings'],
  { isDebug }: Pick<Logger, 'isDebug'>,
): boolean {
  return decisionLog !== 'off' || isDebug;
}

/** The store decides reservations, all or nothing, without a local cache. */
function reservationsOf(
  { settings, statistics }: App,
  { store, onForgotten }: DecisionInputs,
  {
    config$,
    limiter,
    release,
    offenders,
    decisionLog,
  }: Pick<DecisionPath, 'config$' | 'limiter' | 'release' | 'offenders' | 'decisionLog'>,
): Reservations {
  const options = { ...limiterOptions(settings), offenders, localCacheBytes: 0, stopIncrementWhenOverLimit: false };
  return new StoredReservations({
    limiter: new Limiter(options, statistics),
    options,
    ruleset: () => config$.value.loaded?.ruleset,
    store: store.reservations,
    statistics,
    log: decisionLog.log,
    now: Date.now,
    release: releaseBy(release),
    onFree: (cacheKey, isFallen) => {
      limiter.forget(cacheKey);
      if (isFallen && settings.localCacheSizeInBytes > 0) onForgotten?.(cacheKey);
    },
  });
}

/** Gives back leased hits for what is no stream. */
function releaseBy(release: Service['release']): (keys: readonly string[]) => Promise<void> {
  return (keys) => new Promise((resolve) => release(keys, resolve));
}

/** The leases of this process. Where counts stop at their limits, which no lease may pass, every call is counted exactly. */
function leasesOf({ settings, statistics }: App, { canLease }: CounterStore): Leases | undefined {
  if (settings.leases === 'off' || !canLease || settings.stopCacheKeyIncrementWhenOverlimit) return undefined;
  const leases = new Leases({
    now: () => performance.now(),
    wallClock: Date.now,
    granted: statistics.counter('ratelimit.lease.granted'),
    used: statistics.counter('ratelimit.lease.used'),
    returned: statistics.counter('ratelimit.lease.returned'),
    unused: statistics.counter('ratelimit.lease.unused'),
    saved: statistics.counter('ratelimit.lease.calls_saved'),
  });
  statistics.gauge('ratelimit.lease.keys', () => leases.size);
  return leases;
}

/** What counts for the policy `local`. Each worker counts by itself, and is one of those that share what is left of a limit. */
function localCounts({ settings, statistics }: App, { counters }: CounterStore): LocalCounts | undefined {
  if (countsInMemory(settings)) return undefined;
  return new LocalCounts({
    share: settings.storeFailureLocalShare * processCount(settings.workers),
    reconciles: settings.storeFailureReconcile,
    serverOf: (operation) => counters.laneOf(operation),
    dropped: statistics.counter('ratelimit.store.dropped_hits'),
  });
}

/** Milliseconds that the start waits for a store without which calls are answered by policy. */
const START_WITHOUT_STORE = 1_000;

/**
 * Emits when calls can be answered: when the store has been reached or, where calls are answered by policy without it, after a second. An
 * instance that is to end without its store waits for it.
 */
function storeReady({ settings, log }: App, store: CounterStore): Observable<unknown> {
  const { storeFailurePolicy: policy, kvstoreStartupMaxElapsedTime: maxElapsed } = settings;
  if (policy === 'error' || maxElapsed > 0) return store.ready$;
  const late$ = timer(START_WITHOUT_STORE).pipe(
    tap(() => log.warn('the counter store has not been reached; answering calls by policy until it is', { policy })),
  );
  return merge(store.ready$, late$).pipe(take(1));
}

/** What probes add to the check of the store: nothing when it is in this instance, or checked and not known to be away. */
export function storeNote(
  { settings, statistics }: App,
  { config$ }: Pick<Service, 'config$'>,
): Readiness['storeNote'] {
  const { kvstoreHealthCheckActiveConnection: isChecked, storeFailurePolicy: policy } = settings;
  if (countsInMemory(settings)) return () => ({});
  return () => {
    for (const { name, read } of statistics.gauges) {
      if (name !== BREAKER_OPEN || read() === 0) continue;
      const count = policy === 'local' ? (config$.value.loaded?.ruleset.notLocal.count ?? 0) : 0;
      const uncovered = count === 0 ? '' : `; ${counted(count, 'rule')}: error`;
      return { note: `degraded (${policy}${uncovered})`, isDegraded: true };
    }
    return isChecked ? {} : { note: 'not checked' };
  };
}

/** What operators ask of this process, and change in it. */
export function localDecisions(
  { settings }: App,
  { config$, limiter, store, apply, release, offenders }: DecisionPath,
): LocalDecisions {
  return new LocalDecisions({
    timeout: decisionTimeout(settings),
    config$,
    limiter,
    administration: store.counters,
    reservations: store.reservations,
    apply,
    release: releaseBy(release),
    offenders: offenderSource(offenders),
  });
}

/** The callers that are limited most at present; none when they are not counted. */
export function offenderSource(offenders: Offenders | undefined): OffenderSource {
  return { top: async (query) => offenders?.top(query, Math.floor(Date.now() / 1000)) ?? [] };
}

function offendersOf({ settings: { offendersSize, offendersWindow } }: App): Offenders | undefined {
  if (offendersSize === 0) return undefined;
  return new Offenders({ capacity: offendersSize, windowSeconds: offendersWindow / 1000 });
}

/** How the calls of a process end: those in flight do not wait for the store longer than a drain takes. */
export function endOfCalls({ store }: DecisionPath, drained: (within: number) => Promise<unknown>): DrainStep {
  function run(within: number): Promise<unknown> {
    store.counters.endWithin?.(within);
    return drained(within);
  }
  return { name: 'gRPC calls', run: (within) => defer(() => run(within)) };
}

/** How the decisions of a process end when its servers take no more calls: those in flight first, then what carries them. */
export function endOfDecisions({ log }: App, path: DecisionPath): readonly DrainStep[] {
  const completed$ = defer(() => {
    path.complete();
    return path.windows$.pipe(
      finalize(() => {
        const hits = path.limiter.local?.unsentHits ?? 0;
        if (hits > 0) log.warn('hits could not be added to the counter store, which does not answer', { hits });
      }),
    );
  });
  return [
    { name: 'pipeline windows', run: () => completed$ },
    { name: 'reservations', run: () => defer(() => path.reservations.complete()) },
    { name: 'counter store', run: () => defer(() => path.store.counters.close()) },
  ];
}

/** How that which records decisions ends. */
export function endOfRecords({ tracing, decisionLog }: DecisionPath): readonly DrainStep[] {
  return [
    { name: 'traces', run: () => tracing.finish() },
    { name: 'decision log', run: () => defer(() => decisionLog.finish()) },
  ];
}
