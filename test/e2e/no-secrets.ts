import { AdsServer, SnapshotCache } from '../support/servers/ads-server';
import { ruleResource } from '../support/data/rule-resources';
import { domainConfig, limit } from '../support/data/rules';
import { everySecret } from '../support/data/secret-settings';
import { Secrets } from '../support/data/secrets';
import { freePorts } from '../support/processes/free-ports';
import { observableOutput } from '../support/processes/observable-output';
import { WeirProcess } from '../support/processes/weir-process';
import { quotingStore } from '../support/servers/quoting-peers';

export type Environment = Readonly<Record<string, string>>;
export type Reach = (weir: WeirProcess) => unknown;

export const secrets = new Secrets();

/** Enables all output, including that of the libraries. */
export const VERBOSE = {
  LOG_LEVEL: 'debug',
  GRPC_VERBOSITY: 'DEBUG',
  GRPC_TRACE: 'all',
  DEBUG: '*',
  USE_PULLMETRICS: 'true',
  PULLMETRICS_ADDR: '127.0.0.1:0',
};

/**
 * Runs the service once for each log format until `reach` resolves, stops it unless it has ended, and expects no secret
 * in its output.
 *
 * @param reach waits for a sign that the secrets have been used
 */
export async function expectNoSecrets(env: Environment, reach: Reach): Promise<void> {
  const output = await Promise.all(
    ['text', 'json'].map(async (LOG_FORMAT) => {
      await using weir = await WeirProcess.start({ env: { ...VERBOSE, ...env, LOG_FORMAT }, awaitServing: false });
      await reach(weir);
      const whileRunning = weir.isRunning ? await observableOutput(weir) : '';
      weir.signal('SIGTERM');
      await weir.exited;
      return whileRunning + weir.output;
    }),
  );
  expect(output.map((text) => secrets.shownIn(text))).toEqual([[], []]);
}

/** Waits until the service serves, and expects it to answer calls that are counted in both stores. */
export async function expectAnswers(weir: WeirProcess): Promise<void> {
  await weir.line(/msg="?serving|"@message":"serving"/);
  const output = await observableOutput(weir);
  for (const answer of ['gRPC answers 1 for key', 'gRPC answers 1 for fast', '"overallCode":"OK"']) {
    expect(output).toContain(answer);
  }
}

/** Waits for a log line about one of the stores; the order of message and fields depends on the format. */
export function storeLine(weir: WeirProcess, store: string, what: string): Promise<string> {
  return weir.line(new RegExp(`(?=.*store"?[=:]"?${store}).*${what}`));
}

/** Waits until neither store can be used. */
export async function unreachable(weir: WeirProcess): Promise<void> {
  for (const store of ['main', 'per second'])
    await storeLine(weir, store, '(cannot connect to the counter store|cannot read the cluster topology)');
}

/** Expects no secret in the output of a service whose stores quote, in errors and in garbage, what they receive. */
export async function expectNoneQuoted(type: 'single' | 'sentinel' | 'cluster'): Promise<void> {
  await using peer = await quotingStore('error');
  await using wild = await quotingStore('garbage');
  const [store = '', perSecond = ''] = [peer, wild].map(({ address }) =>
    type === 'sentinel' ? `counters,${address}` : address,
  );
  const env = everySecret(secrets, { store, perSecond, xds: peer.address, otlp: wild.address });
  await expectNoSecrets({ ...env, KVSTORE_TYPE: type, KVSTORE_PERSECOND_TYPE: type }, unreachable);
  const sent = type === 'sentinel' ? 'SENTINEL_AUTH' : 'AUTH';
  expect(secrets.shownIn(peer.received.join('\n'))).toContain(`KVSTORE_${sent}`);
  expect(secrets.shownIn(wild.received.join('\n'))).toContain(`KVSTORE_PERSECOND_${sent}`);
}

/** An address on which nothing listens. */
export async function closedAddress(): Promise<string> {
  const [port] = await freePorts(1);
  return `127.0.0.1:${port}`;
}

/** A management server with a rule for each of both stores. */
export async function adsServer(): Promise<AdsServer> {
  const rules = domainConfig(
    'shop',
    { key: 'key', rateLimit: limit(1000, 'DAY') },
    { key: 'fast', rateLimit: limit(1000, 'SECOND') },
  );
  const cache = new SnapshotCache();
  cache.publish('1', [ruleResource('shop', rules)]);
  return AdsServer.start({ cache });
}
