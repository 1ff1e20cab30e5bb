import { status as Code } from '@grpc/grpc-js';
import { AdsServer, type AdsServerStream, SnapshotCache } from '../support/servers/ads-server';
import { observableOutput } from '../support/processes/observable-output';
import { freePorts } from '../support/processes/free-ports';
import {
  type QuotingPeer,
  quotingGrpcCollector,
  quotingHttpCollector,
  quotingProxy,
  quotingStore,
} from '../support/servers/quoting-peers';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { ruleResource } from '../support/data/rule-resources';
import { RuleFolder } from '../support/data/rule-folder';
import { domainConfig, limit } from '../support/data/rules';
import { Secrets } from '../support/data/secrets';
import { everySecret, settingRows, tracesTo, underGoNames } from '../support/data/secret-settings';
import { OtlpReceiver } from '../support/servers/otlp-receiver';
import { TcpReceiver } from '../support/servers/statsd-receivers';
import { until } from '../support/waiting/until';
import { WeirProcess } from '../support/processes/weir-process';

type Environment = Readonly<Record<string, string>>;
type Reach = (weir: WeirProcess) => unknown;

const secrets = new Secrets();

/** Enables all output, including that of the libraries. */
const VERBOSE = {
  LOG_LEVEL: 'debug',
  GRPC_VERBOSITY: 'DEBUG',
  GRPC_TRACE: 'all',
  DEBUG: '*',
  USE_PULLMETRICS: 'true',
  PULLMETRICS_ADDR: '127.0.0.1:0',
};

const RULES = domainConfig(
  'shop',
  { key: 'key', rateLimit: limit(1000, 'DAY') },
  { key: 'fast', rateLimit: limit(1000, 'SECOND') },
);

/**
 * Runs the service once for each log format until `reach` resolves, stops it, and expects no secret in its output.
 *
 * @param reach waits for a sign that the secrets have been used
 */
async function expectNoSecrets(env: Environment, reach: Reach): Promise<void> {
  const output = await Promise.all(
    ['text', 'json'].map(async (LOG_FORMAT) => {
      await using weir = await WeirProcess.start({ env: { ...VERBOSE, ...env, LOG_FORMAT }, awaitServing: false });
      await reach(weir);
      const whileRunning = await observableOutput(weir);
      weir.signal('SIGTERM');
      await weir.exited;
      return whileRunning + weir.output;
    }),
  );
  expect(output.map((text) => secrets.shownIn(text))).toEqual([[], []]);
}

