import { EMPTY, type Observable, asyncScheduler, defer, finalize, merge, of, take, tap, timer } from 'rxjs';
import { Leases } from '../counting/leases';
import type { LimiterOptions } from '../limiter/options';
import { Limiter } from '../limiter/limiter';
import { NO_OFFENDERS } from '../limiter/offender';
import { LocalCounts } from '../limiter/local-counts';
import { HeavyHitters } from '../limiter/heavy-hitters';
import { type ConditionEvent, PassingConditions } from '../log/condition-log';
import { LocalDecisions } from '../operators/decisions';
import { Watches } from '../operators/fleet/watches';
import { type ReservationsOptions, StoredReservations } from '../reservations/reservations';
import type { LoadedSettings } from '../settings/read-settings';
import { storeAbilities } from '../settings/stores';
import { type OpenDecisionLog, openDecisionLog } from '../sinks/logs/decision-log';
import type { Logger } from '../sinks/logs/logger';
import { askedWarnings, unmatchedWarnings } from '../sinks/logs/sampled-warnings';
import type { DrainStep } from '../streams/drain';
import type { OffenderSource } from '../streams/ports/offender-source';
import type { Reservations } from '../streams/ports/reservations';
import type { RuleEvent } from '../streams/ports/rule-source';
import { type Service, type ServiceOptions, service } from '../streams/service';
import { LOG_AFTER } from '../streams/readiness';
import type { ShownServers } from '../streams/server-views';
import { counted } from '../text/counted';
import { asError } from '../text/thrown';
import type { App } from './app';
import type { CounterStore } from './counter-store';
import { decisionTimeout, decisionTimeouts, limiterOptions } from './options';
import { processCount } from './process';
import { type ServiceTracing, startTracing } from './tracing';
import { turnClock, turnScheduler } from './turn-scheduler';

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
  /** Counts for the policy `local`; undefined when the store is in this process. */
  readonly local: LocalCounts | undefined;
  readonly store: CounterStore;
  /** Undefined when the callers over their limits are not counted. */
  readonly offenders: HeavyHitters | undefined;
  /** The callers over their limits, as operators read them; none when they are not counted. */
  readonly offenderSource: OffenderSource;
  /** What operators request of this process, and change in it. */
  readonly decisions: LocalDecisions;
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
  const { rules$, store, termination$ } = inputs;
  const { counters, freedKeys } = store;
  function onForgotten(cacheKey: string): void {
    inputs.onForgotten?.(cacheKey);
    freedKeys?.announce(cacheKey);
  }
  const decisionLog = await openDecisionLog(app);
  const conditions = new PassingConditions();
  const offenders = offendersOf(app);
  const tracing = await startTracing(app, log);
  const [local, leases] = [localCounts(app, store), leasesOf(app, store)];
  const limiter = limiterOf(app, { offenders, local, leaseTable: leases, onForgotten });
  const streams = service(
    {
      rules$,
      storeConnected$: settings.kvstoreHealthCheckActiveConnection ? counters.connected$ : of(true),
      storeReady$: storeReady(app, store),
      termination$,
    },
    {
      ...{ limiter, local, leases, counters, statistics },
      scheduler: turnScheduler,
      timeouts: decisionTimeouts(app),
      tracer: tracing.tracer,
      decisionLog: decisionLog.log,
      ...{ onRejected: app.onRejectedCall, onReportsLost: () => conditions.occurred(REPORTS_LOST) },
      onInternalError: (error) => log.error('internal error while deciding a request', { error: asError(error) }),
    },
    serviceOptions(app, store.servers),
  );
  function onFree(cacheKey: string, isFallen: boolean): void {
    limiter.forget(cacheKey);
    if (isFallen && settings.localCacheSizeInBytes > 0) onForgotten(cacheKey);
  }
  const watches = new Watches(decisionLog.log, streams.logTo);
  const reservations = reservationsOf(app, { store, onFree }, { ...streams, offenders, watches });
  const offenderSource: OffenderSource = {
    summary: async () => offenders?.summary(Math.floor(Date.now() / 1000)) ?? NO_OFFENDERS,
  };
  const decisions = new LocalDecisions({
    timeout: decisionTimeout(app),
    ...{ config$: streams.config$, apply: streams.apply, limiter, leases, offenders: offenderSource },
    ...{ administration: store.counters, reservations: store.reservations, release: releaseBy(streams.release) },
    ...{ onForgotten, watches },
  });
  const freed$ = (freedKeys?.freed$ ?? EMPTY).pipe(tap((keys) => limiter.forgetReduced(keys)));
  const freedByStore$ = typeof store.reservations === 'string' ? undefined : store.reservations.freed$;
  const expired$ = (freedByStore$ ?? EMPTY).pipe(tap((cacheKey) => onFree(cacheKey, true)));
  return {
    ...{ ...streams, flow$: merge(streams.flow$, freed$, expired$, conditions.logTo(log, asyncScheduler)) },
    ...{ limiter, local, store, offenders, offenderSource, decisions, tracing, decisionLog, reservations },
  };
}

