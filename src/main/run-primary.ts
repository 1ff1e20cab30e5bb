import { type Observable, Subscription, asyncScheduler, concat, defer, delay } from 'rxjs';
import { VERSION } from '../cli/version';
import { recordLoads } from '../sinks/logs/rule-log';
import { turnScheduler } from '../sources/event-loop-turns';
import { terminationSignals } from '../sources/signals';
import type { DrainStep } from '../streams/drain';
import { Readiness } from '../streams/readiness';
import { type Instance, instance } from '../workers/primary/instance';
import { WorkerPool } from '../workers/primary/worker-pool';
import { type ForkOptions, WorkerProcess } from '../workers/primary/worker-process';
import type { App } from './app';
import { type MemoryStore, countsInMemory, memoryStore } from './counter-store';
import { openDebugListener } from './debug-listener';
import { HttpRejections } from './http-rejections';
import { type RunOptions, lifeOf } from './life';
import { WorkerDecisions } from './operators/worker-decisions';
import { type StatisticsOutputs, startStatisticsOutputs } from './outputs';
import { PrimaryListeners } from './primary-listeners';
import { PrimaryTls } from './primary-tls';
import { PrimaryWorkers } from './primary-workers';
import { RefusedConnections } from './refused-connections';
import { ruleSource } from '../sources/rule-source';
import { distributeToWorkers } from './worker-rules';

export interface PrimaryOptions extends RunOptions {
  /** The number of workers, at least 2. */
  readonly workers: number;
  readonly fork: ForkOptions;
}

/** What the primary is made of. */
interface Parts {
  readonly rejections: HttpRejections;
  readonly outputs: StatisticsOutputs;
  readonly pool: WorkerPool;
  readonly exchange: PrimaryWorkers;
  readonly decisions: WorkerDecisions;
  /** The counters of the instance, with the memory store. */
  readonly memory: MemoryStore | undefined;
  readonly tls: PrimaryTls | undefined;
  readonly signal$: Observable<NodeJS.Signals>;
  readonly streams: Instance;
}

/**
 * Runs the service as several processes: starts the workers, opens the listeners when all of them are ready, gives them the
 * connections, replaces workers that end, and drains all at the first signal.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents the service from running
 */
export async function runPrimary(app: App, { workers, fork, ...options }: PrimaryOptions): Promise<number> {
  process.title = 'weir: primary';
  const { log } = app;
  const parts = await makeParts(app, workers, fork);
  const { rejections, outputs, pool, exchange, decisions, tls, signal$, streams } = parts;
  await tls?.open();
  const readiness = new Readiness({ ...streams, hasWorkers: true });
  const { config$, phase$ } = streams;
  // Before the subscription: until then, a second signal ends the process, should the address of the listener not be found.
  const debug = await openDebugListener(app, { config$, readiness, rejections, workers: exchange, decisions });
  const subscriptions = subscribe(parts);
  const refusals = new RefusedConnections();
  subscriptions.add(refusals.logTo(log).subscribe());
  subscriptions.add(rejections.logConditions().subscribe());
  const listeners = new PrimaryListeners(app, { pool, readiness, rejections, refusals });
  try {
    pool.start();
    return await lifeOf(app, {
      ...options,
      phase$,
      signal$,
      readiness,
      open: async () => ({
        ...(await listeners.open()),
        debug: debug.address,
        metrics: outputs.metricsAddress,
        store: pool.members.find(({ store }) => store !== undefined)?.store ?? '',
        rules: config$.value.loaded,
      }),
      drainSteps: [...drainSteps(parts, listeners), { name: 'debug listener', run: () => defer(() => debug.close()) }],
      hasLostCalls: () => pool.hasLostCalls,
    });
  } finally {
    // What has not ended by itself: the drain was aborted, or the service could not start.
    pool.kill();
    subscriptions.unsubscribe();
  }
}

async function makeParts(app: App, workers: number, fork: ForkOptions): Promise<Parts> {
  const { settings, statistics, log } = app;
  statistics.gauge('ratelimit.build_info', () => 1, { version: VERSION, node: process.versions.node });
  const rejections = new HttpRejections(statistics, log);
  const pool = new WorkerPool({ count: workers, fork: (number) => new WorkerProcess(number, fork), log });
  const memory = countsInMemory(settings) ? memoryStore(app, statistics, log) : undefined;
  const exchange = new PrimaryWorkers({ pool, statistics, memory: memory?.counters, scheduler: asyncScheduler });
  const decisions = new WorkerDecisions({ workers: () => exchange.asked, offendersSize: settings.offendersSize });
  const outputs = await startStatisticsOutputs(app, { offenders: decisions, rejections, workers: exchange });
  const tls = settings.grpcServerUseTls ? new PrimaryTls(app, pool) : undefined;
  statistics.gauge('certs.expires_at', () => tls?.expiresAt ?? 0);
  const source = await ruleSource(app);
  const signal$ = terminationSignals();
  const { shutdownDelay } = settings;
  const distributed = distributeToWorkers({
    pool,
    startsWithoutRules: settings.forceStartWithoutInitialConfig,
    // Until the drain, callers are served as before: with new rules, too.
    termination$: shutdownDelay === 0 ? signal$ : signal$.pipe(delay(shutdownDelay)),
    log,
  });
  const streams = instance(
    {
      rules$: source.events$.pipe(distributed, recordLoads(app)),
      members$: pool.members$,
      complete$: pool.complete$,
      termination$: signal$,
    },
    {
      startsWithoutRules: settings.forceStartWithoutInitialConfig,
      needsDomain: settings.healthyWithAtLeastOneConfigLoaded,
      scheduler: turnScheduler,
    },
  );
  return { rejections, outputs, pool, exchange, decisions, memory, tls, signal$, streams };
}

/** The streams flow until the service has drained; each worker receives the certificates and every change of the health. */
function subscribe({ pool, exchange, tls, signal$, streams: { config$, health$, awaited$ } }: Parts): Subscription {
  const subscriptions = new Subscription();
  // First: the distribution of rules ends with the signal, and must not be its only subscriber when it was recorded before.
  subscriptions.add(signal$.subscribe());
  subscriptions.add(exchange.subscribe());
  subscriptions.add(config$.subscribe());
  subscriptions.add(awaited$.subscribe());
  subscriptions.add(
    health$.subscribe((health) => {
      for (const { process } of pool.members) process.inform(health);
    }),
  );
  subscriptions.add(
    pool.started$.subscribe((process) => {
      if (tls?.order !== undefined) process.order(tls.order);
      process.inform(health$.value);
    }),
  );
  return subscriptions;
}

/** In the order of a single process; its steps up to the counter store are one here, in all workers at the same time. */
function drainSteps({ pool, memory, tls, outputs }: Parts, listeners: PrimaryListeners): readonly DrainStep[] {
  const calls$ = defer(() => {
    tls?.close();
    pool.stopReplacing();
    return concat(
      defer(() => listeners.closeGrpc()),
      defer(() => pool.drain()),
    );
  });
  const workers$ = concat(
    defer(() => listeners.closeHttp()),
    defer(() => pool.finish()),
    defer(() => listeners.close()),
  );
  return [
    { name: 'gRPC calls', run: () => calls$ },
    { name: 'HTTP requests', run: () => workers$ },
    { name: 'counter store', run: () => defer(async () => memory?.counters.close()) },
    { name: 'statistics outputs', run: () => outputs.finish() },
  ];
}
