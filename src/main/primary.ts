import { randomBytes } from 'node:crypto';
import { type Observable, Subject, defer, takeUntil, tap } from 'rxjs';
import { VERSION } from '../cli/version';
import type { ServerTls } from '../grpc/http2/tls';
import { GRPC_BACKLOG } from '../grpc/server/grpc-server';
import { unavailableHttp } from '../http/serve-http';
import { RecentConfigurations } from '../operators/configurations';
import { WorkerDecisions } from '../operators/worker-decisions';
import type { Ruleset } from '../rules/ruleset';
import { recordLoads } from '../sinks/logs/rule-log';
import { turnScheduler } from './turn-scheduler';
import { GrpcTls } from '../sources/certificates';
import { ruleSource } from '../sources/rule-source';
import { terminationSignals } from '../sources/signals';
import type { DrainStep } from '../streams/drain';
import type { Readiness } from '../streams/readiness';
import { type ConnectionBound, ConnectionDispatch } from '../workers/dispatch';
import { Exchange } from '../workers/exchange';
import { type Instance, instance } from '../workers/instance';
import { WorkerPool } from '../workers/pool';
import { type ForkOptions, type TlsTexts, WorkerProcess } from '../workers/process';
import { type RawRules, distributeRules } from '../workers/rules';
import { nameOfPeer } from '../text/host-port';
import { type App, storeNote } from './app';
import { countsInMemory, memoryStore } from './counter-store';
import { openDebugListener } from './debug-listener';
import { HttpRejections } from './http-rejections';
import { type RunOptions, type Serving, lifeOf } from './life';
import { startStatisticsOutputs } from './outputs';
import { RefusedConnections } from './refused-connections';
import { grpcAddress, httpAddress } from './servers';

export interface PrimaryOptions extends RunOptions {
  /** The number of workers, at least 2. */
  readonly workers: number;
  readonly fork: ForkOptions;
}

/**
 * Runs the service as several processes: starts the workers, opens the listeners when all of them are ready, gives them the
 * connections, replaces workers that end, and drains all at the first signal.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents the service from running
 */
export async function runPrimary(app: App, { workers, fork, ...options }: PrimaryOptions): Promise<0 | 1> {
  process.title = 'weir: primary';
  const { settings, statistics, log } = app;
  statistics.gauge('ratelimit.build_info', () => 1, { version: VERSION, node: process.versions.node });
  const rejections = new HttpRejections(statistics, log);
  const refusals = new RefusedConnections();
  const pool = new WorkerPool({ count: workers, fork: (number) => new WorkerProcess(number, fork), log });
  const memory = countsInMemory(settings) ? memoryStore(app, statistics, log).counters : undefined;
  const exchange = new Exchange(pool, { statistics, memory });
  const decisions = new WorkerDecisions({ workers: () => pool.workers, offendersSize: settings.offendersSize });
  const outputs = await startStatisticsOutputs(app, { offenders: decisions, rejections, workers: exchange });
  const signal$ = terminationSignals();
  const configurations = new RecentConfigurations();
  const drainBegins$ = new Subject<void>();
  const streams = await instanceOf(app, { pool, configurations, signal$, drainBegins$ });
  const tls = await shareCertificates(app, pool);
  const { config$, readiness } = streams;
  readiness.storeNote = storeNote(app, streams);
  // Before the subscription: until then, a second signal ends the process, should the address of the listener not be found.
  const debug = await openDebugListener(app, {
    config$,
    configurations,
    readiness,
    rejections,
    workers: exchange,
    decisions,
  });
  const subscriptions = exchange.exchanging$.subscribe();
  subscriptions.add(streams.flow$.subscribe());
  subscriptions.add(readiness.health$.subscribe((health) => pool.announce({ kind: 'health', health })));
  subscriptions.add(refusals.logTo(log).subscribe());
  subscriptions.add(rejections.logConditions().subscribe());
  const dispatch = dispatchTo(pool, app, { readiness, rejections, refusals });
  try {
    subscriptions.add(pool.running$.subscribe());
    return await lifeOf(app, {
      ...options,
      signal$,
      readiness,
      open: async () => ({
        ...(await openListeners(app, dispatch)),
        debug: debug.address,
        metrics: outputs.metricsAddress,
        store: pool.workers.find(({ store }) => store !== undefined)?.store ?? '',
        rules: config$.value.loaded,
      }),
      connections: () => dispatch.connections,
      // In the order of a single process; its steps up to the counter store are one here, in all workers at the same time.
      drainSteps: [
        { name: 'rules', run: () => defer(async () => drainBegins$.next()) },
        ...endOfCalls(pool, dispatch, tls),
        { name: 'counter store', run: () => defer(async () => memory?.close()) },
        { name: 'statistics outputs', run: () => outputs.finish() },
        { name: 'debug listener', run: () => defer(() => debug.close()) },
      ],
      hasLostCalls: () => pool.hasLostCalls,
    });
  } finally {
    // Workers that have not ended by themselves: the drain was aborted, or the service could not start.
    subscriptions.unsubscribe();
  }
}

interface InstanceInputs {
  readonly pool: WorkerPool;
  readonly configurations: RecentConfigurations;
  readonly signal$: Observable<unknown>;
  readonly drainBegins$: Observable<unknown>;
}