const REPORTS_LOST: ConditionEvent = {
  condition: 'reports lost',
  begins:
    'reports of hits are not counted, because the counter store does not answer: postpaid limits let too much pass',
  beginFields: {},
  ends: 'no report of hits was lost in the last 5 s',
  endFields: (calls) => ({ calls }),
};

function limiterOf(
  { settings, statistics, log }: App,
  parts: Pick<LimiterOptions, 'offenders' | 'local' | 'leaseTable' | 'onForgotten'>,
): Limiter {
  const unmatched = settings.unmatchedWarnings ? unmatchedWarnings(log, showsValues(settings, log)) : undefined;
  const leases = parts.leaseTable && settings.leases;
  const options = { ...limiterOptions(settings), ...parts, unmatched, asked: askedWarnings(log), leases };
  return new Limiter(options, statistics);
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
  { store, onFree }: Pick<DecisionInputs, 'store'> & Pick<ReservationsOptions, 'onFree'>,
  made: Pick<DecisionPath, 'config$' | 'release' | 'offenders'> & { readonly watches: Watches },
): Reservations {
  const { config$, release, offenders, watches } = made;
  const options = { ...limiterOptions(settings), offenders, localCacheBytes: 0, stopIncrementWhenOverLimit: false };
  return new StoredReservations({
    limiter: new Limiter(options, statistics),
    options,
    ruleset: () => config$.value.loaded?.ruleset,
    store: store.reservations,
    statistics,
    get log() {
      return watches.log;
    },
    now: Date.now,
    release: releaseBy(release),
    onFree,
  });
}

/** Gives back leased hits for what is no stream. */
function releaseBy(release: Service['release']): (keys: readonly string[]) => Promise<void> {
  return (keys) => new Promise((resolve) => release(keys, resolve));
}

/**
 * The leases of this process. Where counts stop at their limits, which no lease may pass, every call is counted
 * exactly.
 */
function leasesOf({ settings, statistics }: App, { can }: CounterStore): Leases | undefined {
  if (settings.leases === 'off' || can.leases !== true || settings.stopCacheKeyIncrementWhenOverlimit) return undefined;
  const leases = new Leases({
    now: turnClock(),
    wallClock: Date.now,
    isAuto: settings.leases === 'auto',
    grantedHits: statistics.counter('ratelimit.lease.granted'),
    usedHits: statistics.counter('ratelimit.lease.used'),
    returnedHits: statistics.counter('ratelimit.lease.returned'),
    unusedHits: statistics.counter('ratelimit.lease.unused'),
    savedCalls: statistics.counter('ratelimit.lease.calls_saved'),
  });
  statistics.gauge('ratelimit.lease.keys', () => leases.size);
  return leases;
}

/**
 * What counts for the policy `local`. Each worker counts by itself, and is one of those that share what is left of a
 * limit.
 */
