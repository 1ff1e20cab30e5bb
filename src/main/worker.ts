import { createServer } from 'node:http2';
import { Socket } from 'node:net';
import {
  EMPTY,
  NEVER,
  type Observable,
  asyncScheduler,
  combineLatest,
  defer,
  finalize,
  firstValueFrom,
  map,
  merge,
  share,
  switchMap,
  take,
} from 'rxjs';
import type { ServerTls } from '../grpc/http2/tls';
import { type GrpcServer, adoptingGrpcServer } from '../grpc/server/grpc-server';
import { profilesOfProcess } from '../http/debug/profiles';
import { type HttpListener, application } from '../http/listener';
import { adoptingHttp } from '../http/serve-http';
import { PUBLIC_LIMITS } from '../http/limits';
import { operatorMethods } from '../operators/worker-decisions';
import { secretsOf } from '../settings/secrets';
import { BoundedLines } from '../sinks/logs/bounded-lines';
import { describeError } from '../sinks/logs/logger';
import { standardStream } from '../sinks/text-outputs';
import { extraLabels } from '../sinks/statistics/series';
import { loadRules } from '../sources/loading/load-rules';
import { type DrainOutcome, type DrainStep, drain } from '../streams/drain';
import { latest } from '../streams/latest';
import { Readiness } from '../streams/readiness';
import { SecretMask } from '../text/secret-mask';
import { asError } from '../text/thrown';
import type { Channel } from '../workers/channel';
import { receiveConnections } from '../workers/connections';
import { PROCESS_METRICS } from '../workers/exchange';
import { PrimaryLink } from '../workers/primary-link';
import { PIPES, type TlsTexts } from '../workers/process';
import { receiveRules } from '../workers/rules';
import { StatisticsReporter } from '../workers/statistics';
import {
  type App,
  type DecisionPath,
  createApp,
  decisionPath,
  endOfCalls,
  endOfDecisions,
  endOfRecords,
  localDecisions,
  storeNote,
} from './app';
import { counterStore, countsInMemory, remoteStore } from './counter-store';
import { forwardGrpcLibraryLogs } from './grpc-library';
import { HttpRejections } from './http-rejections';
import { logFailedStep, runPhases } from './life';
import { collectOnOneThread, processCount } from './process';
import { RefusedConnections } from './refused-connections';
import { type ServerInputs, grpcServerOptions, httpServerOptions } from './servers';
import { warmUp } from './warm-up';

/**
 * Runs this process as a worker. What prevents it from running is reported to the primary, which logs it.
 *
 * @param environment the settings, which the primary has found to be valid and warned about
 * @param worker its number
 * @returns the exit code
 */
export async function startWorker(environment: NodeJS.ProcessEnv, worker: number): Promise<number> {
  collectOnOneThread();
  process.title = `weir: worker ${worker}`;
  const link = new PrimaryLink();
  const lines = new BoundedLines(standardStream(2));
  const secrets = new SecretMask(secretsOf(environment));
  try {
    const app = createApp(environment, { lines, secrets, worker });
    await forwardGrpcLibraryLogs(app);
    return await runWorker(app, link, worker);
  } catch (error) {
    // The primary knows the secrets of files only as they were when it read them.
    link.report({ kind: 'failed', reason: secrets.hide(describeError(asError(error))) });
    return 1;
  } finally {
    await Promise.all([lines.flush(), link.flush()]);
  }
}

/**
 * Decides, and serves the connections that the primary passes to this process, until the primary orders the end or is gone.
 *
 * @throws what prevents the worker from running
 */