/** The streams of the primary; the rules are those that the workers decide by. */
async function instanceOf(
  app: App,
  { pool, configurations, signal$, drainBegins$ }: InstanceInputs,
): Promise<Instance> {
  const { forceStartWithoutInitialConfig, healthyWithAtLeastOneConfigLoaded } = app.settings;
  const raw = new WeakMap<Ruleset, RawRules>();
  const { events$ } = await ruleSource({ ...app, onLoaded: (ruleset, files) => raw.set(ruleset, files) });
  const rules$ = events$.pipe(
    // Until the drain, callers are served as before: with new rules, too.
    takeUntil(drainBegins$),
    distributeRules({
      pool,
      rawOf: (ruleset) => raw.get(ruleset) ?? [],
      startsWithoutRules: forceStartWithoutInitialConfig,
    }),
    recordLoads(app),
    tap((event) => configurations.record(event)),
  );
  return instance(
    { rules$, workers$: pool.workers$, complete$: pool.complete$, termination$: signal$ },
    {
      startsWithoutRules: forceStartWithoutInitialConfig,
      needsDomain: healthyWithAtLeastOneConfigLoaded,
      scheduler: turnScheduler,
    },
  );
}

async function openListeners(app: App, dispatch: ConnectionDispatch): Promise<Pick<Serving, 'grpc' | 'http'>> {
  const http = await dispatch.listen('http', httpAddress(app));
  app.listeners.add(() => dispatch.abort());
  const grpc = await dispatch.listen('grpc', grpcAddress(app), GRPC_BACKLOG);
  // At once if the drain was aborted meanwhile.
  app.listeners.add(() => dispatch.abort());
  return { grpc, http };
}

function endOfCalls(pool: WorkerPool, dispatch: ConnectionDispatch, tls: GrpcTls | undefined): readonly DrainStep[] {
  async function drainCalls(within: number): Promise<void> {
    tls?.close();
    pool.stopReplacing();
    await dispatch.stop('grpc');
    await pool.drain(within);
  }
  async function finishWorkers(): Promise<void> {
    await dispatch.stop('http');
    await pool.finish();
    await dispatch.close();
  }
  return [
    { name: 'gRPC calls', run: (within) => defer(() => drainCalls(within)) },
    { name: 'HTTP requests', run: () => defer(finishWorkers) },
  ];
}

const TICKET_KEY_BYTES = 48;

/**
 * The certificates of the gRPC listener when workers do the handshakes: read, checked and counted here, and sent to all of them.
 *
 * @throws when they cannot be used
 */
async function shareCertificates(app: App, pool: WorkerPool): Promise<GrpcTls | undefined> {
  const tls = app.settings.grpcServerUseTls ? new GrpcTls(app) : undefined;
  let current: TlsTexts | undefined;
  function replaceTls({ cert, key, clientCa, clientName }: ServerTls): void {
    const ca = clientCa?.toString();
    // As in a single process: another authority may have revoked the certificate of a ticket's holder.
    const kept = current?.clientCa === ca ? current?.ticketKeys : undefined;
    const ticketKeys = kept ?? randomBytes(TICKET_KEY_BYTES).toString('base64');
    current = { cert: cert.toString(), key: key.toString(), clientCa: ca, clientName, ticketKeys };
    pool.announce({ kind: 'tls', tls: current });
  }
  if (tls !== undefined) replaceTls(await tls.first());
  tls?.follow({ replaceTls });
  return tls;
}

const HTTP_REASONS: Readonly<Record<ConnectionBound, string>> = {
  connections: 'too many connections',
  file_descriptors: 'few file descriptors are left',
  hand_over: 'more connections arrive than the workers can be given',
};

/** What refuses connections, and what probes are answered while no worker is ready. */
interface DispatchInputs {
  readonly readiness: Readiness;
  readonly rejections: HttpRejections;
  readonly refusals: RefusedConnections;
}

/** Gives the connections of the listeners for decisions to the workers; refuses some as the servers do in a single process. */
function dispatchTo(pool: WorkerPool, app: App, inputs: DispatchInputs): ConnectionDispatch {
  const { settings, statistics, log } = app;
  const { readiness, rejections, refusals } = inputs;
  const onRejected = rejections.of('HTTP');
  const resets = statistics.counter('ratelimit.workers.reset_connections');
  const dispatch: ConnectionDispatch = new ConnectionDispatch({
    pool,
    maxGrpcConnections: settings.grpcMaxConnections,
    unavailable: unavailableHttp({ readiness, onRejected, log }),
    onError: (error) => log.error('a listener has failed', { error }),
    onReset: (listener) => {
      resets.add(1);
      refusals.reset(listener === 'grpc' ? 'gRPC' : 'HTTP');
    },
    onRefused: (listener, kind, socket) => {
      if (listener === 'http') return onRejected('connections', socket, HTTP_REASONS[kind]);
      statistics.counter(`ratelimit_server.http2.${kind === 'hand_over' ? 'connections' : kind}`).add(1);
      refusals.grpcRefused(kind, dispatch.count('grpc'), settings);
      if (log.isDebug) log.debug('gRPC connection or stream rejected', { kind, reason: '', peer: nameOfPeer(socket) });
      return undefined;
    },
  });
  return dispatch;
}