const serving: Reach = (weir) => weir.line(/msg="?serving|"@message":"serving"/);

/** Waits for a log line about one of the stores; the order of message and fields depends on the format. */
function storeLine(weir: WeirProcess, store: string, what: string): Promise<string> {
  return weir.line(new RegExp(`(?=.*store"?[=:]"?${store}).*${what}`));
}

const unreachable: Reach = async (weir) => {
  for (const store of ['main', 'per second'])
    await storeLine(weir, store, '(cannot connect to the counter store|cannot read the cluster topology)');
};

async function closedAddress(): Promise<string> {
  const [port] = await freePorts(1);
  return `127.0.0.1:${port}`;
}

async function adsServer(): Promise<AdsServer> {
  const cache = new SnapshotCache();
  cache.publish('1', [ruleResource('shop', RULES)]);
  return AdsServer.start({ cache });
}

function rules() {
  return RuleFolder.with({
    'shop.yaml': 'domain: shop\ndescriptors: [{ key: key, rate_limit: { unit: day, requests_per_unit: 5 } }]',
  });
}

describe('the settings of this test', () => {
  const environment = everySecret(secrets, { store: 's:1', perSecond: 'p:1', xds: 'x:1', otlp: 'o:1' });
  const rows = settingRows.filter(({ secret }) => secret !== undefined);

  it.each(rows)('include a secret in $name, which the settings table marks as secret', ({ name, alias = name }) => {
    const text = underGoNames(environment)[alias];
    expect(text).toBe(environment[name]);
    expect(secrets.shownIn(text ?? '')).toContain(name);
  });
});

describe('the output contains no secret', () => {
  it('during normal operation and after the passwords have changed', async () => {
    const [main, perSecond] = [secrets.of('KVSTORE_AUTH'), secrets.of('KVSTORE_PERSECOND_AUTH')];
    await using xds = await adsServer();
    await using statsd = await TcpReceiver.start();
    await using otlp = await OtlpReceiver.http();
    await using redis = await RedisProcess.start({
      directives: ['--user', 'ann', 'on', `>${main}`, '~*', '&*', '+@all', '--requirepass', perSecond],
      control: { password: perSecond },
    });
    const addresses = {
      store: redis.address,
      perSecond: redis.address,
      xds: xds.address,
      otlp: new URL(otlp.url).host,
    };
    const push = { USE_PUSHSTATS: 'true', PUSHSTATS_PORT: String(statsd.port), STATS_FLUSH_INTERVAL: '50ms' };
    let reached = 0;
    await expectNoSecrets(
      { ...everySecret(secrets, addresses), ...push, PUSHSTATS_HOST: '127.0.0.1' },
      async (weir) => {
        await serving(weir);
        const output = await observableOutput(weir);
        for (const answer of ['gRPC answers 1 for key', 'gRPC answers 1 for fast', '"overallCode":"OK"'])
          expect(output).toContain(answer);
        await weir.until('spans and statistics to arrive', () => otlp.spans.length > 0 && statsd.lines.length > 0);
        // Both services use the same server, so both must get here before the passwords change.
        reached += 1;
        await weir.until('both services to get here', () => reached === 2);
        await redis.control.call('ACL', 'SETUSER', 'ann', 'resetpass', '>another');
        await redis.control.call('CONFIG', 'SET', 'requirepass', 'another');
        await redis.control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        for (const store of ['main', 'per second']) await storeLine(weir, store, 'WRONGPASS');
      },
    );
    expect(secrets.shownIn(statsd.lines.join('\n'))).toEqual([]);
  });

  it('while no server is reachable', async () => {
    const [store, perSecond, xds, otlp] = [
      await closedAddress(),
      await closedAddress(),
      await closedAddress(),
      await closedAddress(),
    ];
    await expectNoSecrets(everySecret(secrets, { store, perSecond, xds, otlp }), async (weir) => {
      await unreachable(weir);
      await weir.line(/no stream from the xDS server/);
    });
  });

  it.each(['single', 'sentinel', 'cluster'])('when stores (%s) quote the requests', async (type) => {
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
  });

  it('when a Redis without AUTH quotes its arguments', async () => {
    await using redis = await RedisProcess.start({ directives: ['--rename-command', 'AUTH', ''] });
    const KVSTORE_URL = `redis://ann:${secrets.inUrl('KVSTORE_URL')}@${redis.address}`;
    await expectNoSecrets({ BACKEND_TYPE: 'kvstore', KVSTORE_URL }, (weir) => weir.line(/unknown command/));
  });

  it('when a management server quotes the headers that it rejects', async () => {
    const rejections = new QuotingRejections();
    await using xds = await AdsServer.start({ cache: rejections });
    const closed = await closedAddress();
    const env = everySecret(secrets, { store: closed, perSecond: closed, xds: xds.address, otlp: closed });
    await expectNoSecrets({ ...env, BACKEND_TYPE: 'memory' }, (weir) => weir.line(/UNAUTHENTICATED: refused/));
    expect(secrets.shownIn(rejections.quoted.join('\n'))).toHaveLength(3);
  });

  it.each<[protocol: string, collector: () => Promise<QuotingPeer>]>([
    ['http', quotingHttpCollector],
    ['grpc', quotingGrpcCollector],
  ])('when a collector over %s quotes the headers that it rejects', async (TRACING_EXPORTER_PROTOCOL, collector) => {
    await using folder = await rules();
    await using otlp = await collector();
    const more = { OTEL_EXPORTER_OTLP_TIMEOUT: '20000', TRACING_EXPORTER_PROTOCOL };
    const env = { ...folder.env, ...tracesTo(secrets, otlp.address), ...more };
    await expectNoSecrets(env, tracesRejected);
    const received = secrets.shownIn(otlp.received.join('\n'));
    expect(received).toEqual(
      expect.arrayContaining(['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS']),
    );
  });

  it('when the headers for traces are invalid', async () => {
    await using folder = await rules();
    const env = tracesTo(secrets, await closedAddress());
    const broken = { OTEL_EXPORTER_OTLP_HEADERS: `${env['OTEL_EXPORTER_OTLP_HEADERS']}%0A` };
    await expectNoSecrets({ ...folder.env, ...env, ...broken }, tracesRejected);
  });

  it('when the endpoint for traces is invalid', async () => {
    await using folder = await rules();
    await expectNoSecrets({ ...folder.env, ...tracesTo(secrets, 'h:port') }, serving);
  });

  it('when a proxy quotes the credentials that it rejects', async () => {
    await using proxy = await quotingProxy();
    const closed = await closedAddress();
    const env = everySecret(secrets, { store: closed, perSecond: closed, xds: closed, otlp: closed });
    const http_proxy = `http://ann:${secrets.inUrl('http_proxy')}@${proxy.address}`;
    await expectNoSecrets({ ...env, http_proxy, TRACING_EXPORTER_PROTOCOL: 'grpc' }, (weir) =>
      weir.line(/no stream from the xDS server/),
    );
    expect(secrets.shownIn(proxy.received.join('\n'))).toEqual(['http_proxy']);
  });
});

describe('the output contains no secret with Sentinel, Redis Cluster and the setting names of the Go service', () => {
  const started: AsyncDisposable[] = [];
  function use<Server extends AsyncDisposable>(server: Server): Server {
    started.push(server);
    return server;
  }
  let env: Environment;
  let master: RedisProcess;
  let cluster: RedisProcess;
  beforeAll(async () => {
    const xds = use(await adsServer());
    const otlp = use(await quotingGrpcCollector());
    master = use(
      await RedisProcess.start({
        directives: ['--user', 'ann', 'on', `>${secrets.of('KVSTORE_AUTH')}`, '~*', '&*', '+@all'],
      }),
    );
    cluster = use(await oneNodeCluster(secrets.of('KVSTORE_PERSECOND_AUTH')));
    const sentinel = use(await oneSentinel(master, secrets.of('KVSTORE_SENTINEL_AUTH')));
    const store = `counters,${sentinel.address}`;
    env = underGoNames({
      ...everySecret(secrets, { store, perSecond: cluster.address, xds: xds.address, otlp: otlp.address }),
      KVSTORE_TYPE: 'sentinel',
      KVSTORE_PERSECOND_TYPE: 'cluster',
      KVSTORE_TIMEOUT: '10s',
      TRACING_EXPORTER_PROTOCOL: 'grpc',
    });
  });
  afterAll(() => Promise.all(started.map((server) => server[Symbol.asyncDispose]())));

  it('while only the collector fails', async () => {
    await expectNoSecrets(env, async (weir) => {
      await serving(weir);
      const output = await observableOutput(weir);
      for (const answer of ['gRPC answers 1 for key', 'gRPC answers 1 for fast']) expect(output).toContain(answer);
      await weir.line(/cannot export traces/);
    });
  });

  it('when the sentinel rejects the password', async () => {
    await expectNoSecrets({ ...env, REDIS_SENTINEL_AUTH: secrets.of('a wrong one for sentinels') }, (weir) =>
      weir.line(/no sentinel returned the address of the master.*WRONGPASS/),
    );
  });

  it('when the master and the nodes reject the password', async () => {
    await master.control.call('ACL', 'SETUSER', 'ann', 'resetpass', '>another');
    await cluster.control.call('CONFIG', 'SET', 'requirepass', 'another');
    await expectNoSecrets(env, async (weir) => {
      await storeLine(weir, 'main', 'WRONGPASS');
      await weir.line(/no cluster node returned the slots.*WRONGPASS/);
    });
  });
});

/** Ends every stream with a status that quotes its headers, also decoded from base64. */
class QuotingRejections extends SnapshotCache {
  readonly quoted: string[] = [];

  override serve(stream: AdsServerStream): void {
    const { metadata } = stream;
    const [key, basic] = [metadata.get('key-bin')[0], metadata.get('proxy-authorization')[0]];
    const bare = Buffer.from(String(basic).replace('Basic ', ''), 'base64').toString();
    const details = `refused: ${JSON.stringify(metadata.getMap())}, that is ${bare} and ${String(key)}`;
    this.quoted.push(details);
    stream.end({ code: Code.UNAUTHENTICATED, details, metadata });
  }
}

const tracesRejected: Reach = async (weir) => {
  await serving(weir);
  await observableOutput(weir);
  await weir.line(/cannot export traces/);
};

async function oneNodeCluster(password: string): Promise<RedisProcess> {
  const [bus] = await freePorts(1);
  const server = await RedisProcess.start({
    directives: ['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--requirepass', password],
    control: { password },
  });
  await server.control.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
  await until('the cluster is ready', async () => (await server.control.cluster('INFO')).includes('cluster_state:ok'));
  return server;
}

function oneSentinel(master: RedisProcess, password: string): Promise<RedisProcess> {
  return RedisProcess.start({
    mode: ['--sentinel'],
    configuration: () => [
      `sentinel monitor counters 127.0.0.1 ${master.port} 1`,
      `requirepass ${JSON.stringify(password)}`,
    ],
  });
}
