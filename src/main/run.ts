import { defer, tap } from 'rxjs';
import { VERSION } from '../cli/version';
import { RecentConfigurations } from '../operators/configurations';
import { recordLoads } from '../sinks/logs/rule-log';
import { terminationSignals } from '../sources/signals';
import {
  type App,
  decisionPath,
  endOfCalls,
  endOfDecisions,
  endOfRecords,
  localDecisions,
  offenderSource,
} from './app';
import { counterStore } from './counter-store';
import { openDebugListener } from './debug-listener';
import { HttpRejections } from './http-rejections';
import { type RunOptions, lifeOf } from './life';
import { startStatisticsOutputs } from './outputs';
import { RefusedConnections } from './refused-connections';
import { ruleSource } from '../sources/rule-source';
import { Listeners } from './servers';
import { warmUp } from './warm-up';

/**
 * Runs the service in this process: makes its parts, subscribes to its streams, opens the listeners when it is ready, and drains at
 * the first signal.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents the service from running, for example a port that is in use
 */
export async function runService(app: App, options: RunOptions): Promise<0 | 1> {
  const { statistics, log } = app;
  statistics.gauge('ratelimit.build_info', () => 1, { version: VERSION, node: process.versions.node });
  const rejections = new HttpRejections(statistics, log);
  const refusals = new RefusedConnections();
  const source = await ruleSource(app);
  const configurations = new RecentConfigurations();
  const signal$ = terminationSignals();
  const path = await decisionPath(app, {
    rules$: source.events$.pipe(
      recordLoads(app),
      tap((event) => configurations.record(event)),
    ),
    store: await counterStore(app, statistics, log),
    termination$: signal$,
  });
  const { config$, readiness, tracing, store } = path;
  const outputs = await startStatisticsOutputs(app, { offenders: offenderSource(path.offenders), rejections });
  // Before the subscription: until then, a second signal ends the process, should the address of the listener not be found.
  const debug = await openDebugListener(app, {
    config$,
    configurations,
    readiness,
    rejections,
    decisions: localDecisions(app, path),
  });
  const subscriptions = path.flow$.subscribe();
  subscriptions.add(refusals.logTo(log).subscribe());
  subscriptions.add(rejections.logConditions().subscribe());
  const listeners = new Listeners(app, { ...path, tracer: tracing.tracer, rejections, refusals });
  try {
    return await lifeOf(app, {
      ...options,
      signal$,
      readiness,
      open: async () => ({
        ...(await warmUp(app, store).then(() => listeners.open())),
        debug: debug.address,
        metrics: outputs.metricsAddress,
        store: store.description,
        rules: config$.value.loaded,
      }),
      connections: () => listeners.connections,
      // First no new calls, then what carries the calls in flight, then what reports about them.
      drainSteps: [
        endOfCalls(path, (within) => listeners.drainGrpc(within)),
        ...endOfDecisions(app, path),
        { name: 'HTTP requests', run: () => defer(() => listeners.closeHttp()) },
        { name: 'statistics outputs', run: () => outputs.finish() },
        ...endOfRecords(path),
        { name: 'debug listener', run: () => defer(() => debug.close()) },
      ],
    });
  } finally {
    subscriptions.unsubscribe();
  }
}
