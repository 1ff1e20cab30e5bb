import { type ChannelCredentials, credentials, status } from '@grpc/grpc-js';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { data, headers, hello, request } from '../../grpc/http2/frames';
import { connectPlain } from '../../grpc/http2/raw-client';
import { callByHand } from '../../support/clients/call-by-hand';
import { RateLimitClient, requestMessage } from '../../support/clients/grpc-client';
import { prefixed } from '../../support/clients/http2-connection';
import { newAuthority } from '../../support/data/certificates';
import { RuleFolder } from '../../support/data/rule-folder';
import { simpleResource } from '../../support/data/rule-resources';
import { SecretMount } from '../../support/data/secret-mount';
import { freePorts } from '../../support/processes/free-ports';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { WeirProcess } from '../../support/processes/weir-process';
import { AdsServer, SnapshotCache } from '../../support/servers/ads-server';
import { LocalServer } from '../../support/servers/local-server';
import { TcpReceiver } from '../../support/servers/statsd-receivers';
import { until } from '../../support/waiting/until';
import { DOCUMENTED, type DocumentedStatistic } from './documented-statistics';

const RULES = `
domain: shop
descriptors:
  - { key: plain, rate_limit: { unit: day, requests_per_unit: 10 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: user, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 100 } }
  - { key: brief, rate_limit: { unit: second, requests_per_unit: 0 } }
  - { key: lenient, on_store_failure: allow, rate_limit: { unit: day, requests_per_unit: 10 } }
  - { key: none, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: tokens, rate_limit: { unit: day, requests_per_unit: 10, postpaid: true } }
`;
/** A rule that memcached does not accept. */
const BLOCKING = '  - { key: login, rate_limit: { unit: minute, requests_per_unit: 1, block_for: 10m } }\n';

/** The names at `/stats` and on the metrics page of services that have answered no call. */
const AT_START = new Set<string>();
/**
 * What all services reported by name and without tags, at several moments: the greatest value; of a timer, of its
 * durations.
 */
const KNOWN = new Map<string, number>();
/** The same of metrics, without their labels. */
const PULLED = new Map<string, number>();
/** Sums of lines, numbers of durations, and greatest gauges. */
const PUSHED = new Map<string, number>();

/** A service whose statistics are pushed and scraped, both of which is observed, and a client. */
class ObservedService implements AsyncDisposable {
  readonly client: RateLimitClient;
  readonly #stats = new Map<string, number>();
  readonly #series = new Map<string, number>();

  private constructor(
    readonly weir: WeirProcess,
    readonly daemon: TcpReceiver,
    readonly metricsUrl: string,
    channel: ChannelCredentials | undefined,
  ) {
    const name = { 'grpc.ssl_target_name_override': 'localhost', 'grpc.default_authority': 'localhost' };
    this.client = new RateLimitClient(weir.grpcAddress, channel, name);
  }

