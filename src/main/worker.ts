import { createServer } from 'node:http2';
import { Socket } from 'node:net';
import {
  EMPTY,
  NEVER,
  type Observable,
  asyncScheduler,
  combineLatest,
  defer,
  firstValueFrom,
  interval,
  map,
  merge,
  share,
  switchMap,
  take,
  tap,
} from 'rxjs';
import type { ServerTls } from '../grpc/http2/tls';
import { profilesOfProcess } from '../http/debug/profiles';
import { application } from '../http/listener';
import { operatorMethods } from '../operators/worker-decisions';
import { describeError } from '../sinks/logs/logger';
import { extraLabels } from '../sinks/statistics/series';
import { loadRules } from '../sources/loading/load-rules';
import { type DrainOutcome, type DrainStep, drain } from '../streams/drain';
import { latest } from '../streams/latest';
import { Readiness } from '../streams/readiness';
import { asError } from '../text/thrown';
import { receiveConnections } from '../workers/connections';
import { PROCESS_METRICS } from '../workers/worker-rpc';
import { PrimaryLink } from '../workers/primary-link';
import { PIPES } from '../workers/process';
import { receiveRules } from '../workers/rules';
import { StatisticsReporter } from '../workers/statistics';
import { type App, withApp } from './app';
import { storeAbilities } from '../settings/stores';
import { counterStore, remoteStore } from './counter-store';
import { type DecisionPath, decisionPath, endOfDecisions, endOfRecords, storeNote } from './decision-path';
import { logFailedStep, runPhases, runProcess } from './life';
import { Rejections } from './rejections';
import { Servers } from './servers';
import { warmUp } from './warm-up';

/**
 * Runs this process as a worker. What prevents it from running is reported to the primary, which logs it.
 *
 * @param environment the settings, which the primary has found to be valid and warned about
 * @param number that of the worker
 * @returns the exit code
 */
export async function startWorker(environment: NodeJS.ProcessEnv, number: number): Promise<number> {
  process.title = `weir: worker ${number}`;
  const link = new PrimaryLink();
  const code = await withApp(environment, {
    worker: number,
    run: (app) => runWorker(app, link, number),
    // The primary knows the secrets of files only as they were when it read them.
    failed: (error, { secrets }) =>
      link.report({ kind: 'failed', reason: secrets.hide(describeError(asError(error))) }),
  });
  await link.flush();
  return code;
}

/** Milliseconds between two reports of the rates of servers. */
const RATES_EVERY = 1_000;

/**
 * Runs a worker: decides, and serves the connections that the primary passes to this process, until the primary orders
 * the end or is gone.
 *
 * @param number its number
 */
