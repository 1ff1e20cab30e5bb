import { Client, credentials } from '@grpc/grpc-js';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { AdsServer, SnapshotCache } from '../../support/servers/ads-server';
import { newAuthority } from '../../support/data/certificates';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { simpleResource } from '../../support/data/rule-resources';
import { RuleFolder } from '../../support/data/rule-folder';
import { RacingProxy } from '../../support/servers/racing-proxy';
import { until } from '../../support/waiting/until';
import type { WeirProcess } from '../../support/processes/weir-process';
import { data, headers, hello, request } from '../../grpc/http2/frames';
import { type RawClient, connectPlain } from '../../grpc/http2/raw-client';
import { prefixed } from '../../grpc/server/raw-call';
import { DOCUMENTED, type DocumentedStatistic } from './documented-statistics';
import { type Observations, ObservedService } from './observed-service';

const RULES = `
domain: shop
descriptors:
  - { key: plain, rate_limit: { unit: day, requests_per_unit: 10 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: user, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 100 } }
  - { key: brief, rate_limit: { unit: second, requests_per_unit: 0 } }
  - { key: none, rate_limit: { unit: day, requests_per_unit: 0 } }
`;

/** The names at `/stats` and on the metrics page of services that have answered no call, with Redis and with memcached. */
const atStart: { readonly stats: readonly string[]; readonly page: readonly string[] }[] = [];
async function keepNames(service: ObservedService): Promise<void> {
  atStart.push({ stats: [...(await service.known()).keys()], page: [...(await service.page()).keys()] });
}

/** The name in the certificate; the test connects to an address. */
const NAME = 'weir.test';
const NAMED = { 'grpc.ssl_target_name_override': NAME, 'grpc.default_authority': NAME };