  static async start(env: Readonly<Record<string, string>>, channel?: ChannelCredentials): Promise<ObservedService> {
    const daemon = await TcpReceiver.start();
    const [metricsPort] = await freePorts(1);
    const outputs = {
      STATS_FLUSH_INTERVAL: '50ms',
      USE_PUSHSTATS: 'true',
      PUSHSTATS_HOST: '127.0.0.1',
      PUSHSTATS_PORT: String(daemon.port),
      USE_PULLMETRICS: 'true',
      PULLMETRICS_ADDR: `127.0.0.1:${metricsPort}`,
    };
    const weir = await WeirProcess.start({ env: { ...env, ...outputs } });
    const service = new ObservedService(weir, daemon, `http://127.0.0.1:${metricsPort}/metrics`, channel);
    await service.observe();
    for (const name of service.#stats.keys()) AT_START.add(withoutTags(name));
    for (const series of service.#series.keys()) AT_START.add(withoutLabels(series));
    return service;
  }

  call(...descriptors: readonly string[]): Promise<unknown> {
    return this.client.shouldRateLimit('shop', descriptors);
  }

  /** Repeats something until a statistic is above 0. */
  async moves(name: string, move: () => unknown = () => undefined): Promise<void> {
    await this.weir.until(`${name} to move`, async () => {
      await move();
      return ((await this.weir.statistics()).get(name) ?? 0) > 0;
    });
  }

  /** Reads `/stats` and the metrics page, and waits until the present values of gauges have been sent. */
  async observe(): Promise<void> {
    for (const [tagged, value] of await this.weir.statistics()) {
      if (/\.(?:p50|p99|max)_ms$/.test(tagged)) continue;
      keepGreater(this.#stats, tagged.replace(/(response_time)\.count$/, '$1'), value);
    }
    const page = await (await fetch(this.metricsUrl)).text();
    for (const [, series = '', value] of page.matchAll(/^([\w:]+(?:\{.*\})?) (\S+)$/gm)) {
      keepGreater(this.#series, series, Number(value));
    }
    const { daemon } = this;
    const from = daemon.lines.length;
    const oncePerFlush = /^ratelimit\.statistics\.runtime_keys:/;
    await daemon.until('two flushes', () => {
      return daemon.lines.slice(from).filter((line) => oncePerFlush.test(line)).length > 1;
    });
  }

  async end(): Promise<void> {
    await this.observe();
    this.weir.signal('SIGTERM');
    expect(await this.weir.exited).toBe(0);
    for (const [name, value] of this.#stats) add(KNOWN, withoutTags(name), value);
    for (const [name, value] of this.#series) add(PULLED, withoutLabels(name), value);
    for (const line of this.daemon.lines) {
      const [, name = '', value, type] = /^([^:]+):(-?[\d.]+)\|(c|g|ms)$/.exec(line) ?? [];
      const keep = type === 'g' ? keepGreater : add;
      keep(PUSHED, withoutTags(name), type === 'ms' ? 1 : Number(value));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client[Symbol.dispose]();
    await this.weir[Symbol.asyncDispose]();
    await this.daemon[Symbol.asyncDispose]();
  }
}

function withoutTags(name: string): string {
  return name.replace(/\.__.*$/, '');
}
/** Of a histogram or summary, the number of durations has its name. */
function withoutLabels(series: string): string {
  return series.replace(/\{.*/s, '').replace(/_count$/, '');
}
function add(values: Map<string, number>, name: string, value: number): void {
  values.set(name, (values.get(name) ?? 0) + value);
}
function keepGreater(values: Map<string, number>, name: string, value: number): void {
  values.set(name, Math.max(values.get(name) ?? 0, value));
}

/** Redis and rule files: moves most statistics. */
async function withFilesAndRedis(): Promise<void> {
  await using redis = await RedisProcess.start();
  await using folder = await RuleFolder.with({ 'shop.yaml': RULES + BLOCKING });
  await using service = await ObservedService.start({
    ...folder.env,
    BACKEND_TYPE: 'kvstore',
    KVSTORE_URL: redis.address,
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_URL: redis.address,
    KVSTORE_PIPELINE_WINDOW: '20ms',
    // Space for two keys.
    LOCAL_CACHE_SIZE_IN_BYTES: '350',
    STATS_MAX_RUNTIME_KEYS: '3',
    SHADOW_MODE: 'true',
  });
  const { weir, client } = service;
  await client.shouldRateLimit('shop', ['plain'], 10);
  await client.kuadrant('CheckRateLimit', requestMessage('shop', ['plain']));
  await service.call('plain');
  await service.call('plain');
  await client.shouldRateLimit('shop', ['shadow'], 2);
  await client.shouldRateLimit('shop', ['login'], 2);
  const subtracted = { entries: [{ key: 'user', value: 'a' }], limit: undefined, hitsAddend: 3n };
  await client.shouldRateLimit('shop', ['user=a', { ...subtracted, isNegativeHits: true }]);
  await client.shouldRateLimit('nowhere', ['plain', 'plain']);
  await expect(client.shouldRateLimit('', ['plain'])).rejects.toThrow('domain');
  // The fourth key with a value exceeds STATS_MAX_RUNTIME_KEYS.
  for (const descriptor of ['unknown', 'user=b', 'user=c']) await service.call(descriptor);
  let value = 0;
  function twice() {
    value += 1;
    return Promise.all([service.call(`none=${value}`), service.call(`none=${value}`)]);
  }
  for (const name of ['pipeline.merged_hits', 'localcache.overwriteCount', 'localcache.evacuateCount']) {
    await service.moves(`ratelimit.${name}`, twice);
  }
  await service.moves('ratelimit.localcache.expiredCount', async () => {
    await service.call('brief');
    const second = Math.floor(Date.now() / 1000);
    await until('the second is over', () => Math.floor(Date.now() / 1000) > second);
    // The key is evicted only when space is needed.
    await twice();
    await twice();
  });
  for (const method of ['Check', 'List']) {
    const path = `/grpc.health.v1.Health/${method}`;
    expect(await callByHand(weir.grpcAddress, path, new Uint8Array())).toBe(status.OK);
  }
  const withoutHost = connect(weir.ports.http, '127.0.0.1');
  withoutHost.on('error', () => undefined).write('GET /healthcheck HTTP/1.1\r\n\r\n');
  await once(withoutHost.resume(), 'close');
  await service.moves('ratelimit_server.http.malformed');
  await service.moves(`ratelimit.store.request_time_ms.__server=${redis.address}.__store=main`, () =>
    service.call('user=a'),
  );
  await redis.control.config('SET', 'maxmemory-policy', 'allkeys-random');
  await redis.control.config('SET', 'maxmemory', '1');
  for (const pool of ['redis_pool', 'redis_per_second_pool']) await service.moves(`ratelimit.${pool}.evicted_keys`);
  await redis.control.config('SET', 'maxmemory', '0');
  await service.observe();
  await folder.write('bad.yaml', 'domain: [');
  await weir.line(/new rules rejected/);
  await redis.crash();
  await service.moves('ratelimit.service.call.should_rate_limit.redis_error', () =>
    service.call('user=a').catch(() => undefined),
  );
  await service.call('lenient');
  await client.shouldRateLimit('shop', ['tokens'], 5).catch(() => undefined);
  for (const pool of ['redis_pool', 'redis_per_second_pool']) {
    await service.moves(`ratelimit.${pool}.cx_local_close`);
    await weir.until('no connections', async () => (await weir.statistics()).get(`ratelimit.${pool}.cx_active`) === 0);
  }
  await service.end();
}

/** Makes, repeats, settles and cancels reservations, and has some denied and rejected. */
async function useReservations(weir: WeirProcess): Promise<void> {
  function post(path: string, content: object): Promise<Response> {
    return weir.http(`/v1/reservations${path}`, { method: 'POST', body: JSON.stringify(content) });
  }
  const descriptors = [{ entries: [{ key: 'key', value: 'reserved' }] }];
  for (const [id, hitsAddend] of [
    ['r', 1],
    ['r', 1],
    ['other', 1],
    ['denied', 11],
  ])
    await post('', { domain: 'shop', descriptors, ttl: '60s', id, hitsAddend });
  await post('/r/settle', { hits: 2 });
  await post('/unknown/settle', { hits: 2 });
  await post('', { domain: 'shop', descriptors, ttl: '1s', onExpiry: 'cancel', hitsAddend: 1 });
  await weir.http('/v1/reservations/other', { method: 'DELETE' });
}

/** A memory store with space for two keys, and rules from a management server. */
async function withXdsAndMemory(): Promise<void> {
  const cache = new SnapshotCache();
  cache.publish('1', [simpleResource('shop', 10)]);
  await using server = await AdsServer.start({ cache });
  await using service = await ObservedService.start({
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: server.address,
    MEMORY_MAX_KEYS: '2',
    LOG_LEVEL: 'debug',
  });
  const { weir } = service;
  for (const value of ['a', 'b', 'c']) await service.call(`key=${value}`);
  await useReservations(weir);
  // Before other keys take the place of its counter.
  await service.moves('ratelimit.reservations.given_back');
  const incomplete = connectPlain({ address: '127.0.0.1', family: 'IPv4', port: weir.ports.grpc }).send(
    hello(),
    headers(1, request(SHOULD_RATE_LIMIT, ['content-type', 'application/grpc'], ['te', 'trailers'])),
    data(1, prefixed('message').subarray(0, 9)),
  );
  await service.moves('ratelimit_server.grpc.held_bytes');
  await service.observe();
  incomplete.close();
  const descriptors = Array.from({ length: 50 }, (_, index) => `key=${index}`);
  weir.pauseOutput();
  await service.moves('ratelimit.log.dropped', async () => {
    for (let call = 0; call < 50; call += 1) await service.call(...descriptors);
  });
  weir.resumeOutput();
  await weir.line(/log lines were dropped/);
  await service.end();
}

/**
 * A TCP proxy in front of memcached that lets something happen between a reply NOT_FOUND and its arrival at the client.
 */
class RacingProxy extends LocalServer {
  /** Called before the reply is forwarded. */
  onMiss: () => Promise<unknown> = () => Promise.resolve();

  constructor(target: MemcachedProcess) {
    super(
      createServer((client) => {
        const server = connect(Number(target.address.split(':')[1]), '127.0.0.1').on('error', () => undefined);
        client.on('close', () => server.destroy()).pipe(server.on('close', () => client.destroy()));
        let forwarded = Promise.resolve();
        server.on('data', (reply: Buffer) => {
          forwarded = forwarded.then(async () => {
            if (reply.includes('NOT_FOUND')) await this.onMiss();
            client.write(reply);
          });
        });
      }),
    );
  }
}

/** Counters in a memcached with little memory, calls over TLS, and a decision log that is not accepted. */
async function withMemcachedAndTls(): Promise<void> {
  const authority = newAuthority();
  const { cert, key } = authority.issue('localhost');
  authority.dispose();
  using files = new SecretMount({ cert, key });
  await using server = await MemcachedProcess.start({ args: ['-M', '-m', '2'] });
  await using proxy = await new RacingProxy(server).listen();
  await using folder = await RuleFolder.with({ 'shop.yaml': RULES });
  const env = {
    ...folder.env,
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: files.path('cert'),
    GRPC_SERVER_TLS_KEY: files.path('key'),
    BACKEND_TYPE: 'memcache',
    PLAINCACHE_HOST_PORT: proxy.address,
    DECISION_LOG: 'all',
    DECISION_LOG_OUTPUT: '/dev/full',
    STATS_MAX_RUNTIME_KEYS: '3',
  };
  await using service = await ObservedService.start(env, credentials.createSsl(Buffer.from(authority.ca)));
  function moves(name: string, move: () => unknown) {
    return service.moves(`ratelimit.memcache.${name}`, move);
  }
  const day = Math.floor(Date.now() / 86_400_000) * 86_400;
  await moves('increment.__code=success', () => service.call('plain'));
  await server.command(`set shop_user_bad_${day} 0 1000 3\r\nbad\r\n`);
  await moves('increment.__code=error', () => service.call('user=bad'));
  let round = 0;
  await moves('add.__code=not_stored', () => {
    const user = `raced-${(round += 1)}`;
    proxy.onMiss = () => server.command(`add shop_user_${user}_${day} 0 1000 1\r\n1\r\n`, /STORED/);
    return service.call(`user=${user}`);
  });
  await moves('add.__code=error', () => {
    round += 1;
    return service.call(...Array.from({ length: 500 }, (_, index) => `user=${'x'.repeat(150)}-${round}-${index}`));
  });
  const stranger = connect(service.weir.ports.grpc, '127.0.0.1');
  stranger.on('error', () => undefined).end('this is not TLS');
  await service.moves('ratelimit_server.http2.tls_handshake');
  await service.observe();
  files.replace({ cert: 'broken', key });
  await service.weir.line(/new certificates of the gRPC listener rejected/);
  await server.crash();
  await moves('multiget.__code=error', () => service.call('plain'));
  await service.end();
}

beforeAll(async () => {
  const all = await Promise.allSettled([withFilesAndRedis(), withXdsAndMemory(), withMemcachedAndTls()]);
  for (const result of all) if (result.status === 'rejected') throw result.reason;
});

/** The value of all statistics of a documented kind. */
function valueOf({ kind, name, metric }: DocumentedStatistic, values: ReadonlyMap<string, number>): number {
  const pattern = values === PULLED ? metric : name;
  const found = [...values].filter(([each]) => pattern.test(each)).map(([, value]) => value);
  return kind === 'gauge' ? Math.max(0, ...found) : found.reduce((sum, value) => sum + value, 0);
}

/**
 * Of a process with more work than time, of many keys, and of several instances, tested in grpc/server/calls.test.ts,
 * marbles/streams/local-policy.test.ts and e2e/failure-policy.test.ts.
 */
const SIMULATED = [
  'ratelimit_server.grpc.waiting_calls',
  'ratelimit.store.dropped_hits',
  'ratelimit.store.local_share',
];
/** Those of several processes, and of leases, are tested in e2e/workers/. */
const OF_ONE_PROCESS = DOCUMENTED.filter(
  ({ written }) => !/^ratelimit\.(?:workers|lease)\./.test(written) && !SIMULATED.includes(written),
);

describe('every statistic of docs/statistics.md', () => {
  it.each(OF_ONE_PROCESS.map((each) => [each.written, each] as const))(
    'changes when pushed and when scraped: %s',
    (_, each) => {
      const values = [PUSHED, PULLED].map((output) => valueOf(each, output));
      for (const value of values) expect(value).toBeGreaterThan(0);
      // Gauges may have changed between two observations.
      if (each.kind === 'gauge') return;
      // Two of the rows share one metric.
      const ofMetric = DOCUMENTED.filter(({ metric }) => metric.source === each.metric.source);
      const known = valueOf(each, KNOWN);
      expect(values).toEqual([known, ofMetric.reduce((sum, other) => sum + valueOf(other, KNOWN), 0)]);
    },
  );

  const fixed = OF_ONE_PROCESS.filter(({ kind, written }) => kind === 'counter' && !written.includes('<'));
  it.each(fixed.map((each) => [each.written, each] as const))('is known before the first call: %s', (_, each) => {
    for (const pattern of [each.name, each.metric]) {
      expect([...AT_START].filter((name) => pattern.test(name))).not.toEqual([]);
    }
  });

  it('is the only one that a service reports', () => {
    const names = [...new Set([...KNOWN.keys(), ...PUSHED.keys()])];
    expect(names.filter((name) => DOCUMENTED.filter((each) => each.name.test(name)).length !== 1)).toEqual([]);
    expect(names.length).toBeGreaterThan(DOCUMENTED.length);
  });
});
