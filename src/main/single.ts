import { defer } from 'rxjs';
import { ruleSource } from '../sources/rule-source';
import { ListenerCertificates } from '../sources/certificates';
import type { App } from './app';
import { counterStore } from './counter-store';
import { type DecisionPath, decisionPath, endOfDecisions, endOfRecords } from './decision-path';
import type { RunOptions } from './life';
import type { Core, Role } from './run';
import { ServiceFront, type ServingCore } from './service-front';
import { Servers } from './servers';
import { warmUp } from './warm-up';

/** The only process of an instance. */
export function single(app: App, options: RunOptions): Role<ServingCore> {
  const front = new ServiceFront(app, options);
  return {
    async core(rejections) {
      const source = await ruleSource(app);
      const path = await decisionPath(app, {
        rules$: source.events$.pipe(front.recordLoads),
        store: await counterStore(app),
        termination$: front.signal$,
      });
      const tls = app.settings.grpcServerUseTls ? new ListenerCertificates(app, 'gRPC') : undefined;
      const servers = new Servers(app, { ...path, rejections }, tls);
      async function open() {
        await warmUp(app, path.store);
        return { ...(await servers.listen()), store: path.store.description };
      }
      return { ...decidingCore(app, path, servers), open };
    },
    front: (core, rejections) => front.of(core, rejections),
  };
}

/** A process that decides. */
export function decidingCore(app: App, path: DecisionPath, servers: Servers): Core {
  const { config$, readiness, flow$, decisions, offenderSource } = path;
  return {
    ...{ config$, readiness, flow$, decisions, offenders: offenderSource, stores: path.store.servers },
    connections: () => servers.connections,
    endOfCalls: endOfDecisions(app, path, (within) => servers.drainGrpc(within)),
    endOfRequests: [{ name: 'HTTP requests', run: () => defer(() => servers.closeHttp()) }],
    endOfRecords: endOfRecords(path),
  };
}