/** Redis, rule files and TLS: moves every statistic except those of xDS and of the memory store. */
async function withFilesAndRedis(): Promise<Observations> {
  const authority = newAuthority();
  const certificates = await mkdtemp(join(tmpdir(), 'weir-certificates-'));
  const [certFile, keyFile] = [join(certificates, 'cert.pem'), join(certificates, 'key.pem')];
  try {
    const { cert, key } = authority.issue(NAME);
    await writeFile(certFile, cert);
    await writeFile(keyFile, key);
    await using redis = await RedisProcess.start();
    await using folder = await RuleFolder.with({ 'shop.yaml': RULES });
    await using service = await ObservedService.start({
      ...folder.env,
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: certFile,
      GRPC_SERVER_TLS_KEY: keyFile,
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
    const channel = credentials.createSsl(Buffer.from(authority.ca));
    const { weir } = service;
    await keepNames(service);
    await sendRequests(weir, channel);
    await service.observe();
    await writeFile(certFile, 'broken');
    await folder.write('bad.yaml', 'domain: [');
    await weir.line(/new rules rejected/);
    await weir.line(/new certificates of the gRPC listener rejected/);
    await redis.crash();
    await failToCount(weir, channel);
    return await service.end();
  } finally {
    authority.dispose();
    await rm(certificates, { recursive: true, force: true });
  }
}

async function sendRequests(weir: WeirProcess, channel: ReturnType<typeof credentials.createSsl>): Promise<void> {
  using client = new RateLimitClient(weir.grpcAddress, channel, NAMED);
  await client.shouldRateLimit('shop', ['plain'], 10);
  await client.shouldRateLimit('shop', ['plain']);
  await client.shouldRateLimit('shop', ['plain']);
  await client.shouldRateLimit('shop', ['shadow'], 2);
  await client.shouldRateLimit('shop', ['user=a']);
  await client.shouldRateLimit('shop', [
    {
      entries: [{ key: 'user', value: 'a' }],
      limit: undefined,
      hitsAddend: 3n,
      isNegativeHits: true,
    },
  ]);
  await client.shouldRateLimit('nowhere', ['plain', 'plain']);
  await client.shouldRateLimit('shop', ['unknown']);
  await expect(client.shouldRateLimit('', ['plain'])).rejects.toThrow('domain');
  // The fourth key with a value exceeds STATS_MAX_RUNTIME_KEYS.
  for (const value of ['b', 'c']) await client.shouldRateLimit('shop', [`user=${value}`]);
  async function moves(name: string, move: () => Promise<unknown>) {
    return weir.until(`${name} to move`, async () => {
      await move();
      return ((await weir.statistics()).get(name) ?? 0) > 0;
    });
  }
  let value = 0;
  function twice() {
    value += 1;
    return Promise.all([
      client.shouldRateLimit('shop', [`none=${value}`]),
      client.shouldRateLimit('shop', [`none=${value}`]),
    ]);
  }
  await moves('ratelimit.pipeline.merged_hits', twice);
  await moves('ratelimit.localcache.overwriteCount', twice);
  await moves('ratelimit.localcache.evacuateCount', twice);
  await moves('ratelimit.localcache.expiredCount', async () => {
    await client.shouldRateLimit('shop', ['brief']);
    const second = Math.floor(Date.now() / 1000);
    await until('the second is over', () => Math.floor(Date.now() / 1000) > second);
    // The key is evicted only when space is needed.
    await twice();
    await twice();
  });
  for (const method of ['Check', 'List']) await callHealth(weir, channel, method);
  const stranger = connect(weir.ports.grpc, '127.0.0.1');
  stranger.on('error', () => undefined).end('this is not TLS');
  await once(stranger, 'close');
  await moves('ratelimit_server.http2.tls_handshake', () => Promise.resolve());
  const withoutHost = connect(weir.ports.http, '127.0.0.1');
  withoutHost.on('error', () => undefined).write('GET /healthcheck HTTP/1.1\r\n\r\n');
  await once(withoutHost.resume(), 'close');
  await moves('ratelimit_server.http.malformed', () => Promise.resolve());
}

function callHealth(weir: WeirProcess, channel: ReturnType<typeof credentials.createSsl>, method: string) {
  const client = new Client(weir.grpcAddress, channel, NAMED);
  function bytes(message: Buffer): Buffer {
    return message;
  }
  return new Promise<void>((resolve, reject) => {
    client.makeUnaryRequest(`/grpc.health.v1.Health/${method}`, bytes, bytes, Buffer.alloc(0), (error) => {
      client.close();
      if (error === null) resolve();
      else reject(error);
    });
  });
}

async function failToCount(weir: WeirProcess, channel: ReturnType<typeof credentials.createSsl>): Promise<void> {
  using client = new RateLimitClient(weir.grpcAddress, channel, NAMED);
  await weir.until('a call that the store fails', () =>
    client.shouldRateLimit('shop', ['user=a']).then(
      () => false,
      () => true,
    ),
  );
  for (const pool of ['redis_pool', 'redis_per_second_pool']) {
    await weir.until('its connections to be closed', async () => {
      const statistics = await weir.statistics();
      const [closed = 0, active] = ['local_close', 'active'].map((stat) =>
        statistics.get(`ratelimit.${pool}.cx_${stat}`),
      );
      return closed > 0 && active === 0;
    });
  }
}

/** A call whose message is not complete. */
function beginCall(weir: WeirProcess): RawClient {
  const address = { address: '127.0.0.1', family: 'IPv4', port: weir.ports.grpc };
  const fields = [
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
  ] as const;
  return connectPlain(address).send(
    hello(),
    headers(1, request(SHOULD_RATE_LIMIT, ...fields)),
    data(1, prefixed('message').subarray(0, 9)),
  );
}

/** A memory store with space for two keys, and rules from a management server: moves the remaining statistics. */
async function withXdsAndMemory(): Promise<Observations> {
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
  using client = new RateLimitClient(weir.grpcAddress);
  for (const value of ['a', 'b', 'c']) await client.shouldRateLimit('shop', [`key=${value}`]);
  const incomplete = beginCall(weir);
  await weir.until('its bytes to be held', async () =>
    Boolean((await weir.statistics()).get('ratelimit_server.grpc.held_bytes')),
  );
  await service.observe();
  incomplete.close();
  await dropLogLines(weir);
  return await service.end();
}

/** Until the service has dropped lines of its log because they are not read; then reads them. */
async function dropLogLines(weir: WeirProcess): Promise<void> {
  using client = new RateLimitClient(weir.grpcAddress);
  const descriptors = Array.from({ length: 50 }, (_, index) => `key=${index}`);
  weir.pauseOutput();
  await weir.until('log lines to be dropped', async () => {
    for (let call = 0; call < 50; call += 1) await client.shouldRateLimit('shop', descriptors);
    return ((await weir.statistics()).get('ratelimit.log.dropped') ?? 0) > 0;
  });
  weir.resumeOutput();
  await weir.line(/log lines were dropped/);
}

/** Counters in a memcached with little memory: moves its statistics. */
async function withMemcached(): Promise<Observations> {
  await using server = await MemcachedProcess.start({ args: ['-M', '-m', '2'] });
  await using proxy = await RacingProxy.start(server.address);
  await using folder = await RuleFolder.with({ 'shop.yaml': RULES });
  await using service = await ObservedService.start({
    ...folder.env,
    BACKEND_TYPE: 'memcache',
    PLAINCACHE_HOST_PORT: proxy.address,
    DECISION_LOG: 'all',
    // Accepts nothing.
    DECISION_LOG_OUTPUT: '/dev/full',
    STATS_MAX_RUNTIME_KEYS: '3',
  });
  const { weir } = service;
  await keepNames(service);
  await moveMemcached(weir, server, proxy);
  await service.observe();
  await server.crash();
  await untilMoves(weir, 'multiget.__code=error', (client) => client.shouldRateLimit('shop', ['plain']));
  return await service.end();
}

async function moveMemcached(weir: WeirProcess, server: MemcachedProcess, proxy: RacingProxy): Promise<void> {
  const day = Math.floor(Date.now() / 86_400_000) * 86_400;
  await untilMoves(weir, 'increment.__code=success', (client) => client.shouldRateLimit('shop', ['plain']));
  await server.command(`set shop_user_bad_${day} 0 1000 3\r\nbad\r\n`);
  await untilMoves(weir, 'increment.__code=error', (client) => client.shouldRateLimit('shop', ['user=bad']));
  let round = 0;
  await untilMoves(weir, 'add.__code=not_stored', (client) => {
    round += 1;
    const user = `raced-${round}`;
    proxy.onMiss = () => server.command(`add shop_user_${user}_${day} 0 1000 1\r\n1\r\n`, /STORED/);
    return client.shouldRateLimit('shop', [`user=${user}`]);
  });
  await untilMoves(weir, 'add.__code=error', (client) => {
    round += 1;
    const users = Array.from({ length: 500 }, (_, index) => `${'x'.repeat(150)}-${round}-${index}`);
    return client.shouldRateLimit(
      'shop',
      users.map((user) => `user=${user}`),
    );
  });
}

async function untilMoves(
  weir: WeirProcess,
  name: string,
  move: (client: RateLimitClient) => Promise<unknown>,
): Promise<void> {
  using client = new RateLimitClient(weir.grpcAddress);
  await weir.until(`${name} to move`, async () => {
    await move(client);
    return ((await weir.statistics()).get(`ratelimit.memcache.${name}`) ?? 0) > 0;
  });
}

let observations: readonly Observations[];
beforeAll(async () => {
  const all = await Promise.allSettled([withFilesAndRedis(), withXdsAndMemory(), withMemcached()]);
  observations = all.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
});

/** The value of a documented statistic on an output, over all scenarios; 0 when it has not moved. */
function observed({ kind, name, metric }: DocumentedStatistic, output: keyof Observations): number {
  const pattern = output === 'pulled' ? metric : name;
  const values = observations
    .flatMap((each) => [...each[output]])
    .flatMap(([each, value]) => (pattern.test(each) ? value : []));
  return kind === 'gauge' ? Math.max(0, ...values) : values.reduce((sum, value) => sum + value, 0);
}

/** Of a process with more work than time, which is simulated in grpc/server/busy-server.test.ts. */
const WAITING_CALLS = 'ratelimit_server.grpc.waiting_calls';
/** Those of several processes are tested in e2e/workers/merged.test.ts. */
const OF_ONE_PROCESS = DOCUMENTED.filter(
  ({ written }) => !written.startsWith('ratelimit.workers.') && written !== WAITING_CALLS,
);

describe('every statistic of docs/statistics.md', () => {
  it.each(OF_ONE_PROCESS.map((each) => [each.written, each] as const))('changes on every output: %s', (_, each) => {
    const [pushed, tagged, pulled] = (['pushed', 'tagged', 'pulled'] as const).map((output) => observed(each, output));
    for (const value of [pushed, tagged, pulled]) expect(value).toBeGreaterThan(0);
    // Gauges may have changed between two observations.
    if (each.kind === 'gauge') return;
    // Two of the rows share one metric.
    const ofMetric = DOCUMENTED.filter(({ metric }) => metric.source === each.metric.source);
    const known = observed(each, 'known');
    const sum = ofMetric.reduce((all, other) => all + observed(other, 'known'), 0);
    expect([pushed, tagged, pulled]).toEqual([known, known, sum]);
  });

  it.each(
    OF_ONE_PROCESS.filter(({ kind, written }) => kind === 'counter' && !written.includes('<')).map(
      (each) => [each.written, each] as const,
    ),
  )('is known before the first call: %s', (_, { name, metric }) => {
    const stats = new Set(atStart.flatMap((known) => known.stats.filter((each) => name.test(each))));
    expect(stats.size).toBe(1);
    expect(atStart.flatMap(({ page }) => page.filter((each) => metric.test(each)))).not.toEqual([]);
  });

  it('is the only one that a service reports', () => {
    const names = new Set(observations.flatMap(({ pushed, known }) => [...pushed.keys(), ...known.keys()]));
    expect([...names].filter((name) => DOCUMENTED.filter((each) => each.name.test(name)).length !== 1)).toEqual([]);
    expect(names.size).toBeGreaterThan(DOCUMENTED.length);
  });
});
