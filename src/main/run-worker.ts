import {
  EMPTY,
  NEVER,
  type Observable,
  asyncScheduler,
  combineLatest,
  concatMap,
  defer,
  finalize,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  share,
  take,
} from 'rxjs';
import type { ServerTls } from '../grpc/http2/tls/tls-options';
import type { LoadedSettings } from '../settings/read-settings';
import type { Settings } from '../settings/settings';
import type { BoundedLines } from '../sinks/logs/bounded-lines';
import { Statistics } from '../statistics/statistics';
import { type DrainOutcome, type DrainStep, drain } from '../streams/drain';
import type { Log } from '../streams/ports/log';
import type { Service } from '../streams/service';
import { asError } from '../text/thrown';
import type { TlsTexts } from '../workers/messages';
import { StatisticsReporter } from '../workers/statistics/statistics-reporter';
import { receiveConnections } from '../workers/worker/passed-connections';
import { RequestGate } from '../workers/worker/rules/request-gate';
import { RuleReceiver } from '../workers/worker/rules/rule-receiver';
import type { PrimaryLink } from '../workers/worker/primary-link';
import { type CounterStore, counterStore, countsInMemory, remoteStore } from './counter-store';
import { type OpenDecisionLog, openDecisionLog } from './decision-log';
import { decisionPath, subscribeTo } from './decision-path';
import { HttpRejections } from './http-rejections';
import { DRAIN_DEADLINE } from './life-cycle';
import { offenderSource, offendersOf } from './offenders';
import { LocalDecisions } from './operators/local-decisions';
import { RefusedConnections } from './refused-connections';
import { countDroppedLines } from './service-log';
import { type ServiceTracing, startTracing } from './tracing';
import { answerPrimary } from './worker-requests';
import { WorkerServers } from './worker-servers';

export interface WorkerOptions {
  readonly link: PrimaryLink;
  /** The number of this worker. */
  readonly worker: number;
  /** The number of workers of the instance. */
  readonly workers: number;
  readonly log: Log;
  /** Where the lines of the log go. */
  readonly lines: BoundedLines;
}

/** What a worker is made of. */
interface Parts {
  readonly statistics: Statistics;
  readonly reporter: StatisticsReporter;
  readonly tracing: ServiceTracing;
  readonly decisions: OpenDecisionLog;
  readonly store: CounterStore;
  readonly gate: RequestGate;
  readonly rules: RuleReceiver;
  readonly streams: Service;
}

/**
 * Runs a worker: it decides, and serves the connections that the primary passes to it, until the primary orders the end or is gone.
 *
 * @returns the exit code
 * @throws what prevents the worker from running
 */
export async function runWorker(reading: LoadedSettings, options: WorkerOptions): Promise<number> {
  const { settings } = reading;
  const { link, log, lines, workers } = options;
  const parts = await makeParts(reading, options);
  const { statistics, tracing, streams, rules } = parts;
  const decide = parts.gate.guard(streams.decide);
  countDroppedLines(lines, statistics);
  const rejections = new HttpRejections(statistics, log);
  const refusals = new RefusedConnections();
  const subscriptions = subscribeTo(streams);
  subscriptions.add(link.health$.subscribe());
  subscriptions.add(refusals.logTo(log).subscribe());
  subscriptions.add(rejections.logConditions().subscribe());
  subscriptions.add(
    combineLatest([streams.health$, streams.awaited$]).subscribe({
      next: ([health, awaited]) => link.reportState(health, awaited),
      // `phase$` reports it.
      error: () => undefined,
    }),
  );
  let servers: WorkerServers | undefined;
  const serving$ = defer(async () => {
    await firstValueFrom(merge(rules.joined$, link.drain$));
    const tls$ = link.tls$.pipe(map((texts) => serverTls(texts, settings)));
    const { health$ } = link;
    const tls = settings.grpcServerUseTls ? await firstValueFrom(tls$) : undefined;
    const serversOptions = { decide, health$, statistics, log, rejections, refusals, tracer: tracing.tracer, workers };
    const opened = new WorkerServers(settings, tls, serversOptions);
    servers = opened;
    subscriptions.add(tls$.subscribe((next) => opened.replaceTls(next)));
    receiveConnections(process, (listener, socket) => opened.adopt(listener, socket));
    link.report({ kind: 'serving', store: parts.store.description });
  });
  const drained$ = drain({
    steps: drainSteps(parts, link, () => servers),
    // The primary orders the drain when the delay is over.
    delay: 0,
    onBegin: () => undefined,
    signal$: NEVER,
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
  link.start();
  return (await lastValueFrom(outcome$)).kind === 'drained' ? 0 : 1;
}

async function makeParts(reading: LoadedSettings, { link, worker, log, lines }: WorkerOptions): Promise<Parts> {
  const { settings } = reading;
  const statistics = new Statistics(settings.statsMaxRuntimeKeys);
  const tracing = await startTracing(reading, log);
  const decisions = await openDecisionLog(reading, { lines, statistics, log });
  const store = countsInMemory(settings)
    ? remoteStore(settings, link.channel)
    : await counterStore(reading, statistics, log);
  const gate = new RequestGate();
  const rules = new RuleReceiver(link.channel, gate);
  const offenders = offendersOf(settings);
  const streams = decisionPath(reading, {
    rules$: rules.events$,
    store,
    statistics,
    offenders,
    tracing,
    decisionLog: decisions.log,
    termination$: link.drain$.pipe(take(1), share()),
    log,
  });
  const reporter = new StatisticsReporter(statistics, link.channel);
  const { limiter } = streams;
  const operated = new LocalDecisions({
    config$: streams.config$,
    limiter,
    administration: store.counters,
    apply: streams.apply,
    offenders: offenderSource(offenders),
  });
  await answerPrimary(link.channel, { worker, settings, log, operator: { decisions: operated, limiter, offenders } });
  return { statistics, reporter, tracing, decisions, store, gate, rules, streams };
}

/** As in a single process; between its calls and what reports about them, the worker waits for the others. */
function drainSteps(
  { streams, store, reporter, tracing, decisions }: Parts,
  link: PrimaryLink,
  servers: () => WorkerServers | undefined,
): readonly DrainStep[] {
  const completed$ = defer(() => {
    streams.complete();
    return streams.windows$;
  });
  const finish$ = defer(() => {
    link.report({ kind: 'drained' });
    return link.finish$.pipe(take(1));
  });
  return [
    { name: 'gRPC calls', run: () => defer(async () => servers()?.drainGrpc(DRAIN_DEADLINE)) },
    { name: 'pipeline windows', run: () => completed$ },
    { name: 'counter store', run: () => defer(() => store.counters.close()) },
    { name: 'other workers', run: () => finish$ },
    { name: 'HTTP requests', run: () => defer(async () => servers()?.closeHttp()) },
    { name: 'statistics', run: () => defer(() => reporter.report()) },
    { name: 'traces', run: () => tracing.finish() },
    { name: 'decision log', run: () => defer(() => decisions.finish()) },
  ];
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
