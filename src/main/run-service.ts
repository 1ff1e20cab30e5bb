import { type Observable, defer } from 'rxjs';
import type { LoadedSettings } from '../settings/read-settings';
import { terminationSignals } from '../sources/signals';
import type { BoundedLines } from '../sinks/logs/bounded-lines';
import { Statistics } from '../statistics/statistics';
import type { DrainStep } from '../streams/drain';
import type { Log } from '../streams/ports/log';
import type { OffenderSource } from '../streams/ports/offender-source';
import { VERSION } from '../cli/version';
import { type CounterStore, counterStore } from './counter-store';
import { type OpenDecisionLog, openDecisionLog } from './decision-log';
import { type DecisionPath, decisionPath, subscribeTo } from './decision-path';
import { type DebugListener, openDebugListener } from './debug-listener';
import { Listeners } from './listeners';
import { HttpRejections } from './http-rejections';
import { DRAIN_DEADLINE, lifeCycle } from './life-cycle';
import type { Serving } from './life-log';
import type { ManagerNotifier } from './service-manager';
import { offenderSource, offendersOf } from './offenders';
import { LocalDecisions } from './operators/local-decisions';
import { Readiness } from './readiness';
import { RefusedConnections } from './refused-connections';
import { ruleEvents } from './rule-events';
import { ruleSource } from './rule-source';
import { countDroppedLines } from './service-log';
import { type StatisticsOutputs, startStatisticsOutputs } from './statistics-outputs';
import { type ServiceTracing, startTracing } from './tracing';

export interface RunOptions {
  readonly log: Log;
  /** Where the lines of the log go. */
  readonly lines: BoundedLines;
  readonly notifier: ManagerNotifier;
  /** Called when the listeners are open. */
  readonly onServing?: ((serving: Serving) => void) | undefined;
}

/** What the service is made of. */
interface Parts {
  readonly statistics: Statistics;
  readonly offenders: OffenderSource;
  readonly decisions: OpenDecisionLog;
  readonly rejections: HttpRejections;
  readonly outputs: StatisticsOutputs;
  readonly tracing: ServiceTracing;
  readonly store: CounterStore;
  readonly signal$: Observable<NodeJS.Signals>;
  readonly streams: DecisionPath;
}

/**
 * Makes the parts of the service, subscribes to its streams, opens the listeners when it is ready, and drains at the first signal.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents the service from running, for example a port that is in use
 */
export async function runService(
  reading: LoadedSettings,
  { log, lines, notifier, onServing = () => undefined }: RunOptions,
): Promise<number> {
  const parts = await makeParts(reading, { log, lines, notifier });
  countDroppedLines(lines, parts.statistics);
  const { streams, statistics, rejections, tracing, signal$ } = parts;
  const readiness = new Readiness(streams, { hasWorkers: false });
  // Before the subscription: until then, a second signal ends the process, should the address of the listener not be found.
  const debug = await openDebugListener(reading, {
    config$: streams.config$,
    statistics,
    health: () => readiness.health,
    checks: () => readiness.checks,
    rejections,
    log,
    decisions: new LocalDecisions({
      config$: streams.config$,
      limiter: streams.limiter,
      administration: parts.store.counters,
      apply: streams.apply,
      offenders: parts.offenders,
    }),
  });
  const subscriptions = subscribeTo(streams);
  const refusals = new RefusedConnections();
  subscriptions.add(refusals.logTo(log).subscribe());
  subscriptions.add(rejections.logConditions().subscribe());
  const { tracer } = tracing;
  const { decide, health$ } = streams;
  const listeners = new Listeners(reading, { decide, health$, statistics, log, refusals, rejections, tracer });

  try {
    return await lifeCycle({
      phase$: streams.phase$,
      signal$,
      readiness,
      open: async () => ({
        ...(await listeners.open()),
        debug: debug.address,
        metrics: parts.outputs.metricsAddress,
        store: parts.store.description,
        rules: streams.config$.value.loaded,
      }),
      onServing,
      reading,
      notifier,
      drainSteps: drainSteps(parts, listeners, debug),
      log,
    });
  } finally {
    subscriptions.unsubscribe();
  }
}

async function makeParts(reading: LoadedSettings, { log, lines }: RunOptions): Promise<Parts> {
  const { settings } = reading;
  const statistics = new Statistics(settings.statsMaxRuntimeKeys);
  statistics.gauge('ratelimit.build_info', () => 1, { version: VERSION, node: process.versions.node });
  const rejections = new HttpRejections(statistics, log);
  const decisions = await openDecisionLog(reading, { lines, statistics, log });
  const counted = offendersOf(settings);
  const offenders = offenderSource(counted);
  const outputs = await startStatisticsOutputs(reading, { statistics, offenders, rejections, log });
  const tracing = await startTracing(reading, log);
  const store = await counterStore(reading, statistics, log);
  const source = await ruleSource(reading, statistics, log);
  const signal$ = terminationSignals();
  const streams = decisionPath(reading, {
    rules$: ruleEvents(source, { statistics, log }),
    store,
    statistics,
    offenders: counted,
    tracing,
    decisionLog: decisions.log,
    termination$: signal$,
    log,
  });
  return { statistics, offenders, decisions, rejections, outputs, tracing, store, signal$, streams };
}

/** First no new calls, then what carries the calls in flight, then what reports about them. */
function drainSteps(
  { streams, store, outputs, tracing, decisions }: Parts,
  listeners: Listeners,
  debug: DebugListener,
): readonly DrainStep[] {
  const completed$ = defer(() => {
    streams.complete();
    return streams.windows$;
  });
  return [
    { name: 'gRPC calls', run: () => defer(() => listeners.drainGrpc(DRAIN_DEADLINE)) },
    { name: 'pipeline windows', run: () => completed$ },
    { name: 'counter store', run: () => defer(() => store.counters.close()) },
    { name: 'HTTP requests', run: () => defer(() => listeners.closeHttp()) },
    { name: 'statistics outputs', run: () => outputs.finish() },
    { name: 'traces', run: () => tracing.finish() },
    { name: 'decision log', run: () => defer(() => decisions.finish()) },
    { name: 'debug listener', run: () => defer(() => debug.close()) },
  ];
}