async function runWorker(app: App, link: PrimaryLink, number: number): Promise<0 | 1> {
  const { settings } = app;
  const { channel } = link;
  const drain$ = link.orders('drain').pipe(take(1), share());
  const rejections = new Rejections(app);
  const form = settings.configType === 'FILE' ? 'files' : 'response';
  const rules = receiveRules(channel, (raw) => loadRules(raw, { form, settings }));
  const store = storeAbilities(settings).isShared ? await counterStore(app, number) : remoteStore(app, channel);
  const path = await decisionPath(app, {
    ...{ rules$: rules.events$, store, termination$: drain$ },
    onForgotten: (cacheKey) => channel.notify('forget', cacheKey),
  });
  const note = storeNote(app, store.servers);
  // Readiness is that of the instance: callers do not see which of its workers they have reached.
  const readiness = new Readiness({
    health$: link.health$,
    awaited$: latest(NEVER, []),
    termination$: drain$,
    hasWorkers: true,
    storeNote: () => note(path.config$.value),
  });
  const servers = new Servers(app, { ...path, readiness, rejections });
  const reporter = new StatisticsReporter(app.statistics, channel);
  const tls$ = link
    .orders('tls')
    .pipe(map(({ tls }): ServerTls => ({ ...tls, ticketKeys: Buffer.from(tls.ticketKeys, 'base64') })));
  const instances$ = link.orders('instances').pipe(tap(({ count }) => app.instances$.next(count)));
  const forgotten$ = channel.notifications<string>('forget').pipe(tap((cacheKey) => path.limiter.forget(cacheKey)));
  await serveMethods(app, path, { channel, number });
  async function open(): Promise<void> {
    await firstValueFrom(merge(rules.joined$, drain$));
    await warmUp(app, store);
    const adopting = servers.adopting(settings.grpcServerUseTls ? await firstValueFrom(tls$) : undefined);
    readiness.opened();
    receiveConnections(process, (listener, socket) => adopting[listener].adopt(socket));
    link.report({ kind: 'serving', store: store.description });
  }
  const drainSteps = [
    ...endOfDecisions(app, path, (within) => servers.drainGrpc(within)),
    // Between its calls and what reports about them, a worker waits for the others.
    { name: 'other workers', run: () => othersFinish(link) },
    { name: 'HTTP requests', run: () => defer(() => servers.closeHttp()) },
    { name: 'statistics', run: () => defer(() => reporter.report()) },
    ...endOfRecords(path),
  ];
  const renewed$ = tls$.pipe(tap((tls) => servers.replaceTls(tls)));
  const orders = [link.health$, renewed$, instances$, forgotten$];
  return runProcess(app, {
    readiness,
    flows: [path.flow$, ...orders, ...reports(link, path), rejections.logConditions()],
    async live() {
      const outcome$ = runPhases(path.readiness.phase$, defer(open), drainedBy(link, app, drainSteps));
      channel.start();
      return (await firstValueFrom(merge(outcome$, rules.failed$))).kind === 'drained' ? 0 : 1;
    },
  });
}

/** What a worker reports of its store and the servers of it. */
function reports(link: PrimaryLink, { readiness, store: { servers } }: DecisionPath): readonly Observable<unknown>[] {
  const states$ = combineLatest([readiness.health$, readiness.awaited$]).pipe(
    tap(([{ unhealthy }, awaited]) => {
      const isStoreReady = !awaited.includes('counter store');
      link.report({ kind: 'state', state: { isStoreReady, isStoreConnected: !unhealthy.includes('counter store') } });
    }),
  );
  const servers$ = merge(servers.changed$, interval(RATES_EVERY)).pipe(
    tap(() => link.report({ kind: 'servers', servers: servers.shown })),
  );
  return [states$, servers$];
}

function othersFinish(link: PrimaryLink): Observable<unknown> {
  return defer(() => {
    link.drained();
    return link.orders('finish').pipe(take(1));
  });
}

/** Drains a worker when the primary orders it. */
function drainedBy(link: PrimaryLink, { log }: App, steps: readonly DrainStep[]): Observable<DrainOutcome> {
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
        onFailure: (step, error) => logFailedStep(log, step, error),
      }),
    ),
  );
}

interface WorkerChannel {
  readonly channel: PrimaryLink['channel'];
  readonly number: number;
}

/**
 * Serves what the primary requests: for operators, profiles, and the metrics of this process if there is a page for
 * them.
 */
async function serveMethods(app: App, path: DecisionPath, { channel, number }: WorkerChannel): Promise<void> {
  const { settings, log } = app;
  for (const [method, answer] of Object.entries(operatorMethods(path))) channel.serve(method, answer);
  if (settings.usePullmetrics && !settings.disableStats) {
    // Loaded only when it is used. The extension is that of the compiled file, as in an ES module.
    const { processMetrics } = await import('../sinks/statistics/process-metrics.js');
    const metrics = processMetrics({ ...extraLabels(settings.extraTags), worker: String(number) });
    channel.serve(PROCESS_METRICS, () => metrics.write());
  }
  const profiles = application({ routes: profilesOfProcess(), log });
  createServer(profiles.callback()).emit('connection', new Socket({ fd: PIPES.pages }));
}
