import { randomBytes } from 'node:crypto';
import { Subject, defer, takeUntil, tap } from 'rxjs';
import type { ServerTls } from '../grpc/http2/tls';
import { GRPC_BACKLOG } from '../grpc/server/grpc-server';
import { PUBLIC_LIMITS } from '../http/limits';
import { unavailableHttp } from '../http/serve-http';
import { RecentConfigurations } from '../operators/configurations';
import { WorkerDecisions } from '../operators/worker-decisions';
import type { RawRules } from '../rules/files/read-rule-files';
import type { Ruleset } from '../rules/ruleset';
import { ListenerCertificates } from '../sources/certificates';
import { ruleSource } from '../sources/rule-source';
import { terminationSignals } from '../sources/signals';
import type { DrainStep } from '../streams/drain';
import { type ConnectionBound, ConnectionDispatch } from '../workers/dispatch';
import { WorkerRpc } from '../workers/worker-rpc';
import { instanceOfWorkers } from '../workers/instance';
import { WorkerPool } from '../workers/pool';
import { type ForkOptions, type TlsTexts, WorkerProcess } from '../workers/process';
import { distributeRules } from '../workers/rules';
import { serversOf } from '../workers/servers';
import type { App } from './app';
import { storeAbilities } from '../settings/stores';
import { memoryStore } from './counter-store';
import type { DebugInputs } from './debug-listener';
import { serviceOptions } from './decision-path';
import { type RunOptions, type Serving, lifeOf, runProcess } from './life';
import { Rejections } from './rejections';
import { grpcAddress, httpAddress } from './servers';
import { openFront, recordRules } from './service-front';
import { turnScheduler } from './turn-scheduler';

export interface PrimaryOptions extends RunOptions {
  /** The number of workers, at least 2. */
  readonly workers: number;
  readonly fork: ForkOptions;
}

/**
 * Runs the primary of several processes: starts the workers, opens the listeners when all of them are ready, gives them
 * the connections, replaces workers that end, and drains all at the first signal.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents it from running, for example a port that is in use
 */
export async function runPrimary(app: App, { workers: size, fork, ...options }: PrimaryOptions): Promise<0 | 1> {
  process.title = 'weir: primary';
  const { settings, statistics, log } = app;
  const signal$ = terminationSignals();
  const rejections = new Rejections(app);
  const configurations = new RecentConfigurations();
  const pool = new WorkerPool({ count: size, fork: (number) => new WorkerProcess(number, fork), log });
  const memory = storeAbilities(settings).isShared ? undefined : memoryStore(app).counters;
  const workers = new WorkerRpc(pool, { statistics, memory });
  const decisions = new WorkerDecisions({ workers: () => pool.workers, offendersSize: settings.offendersSize });
  const stores = serversOf(pool);
  const drainBegins$ = new Subject<void>();
  const shared = serviceOptions(app, stores);
  const raw = new WeakMap<Ruleset, RawRules>();
  const { events$ } = await ruleSource({ ...app, onLoaded: (ruleset, files) => raw.set(ruleset, files) });
  const rules$ = events$.pipe(
    // Until the drain, callers are served as before: with new rules, too.
    takeUntil(drainBegins$),
    distributeRules({ ...shared, pool, rawOf: (ruleset) => raw.get(ruleset) ?? [] }),
    recordRules(app, configurations),
  );
  const { config$, readiness, flow$ } = instanceOfWorkers(
    { rules$, workers$: pool.workers$, complete$: pool.complete$, termination$: signal$ },
    { ...shared, scheduler: turnScheduler },
  );
  const health$ = readiness.health$.pipe(tap((health) => pool.announce({ kind: 'health', health })));
  const instances$ = app.instances$.pipe(tap((count) => pool.announce({ kind: 'instances', count })));
  const tls = await shareCertificates(app, pool);
  const dispatch = dispatchTo(pool, app, { readiness, rejections });
  const shown = { config$, readiness, decisions, offenders: decisions, configurations, rejections, stores, workers };
  const front = await openFront(app, shown);
  async function open(): Promise<Serving> {
    const addresses = { ...(await listen(dispatch, app)), ...front.addresses };
    const store = pool.workers.find((each) => each.store !== undefined)?.store ?? '';
    return { ...addresses, store, rules: config$.value.loaded };
  }
  const drainSteps = [
    { name: 'rules', run: () => defer(async () => drainBegins$.next()) },
    ...endOfWorkers(pool, dispatch, () => tls?.close()),
    { name: 'counter store', run: () => defer(async () => memory?.close()) },
    front.endOfStatistics,
    front.endOfDebug,
  ];
  return runProcess(app, {
    readiness,
    // The workers last, when all that concerns them is subscribed to.
    flows: [rejections.logConditions(), workers.serving$, flow$, health$, instances$, pool.running$],
    live: () =>
      lifeOf(app, {
        ...{ ...options, signal$, readiness, open, drainSteps },
        connections: () => dispatch.connections,
        hasLostCalls: () => pool.hasLostCalls,
      }),
  });
}

async function listen(dispatch: ConnectionDispatch, app: App): Promise<Pick<Serving, 'grpc' | 'http'>> {
  const http = await dispatch.listen('http', httpAddress(app));
  app.listeners.add(() => dispatch.abort());
  const grpc = await dispatch.listen('grpc', grpcAddress(app), GRPC_BACKLOG);
  // At once if the drain was aborted meanwhile.
  app.listeners.add(() => dispatch.abort());
  return { grpc, http };
}

/** The order of a single process, whose steps up to the counter store are one here, in all workers at the same time. */
function endOfWorkers(pool: WorkerPool, dispatch: ConnectionDispatch, closeTls: () => void): readonly DrainStep[] {
  async function drainCalls(within: number): Promise<void> {
    closeTls();
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
 * The certificates of the gRPC listener when workers do the handshakes: read, checked and counted here, and sent to all
 * of them.
 *
 * @throws when they cannot be used
 */
async function shareCertificates(app: App, pool: WorkerPool): Promise<ListenerCertificates | undefined> {
  const tls = app.settings.grpcServerUseTls ? new ListenerCertificates(app, 'gRPC') : undefined;
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

/**
 * Gives the connections of the listeners for decisions to the workers; refuses some as the servers do in a single
 * process.
 *
 * @param inputs what probes are answered from while no worker is ready, and what is notified of refused connections
 */
function dispatchTo(pool: WorkerPool, app: App, inputs: Pick<DebugInputs, 'readiness' | 'rejections'>) {
  const { readiness, rejections } = inputs;
  const { settings, statistics, log } = app;
  const onRejected = rejections.http('HTTP');
  const resets = statistics.counter('ratelimit.workers.reset_connections');
  const dispatch: ConnectionDispatch = new ConnectionDispatch({
    pool,
    maxConnections: { grpc: settings.grpcMaxConnections, http: PUBLIC_LIMITS.maxConnections },
    unavailable: unavailableHttp({ readiness, onRejected, log }),
    onError: (error) => log.error('a listener has failed', { error }),
    onReset: (listener) => {
      resets.add(1);
      rejections.reset(listener === 'grpc' ? 'gRPC' : 'HTTP');
    },
    onRefused: (listener, kind, peer) => {
      if (listener === 'http') onRejected(kind === 'hand_over' ? kind : 'connections', peer, HTTP_REASONS[kind]);
      else rejections.grpc({ kind, reason: '', peer, open: dispatch.count('grpc') });
    },
  });
  return dispatch;
}
