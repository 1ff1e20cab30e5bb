import { asyncScheduler } from 'rxjs';
import { VERSION } from '../version';
import { Authorization } from '../http/operators/authorization';
import { operatorsApi } from '../http/operators/operators-api';
import type { DebugWorkers } from '../http/debug/profile-access';
import { serveDebug } from '../http/debug/serve-debug';
import type { HttpListener } from '../http/listener';
import type { HttpTls } from '../http/tls-acceptor';
import { hasPolicies, storeAbilities } from '../settings/stores';
import { listSettings } from '../settings/list-settings';
import { mostInstances } from '../streams/most-instances';
import type { Readiness } from '../streams/readiness';
import type { ShownServers } from '../streams/server-views';
import type { App } from './app';
import { expectedDifferences, instanceOf, peersOf } from './fleet';
import type { Rejections } from './rejections';
import type { StoreInUse } from '../operators/health';
import type { FindPeers } from '../operators/fleet/fleet';
import { INTERVAL } from '../operators/history/recording';
import { Operator, type OperatorOptions } from '../operators/operator';
import { ListenerCertificates } from '../sources/certificates';
import { currentSecret } from '../sources/secret-files';
import type { WorkerRpc } from '../workers/worker-rpc';

export interface DebugInputs extends Pick<OperatorOptions, 'decisions' | 'config$' | 'configurations'> {
  readonly readiness: Readiness;
  readonly stores: ShownServers;
  /** The other processes of the instance, if there are any. */
  readonly workers?: Pick<WorkerRpc, keyof DebugWorkers | 'collect'> | undefined;
  readonly rejections: Rejections;
}

/**
 * Opens the debug listener, which is there from the start of the process to its end.
 *
 * @throws when its address cannot be listened on
 */
export async function openDebugListener(
  app: App,
  inputs: DebugInputs,
): Promise<Pick<HttpListener, 'address' | 'close'>> {
  const { config$, readiness, stores, workers, rejections } = inputs;
  const { settings, statistics, log } = app;
  const certificates = settings.debugTlsCert === undefined ? undefined : new ListenerCertificates(app, 'debug');
  app.listeners.add(() => certificates?.close());
  let presented: HttpTls | undefined = await certificates?.first();
  const currentToken = currentSecret(app, 'operatorToken', { log });
  const findPeers = peersOf(app, currentToken, () => presented?.cert);
  const operator = operatorOf(app, inputs, findPeers);
  const changes = stores.changed$.subscribe(() => operator.seeServers());
  const instances = seeInstances(app, operator, stores);
  const endSamples = sampleRegularly(operator);
  const authorization = new Authorization(currentToken, log, currentSecret(app, 'operatorTokens', { log }));
  const api = operatorsApi({ operator, authorization, log });
  const server = await serveDebug({
    host: settings.debugHost,
    port: settings.debugPort,
    inherited: app.manager.sockets.debug,
    settings: `${app.nameOf('debugHost')}, ${app.nameOf('debugPort')}`,
    version: VERSION,
    config: () => config$.value,
    readiness,
    statistics: async () => {
      await workers?.collect();
      return statistics.groups();
    },
    workers,
    allowedHosts: [settings.debugHost, ...settings.debugAllowedHosts],
    hasConsole: settings.console,
    authorization,
    operatorsApi: api.middleware,
    tls: presented,
    onRejected: rejections.http('debug'),
    log,
  });
  certificates?.follow({
    replaceTls: (next) => {
      server.replaceTls(next);
      presented = next;
    },
  });
  app.listeners.add(() => server.abort());
  if (!isLoopback(server.address.address)) warnOfExposure(app);
  const opened = readiness.opened$.subscribe(() => void operator.look());
  async function close(): Promise<void> {
    endSamples();
    changes.unsubscribe();
    instances?.unsubscribe();
    opened.unsubscribe();
    await operator.leave();
    api.close();
    return server.close();
  }
  return { address: server.address, close };
}

/** Takes samples at the multiples of the interval, as all instances do. @returns what ends that */
function sampleRegularly(operator: Operator): () => void {
  const interval = INTERVAL * 1000;
  let timer: NodeJS.Timeout;
  function next(): void {
    timer = setTimeout(sample, interval - (Date.now() % interval)).unref();
  }
  function sample(): void {
    operator.sample();
    next();
  }
  next();
  return () => clearTimeout(timer);
}

function operatorOf(
  app: App,
  { decisions, config$, configurations, readiness, stores, workers }: DebugInputs,
  findPeers: FindPeers | undefined,
): Operator {
  const settings = listSettings(app);
  return new Operator({
    ...{ decisions, config$, configurations, readiness, settings, findPeers, statistics: app.statistics },
    collect: workers && (() => workers.collect()),
    workers: workers && (() => workers.list()),
    ...{ store: storeInUse(app), servers: stores },
    instance: instanceOf(app, settings),
    expectedDifferences: expectedDifferences(app),
  });
}

/** Follows how many instances there are, if what the store counts is to be divided by them while it is away. */
function seeInstances({ settings, statistics, instances$ }: App, operator: Operator, stores: ShownServers) {
  if (settings.storeFailureLocalShare !== 'auto') return undefined;
  statistics.gauge('ratelimit.store.local_share', () => instances$.value);
  function isAway(): boolean {
    return stores.shown.some(({ troubleSince }) => troubleSince !== undefined);
  }
  return mostInstances(() => operator.health.instances.seen, isAway, asyncScheduler).subscribe((count) =>
    instances$.next(count),
  );
}

function storeInUse(app: App): StoreInUse {
  const { settings } = app;
  return { isShared: storeAbilities(settings).isShared, policy: hasPolicies(app) ? settings.storeFailurePolicy : null };
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address);
}

/** A program that reads heap snapshots has the secrets of the settings. */
function warnOfExposure({ settings: { debugHost }, nameOf, log }: App): void {
  const name = nameOf('debugHost');
  log.warn(
    `the debug listener can be reached from other machines (${name}=${debugHost}): it serves rules, ` +
      `statistics, profiles, and heap snapshots with the passwords of the settings; ` +
      `protect its port, or set ${name}=127.0.0.1`,
  );
}