function localCounts({ settings, statistics, instances$ }: App, { counters }: CounterStore): LocalCounts | undefined {
  if (!storeAbilities(settings).isShared) return undefined;
  const processes = processCount(settings.workers);
  return new LocalCounts({
    share: () => instances$.value * processes,
    reconciles: settings.storeFailureReconcile,
    serverOf: (operation) => counters.laneOf(operation),
    dropped: statistics.counter('ratelimit.store.dropped_hits'),
  });
}

/**
 * Milliseconds that the start waits for a store without which calls are answered by policy. It ends before it is logged
 * that the service does not serve until the store is reached.
 */
const START_WITHOUT_STORE = LOG_AFTER - 100;

/**
 * Emits when calls can be answered: when the store has been reached or, where calls are answered by policy without it,
 * after almost a second. An instance that is to end without its store waits for it.
 */
function storeReady({ settings, log }: App, store: CounterStore): Observable<unknown> {
  const { storeFailurePolicy: policy, kvstoreStartupMaxElapsedTime: maxElapsed } = settings;
  if (policy === 'error' || maxElapsed > 0) return store.ready$;
  const late$ = timer(START_WITHOUT_STORE).pipe(
    tap(() => log.warn('the counter store has not been reached; answering calls by policy until it is', { policy })),
  );
  return merge(store.ready$, late$).pipe(take(1));
}

/** How the process waits for its start and its health is derived, alone and as the primary of several. */
export function serviceOptions(app: App, servers: ShownServers): ServiceOptions {
  return {
    startsWithoutRules: app.settings.forceStartWithoutInitialConfig,
    needsDomain: app.settings.healthyWithAtLeastOneConfigLoaded,
    storeNote: storeNote(app, servers),
  };
}

/** What probes add to the check of the store: nothing when it is in this instance, or all its servers answer. */
export function storeNote({ settings }: App, servers: ShownServers): NonNullable<ServiceOptions['storeNote']> {
  const { storeFailurePolicy: policy } = settings;
  if (!storeAbilities(settings).isShared) return () => ({});
  return ({ loaded }) => {
    const { shown } = servers;
    if (shown.every(({ troubleSince }) => troubleSince === undefined)) {
      const isKnown = shown.length > 0 && shown.every(({ condition }) => condition !== 'unknown');
      return isKnown ? {} : { note: 'not checked' };
    }
    const count = policy === 'local' ? (loaded?.ruleset.notLocal.count ?? 0) : 0;
    const uncovered = count === 0 ? '' : `; ${counted(count, 'rule')}: error`;
    return { note: `degraded (${policy}${uncovered})`, isDegraded: true };
  };
}

function offendersOf({ settings: { offendersSize, offendersWindow } }: App): HeavyHitters | undefined {
  if (offendersSize === 0) return undefined;
  return new HeavyHitters({ capacity: offendersSize, windowSeconds: offendersWindow / 1000 });
}

/** How the decisions of a process end: those in flight first, then what carries them. */
export function endOfDecisions(
  { log }: App,
  path: DecisionPath,
  drainGrpc: (within: number) => Promise<unknown>,
): readonly DrainStep[] {
  const { store, reservations, local } = path;
  function drainCalls(within: number): Promise<unknown> {
    // Calls in flight do not wait for the store longer than a drain takes.
    store.servers.drain(within);
    return drainGrpc(within);
  }
  const windows$ = defer(() => {
    path.complete();
    return path.windows$.pipe(
      finalize(() => {
        const hits = local?.unsentHits ?? 0;
        if (hits > 0) log.warn('hits could not be added to the counter store, which does not answer', { hits });
      }),
    );
  });
  return [
    { name: 'gRPC calls', run: (within) => defer(() => drainCalls(within)) },
    { name: 'pipeline windows', run: () => windows$ },
    { name: 'reservations', run: () => defer(() => reservations.complete()) },
    { name: 'counter store', run: () => defer(() => store.counters.close()) },
  ];
}

/** How that which records decisions ends. */
export function endOfRecords({ tracing, decisionLog }: DecisionPath): readonly DrainStep[] {
  return [
    { name: 'traces', run: () => tracing.finish() },
    { name: 'decision log', run: () => defer(() => decisionLog.finish()) },
  ];
}
