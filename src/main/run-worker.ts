import {
  NEVER,
  type Observable,
  asyncScheduler,
  combineLatest,
  defer,
  finalize,
  firstValueFrom,
  lastValueFrom,
  map,
  merge,
  share,
  take,
} from 'rxjs';
import type { ServerTls } from '../grpc/http2/tls/tls-options';
import type { Settings } from '../settings/settings';
import { latest } from '../streams/latest';
import { type DrainOutcome, drain } from '../streams/drain';
import { Readiness } from '../streams/readiness';
import type { TlsTexts } from '../workers/messages';
import { StatisticsReporter } from '../workers/statistics/statistics-reporter';
import { receiveConnections } from '../workers/worker/passed-connections';
import type { PrimaryLink } from '../workers/worker/primary-link';
import { RequestGate } from '../workers/worker/rules/request-gate';
import { RuleReceiver } from '../workers/worker/rules/rule-receiver';
import {
  type App,
  type DecisionPath,
  decisionPath,
  endOfDecisions,
  endOfRecords,
  localDecisions,
  subscribeTo,
} from './app';
import { counterStore, countsInMemory, remoteStore } from './counter-store';
import { HttpRejections } from './http-rejections';
import { DRAIN_DEADLINE, logFailedStep, outcomeOf } from './life';
import { RefusedConnections } from './refused-connections';
import { answerPrimary } from './worker-requests';
import { WorkerServers } from './worker-servers';

export interface WorkerOptions {
  readonly link: PrimaryLink;
  /** The number of this worker. */
  readonly worker: number;
  /** The number of workers of the instance. */
  readonly workers: number;
}

/**
 * Runs a worker: it decides, and serves the connections that the primary passes to it, until the primary orders the end or is gone.
 *
 * @returns the exit code
 * @throws what prevents the worker from running
 */
export async function runWorker(app: App, { link, worker, workers }: WorkerOptions): Promise<number> {
  const { settings, statistics, log } = app;
  const gate = new RequestGate();
  const rules = new RuleReceiver(link.channel, gate);
  const path = await decisionPath(app, {
    rules$: rules.events$,
    store: countsInMemory(settings) ? remoteStore(settings, link.channel) : await counterStore(app, statistics, log),
    termination$: link.drain$.pipe(take(1), share()),
  });
  const { limiter, offenders, phase$, health$, awaited$, tracing, store } = path;
  const reporter = new StatisticsReporter(statistics, link.channel);
  const operator = { decisions: localDecisions(path), limiter, offenders };
  await answerPrimary(link.channel, { worker, settings, log, operator });
  const rejections = new HttpRejections(statistics, log);
  const refusals = new RefusedConnections();
  const subscriptions = subscribeTo(path);
  subscriptions.add(link.health$.subscribe());
  subscriptions.add(refusals.logTo(log).subscribe());
  subscriptions.add(rejections.logConditions().subscribe());
  subscriptions.add(
    combineLatest([health$, awaited$]).subscribe({
      next: ([health, awaited]) => link.reportState(health, awaited),
      // `phase$` reports it.
      error: () => undefined,
    }),
  );
  // That of the instance: callers do not see which of its workers they have reached.
  const readiness = new Readiness({ health$: link.health$, awaited$: latest(NEVER, []), hasWorkers: true });
  const decide = gate.guard(path.decide);
  let servers: WorkerServers | undefined;
  const serving$ = defer(async () => {
    await firstValueFrom(merge(rules.joined$, link.drain$));
    const tls$ = link.tls$.pipe(map((texts) => serverTls(texts, settings)));
    const tls = settings.grpcServerUseTls ? await firstValueFrom(tls$) : undefined;
    const inputs = { decide, readiness, tracer: tracing.tracer, rejections, refusals, tls, workers };
    const opened = new WorkerServers(app, inputs);
    servers = opened;
    readiness.opened();
    subscriptions.add(tls$.subscribe((next) => opened.replaceTls(next)));
    receiveConnections(process, (listener, socket) => opened.adopt(listener, socket));
    link.report({ kind: 'serving', store: store.description });
  });
  const drained$ = drainOf(app, path, { link, reporter, servers: () => servers });
  link.start();
  const outcome$ = outcomeOf(phase$, serving$, drained$).pipe(finalize(() => subscriptions.unsubscribe()));
  return (await lastValueFrom(outcome$)).kind === 'drained' ? 0 : 1;
}

interface Ended {
  readonly link: PrimaryLink;
  readonly reporter: StatisticsReporter;
  readonly servers: () => WorkerServers | undefined;
}

/** As in a single process; between its calls and what reports about them, the worker waits for the others. */
function drainOf({ log }: App, path: DecisionPath, { link, reporter, servers }: Ended): Observable<DrainOutcome> {
  const finish$ = defer(() => {
    link.report({ kind: 'drained' });
    return link.finish$.pipe(take(1));
  });
  return drain({
    steps: [
      { name: 'gRPC calls', run: () => defer(async () => servers()?.drainGrpc(DRAIN_DEADLINE)) },
      ...endOfDecisions(path),
      { name: 'other workers', run: () => finish$ },
      { name: 'HTTP requests', run: () => defer(async () => servers()?.closeHttp()) },
      { name: 'statistics', run: () => defer(() => reporter.report()) },
      ...endOfRecords(path),
    ],
    // The primary orders the drain when the delay is over.
    delay: 0,
    onBegin: () => undefined,
    signal$: NEVER,
    deadline: DRAIN_DEADLINE,
    scheduler: asyncScheduler,
    onFailure: (step, error) => logFailedStep(log, step, error),
  });
}

function serverTls({ cert, key, clientCa, ticketKeys }: TlsTexts, { grpcClientTlsSan }: Settings): ServerTls {
  return {
    cert: Buffer.from(cert, 'base64'),
    key: Buffer.from(key, 'base64'),
    clientCa: clientCa === undefined ? undefined : Buffer.from(clientCa, 'base64'),
    clientName: grpcClientTlsSan,
    ticketKeys: Buffer.from(ticketKeys, 'base64'),
  };
}
