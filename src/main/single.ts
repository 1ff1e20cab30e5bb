import { defer } from 'rxjs';
import { RecentConfigurations } from '../operators/configurations';
import { ListenerCertificates } from '../sources/certificates';
import { ruleSource } from '../sources/rule-source';
import { terminationSignals } from '../sources/signals';
import type { App } from './app';
import { counterStore } from './counter-store';
import { decisionPath, endOfDecisions, endOfRecords } from './decision-path';
import { type RunOptions, type Serving, lifeOf, runProcess } from './life';
import { Rejections } from './rejections';
import { Servers } from './servers';
import { openFront, recordRules } from './service-front';
import { warmUp } from './warm-up';

/**
 * Runs the only process of an instance.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents it from running, for example a port that is in use
 */
export async function runSingle(app: App, options: RunOptions): Promise<0 | 1> {
  const signal$ = terminationSignals();
  const rejections = new Rejections(app);
  const configurations = new RecentConfigurations();
  const { events$ } = await ruleSource(app);
  const store = await counterStore(app);
  const rules$ = events$.pipe(recordRules(app, configurations));
  const path = await decisionPath(app, { rules$, store, termination$: signal$ });
  const { config$, readiness, decisions, offenderSource: offenders } = path;
  const tls = app.settings.grpcServerUseTls ? new ListenerCertificates(app, 'gRPC') : undefined;
  const servers = new Servers(app, { ...path, rejections }, tls);
  const shown = { config$, readiness, decisions, offenders, configurations, rejections, stores: store.servers };
  const front = await openFront(app, shown);
  async function open(): Promise<Serving> {
    await warmUp(app, store);
    const addresses = { ...(await servers.listen()), ...front.addresses };
    return { ...addresses, store: store.description, rules: config$.value.loaded };
  }
  const drainSteps = [
    ...endOfDecisions(app, path, (within) => servers.drainGrpc(within)),
    { name: 'HTTP requests', run: () => defer(() => servers.closeHttp()) },
    front.endOfStatistics,
    ...endOfRecords(path),
    front.endOfDebug,
  ];
  return runProcess(app, {
    readiness,
    flows: [path.flow$, rejections.logConditions()],
    live: () =>
      lifeOf(app, {
        ...{ ...options, signal$, readiness, open, drainSteps },
        connections: () => servers.connections,
      }),
  });
}