async function runWorker(app: App, link: PrimaryLink, worker: number): Promise<0 | 1> {
  const { settings, statistics, log } = app;
  const { channel } = link;
  const drain$ = link.orders('drain').pipe(take(1), share());
  const form = settings.configType === 'FILE' ? 'files' : 'response';
  const rules = receiveRules(channel, (raw) => loadRules(raw, { form, settings }));
  const path = await decisionPath(app, {
    rules$: rules.events$,
    store: countsInMemory(settings) ? remoteStore(settings, channel) : await counterStore(app, statistics, log),
    termination$: drain$,
    onForgotten: (cacheKey) => channel.notify('forget', cacheKey),
  });
  const { limiter, tracing, store } = path;
  const { phase$, health$, awaited$ } = path.readiness;
  const reporter = new StatisticsReporter(statistics, channel);
  await answerPrimary(app, path, { channel, worker });
  const rejections = new HttpRejections(statistics, log);
  const refusals = new RefusedConnections();
  const subscriptions = path.flow$.subscribe();
  subscriptions.add(channel.notifications<string>('forget').subscribe((cacheKey) => limiter.forget(cacheKey)));
  subscriptions.add(link.health$.subscribe());
  subscriptions.add(refusals.logTo(log).subscribe());
  subscriptions.add(rejections.logConditions().subscribe());
  subscriptions.add(
    combineLatest([health$, awaited$]).subscribe(([{ unhealthy }, awaited]) => {
      const isStoreReady = !awaited.includes('counter store');
      link.report({ kind: 'state', state: { isStoreReady, isStoreConnected: !unhealthy.includes('counter store') } });
    }),
  );
  // That of the instance: callers do not see which of its workers they have reached.
  const readiness = new Readiness({
    health$: link.health$,
    awaited$: latest(NEVER, []),
    termination$: drain$,
    hasWorkers: true,
  });
  readiness.storeNote = storeNote(app, path);
  let servers: Servers | undefined;
  const serving$ = defer(async () => {
    await firstValueFrom(merge(rules.joined$, drain$));
    await warmUp(app, store);
    const tls$ = link.orders('tls').pipe(map(({ tls }) => serverTls(tls)));
    const tls = settings.grpcServerUseTls ? await firstValueFrom(tls$) : undefined;
    const opened = makeServers(app, { ...path, readiness, tracer: tracing.tracer, rejections, refusals }, tls);
    servers = opened;
    readiness.opened();
    subscriptions.add(tls$.subscribe((next) => opened.grpc.replaceTls(next)));
    receiveConnections(process, (listener, socket) => opened[listener].adopt(socket));
    link.report({ kind: 'serving', store: store.description });
  });
  const drained$ = drainOf(app, path, { link, reporter, servers: () => servers });
  channel.start();
  const outcome$ = runPhases(phase$, serving$, drained$).pipe(finalize(() => subscriptions.unsubscribe()));
  return (await firstValueFrom(merge(outcome$, rules.failed$))).kind === 'drained' ? 0 : 1;
}

/** Answers what the primary asks of this process: for operators, its profiles, and its metrics if there is a page for them. */
async function answerPrimary(
  app: App,
  path: DecisionPath,
  { channel, worker }: { readonly channel: Channel; readonly worker: number },
): Promise<void> {
  const { settings, log } = app;
  const { limiter, offenders } = path;
  const methods = operatorMethods({ decisions: localDecisions(app, path), limiter, offenders });
  for (const [method, answer] of Object.entries(methods)) channel.serve(method, answer);
  if (settings.usePullmetrics && !settings.disableStats) {
    // Loaded only when it is used. The extension is that of the compiled file, as in an ES module.
    const { processMetrics } = await import('../sinks/statistics/process-metrics.js');
    const metrics = processMetrics({ ...extraLabels(settings.extraTags), worker: String(worker) });
    channel.serve(PROCESS_METRICS, () => metrics.write());
  }
  const profiles = application({ routes: profilesOfProcess(), log });
  createServer(profiles.callback()).emit('connection', new Socket({ fd: PIPES.pages }));
}

/** The servers for decisions, whose connections the primary accepts. */
interface Servers {
  readonly grpc: GrpcServer;
  readonly http: HttpListener;
}

/** @throws when the certificate cannot be used */
function makeServers(app: App, inputs: ServerInputs, tls: ServerTls | undefined): Servers {
  // The workers share the HTTP connections.
  const maxConnections = Math.ceil(PUBLIC_LIMITS.maxConnections / processCount(app.settings.workers));
  const http = adoptingHttp({ ...httpServerOptions(app, inputs), limits: { maxConnections } });
  const grpc: GrpcServer = adoptingGrpcServer({ ...grpcServerOptions(app, inputs, () => grpc), tls });
  return { grpc, http };
}

function serverTls({ ticketKeys, ...texts }: TlsTexts): ServerTls {
  return { ...texts, ticketKeys: Buffer.from(ticketKeys, 'base64') };
}

interface Ended {
  readonly link: PrimaryLink;
  readonly reporter: StatisticsReporter;
  readonly servers: () => Servers | undefined;
}

/** As in a single process; between its calls and what reports about them, the worker waits for the others. */
function drainOf(app: App, path: DecisionPath, { link, reporter, servers }: Ended): Observable<DrainOutcome> {
  const finish$ = defer(() => {
    link.drained();
    return link.orders('finish').pipe(take(1));
  });
  const steps: readonly DrainStep[] = [
    endOfCalls(path, async (within) => servers()?.grpc.drain(within)),
    ...endOfDecisions(app, path),
    { name: 'other workers', run: () => finish$ },
    { name: 'HTTP requests', run: () => defer(async () => servers()?.http.close()) },
    { name: 'statistics', run: () => defer(() => reporter.report()) },
    ...endOfRecords(path),
  ];
  return link.orders('drain').pipe(
    take(1),
    switchMap(({ within }) =>
      drain({
        steps,
        // The primary orders the drain when the delay is over.
        delay$: EMPTY,
        onBegin: () => undefined,
        signal$: NEVER,
        deadline: within,
        scheduler: asyncScheduler,
        onFailure: (step, error) => logFailedStep(app.log, step, error),
      }),
    ),
  );
}
