import { join } from 'node:path';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { peakMemory } from '../support/processes/process-memory';
import { RedisCluster } from '../support/processes/redis/redis-cluster';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { RedisSentinels } from '../support/processes/redis/redis-sentinels';
import { WeirProcess } from '../support/processes/weir-process';

const MIB = 2 ** 20;
const LIMIT = 300;
const RULES = `domain: shop
descriptors:
  - {key: limited, rate_limit: {unit: day, requests_per_unit: ${LIMIT}}}
  - {key: user, rate_limit: {unit: year, requests_per_unit: 1000}}
  - {key: path, rate_limit: {unit: second, requests_per_unit: 1000}}
  - {key: agent, value_to_metric: true, rate_limit: {unit: day, requests_per_unit: 1}}
`;
const RESOURCE_EXHAUSTED = 8;

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with({ 'shop.yaml': RULES });
});
afterAll(() => rules[Symbol.asyncDispose]());

function start(env: Readonly<Record<string, string>>, awaitServing = true): Promise<WeirProcess> {
  return WeirProcess.start({ env: { ...rules.env, BACKEND_TYPE: 'kvstore', ...env }, awaitServing });
}

/** How many calls are allowed when 50 clients call two services on one store concurrently. */
async function allowedCalls(env: Readonly<Record<string, string>>): Promise<number> {
  await using one = await start(env);
  await using other = await start(env);
  const clients = Array.from({ length: 50 }, (_, at) => new RateLimitClient((at % 2 === 0 ? one : other).grpcAddress));
  try {
    const calls = clients.flatMap((client) =>
      Array.from({ length: 20 }, () => client.shouldRateLimit('shop', ['limited=a'])),
    );
    return (await Promise.all(calls)).filter(({ overallCode }) => overallCode === Code.OK).length;
  } finally {
    for (const client of clients) client[Symbol.dispose]();
  }
}

describe('two services on one store', () => {
  it('allow exactly the limit on a master that sentinels monitor', async () => {
    await using sentinels = await RedisSentinels.start();
    expect(await allowedCalls({ KVSTORE_URL: sentinels.url, KVSTORE_TYPE: 'sentinel' })).toBe(LIMIT);
  });

  it('allow exactly the limit on a cluster, for calls with one descriptor', async () => {
    await using cluster = await RedisCluster.start();
    expect(await allowedCalls({ KVSTORE_URL: cluster.url, KVSTORE_TYPE: 'cluster' })).toBe(LIMIT);
  });
});

describe('a service without its store', () => {
  it('exits with 1 and the reason after KVSTORE_STARTUP_MAX_ELAPSED_TIME, and with 0 at a signal before', async () => {
    await using server = await RedisProcess.start();
    await server.crash();
    const env = { KVSTORE_URL: server.address, KVSTORE_STARTUP_INITIAL_INTERVAL: '20ms' };
    await using failing = await start({ ...env, KVSTORE_STARTUP_MAX_ELAPSED_TIME: '200ms' }, false);
    expect(await failing.exited).toBe(1);
    expect(failing.output).toMatch(
      /the service cannot run: cannot connect to the counter store within 200 ms: .*refused/i,
    );
    await using waiting = await start(env, false);
    await waiting.line(/cannot connect to the counter store/);
    waiting.signal('SIGTERM');
    expect(await waiting.exited).toBe(0);
  });

  it('fails calls with RESOURCE_EXHAUSTED while the only connection is busy, and counts none of them', async () => {
    await using server = await RedisProcess.start();
    await using weir = await start({
      KVSTORE_URL: server.address,
      KVSTORE_POOL_SIZE: '1',
      KVSTORE_POOL_ON_EMPTY_BEHAVIOR: 'ERROR',
      KVSTORE_POOL_ON_EMPTY_WAIT_DURATION: '20ms',
      KVSTORE_TIMEOUT: '20s',
    });
    using client = new RateLimitClient(weir.grpcAddress);
    server.signal('SIGSTOP');
    const first = client.shouldRateLimit('shop', ['user=x']);
    await weir.until('the first call to be in flight', async () =>
      (await weir.statistics()).has('ratelimit.service.rate_limit.shop.user.total_hits'),
    );
    await expect(client.shouldRateLimit('shop', ['user=x'])).rejects.toMatchObject({
      code: RESOURCE_EXHAUSTED,
      details: 'every connection to the counter store was busy',
    });
    server.signal('SIGCONT');
    expect((await first).statuses[0]?.limitRemaining).toBe(999);
    expect((await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining).toBe(998);
  });
});

describe('KVSTORE_SOCKET_TYPE and KVSTORE_PERSECOND_SOCKET_TYPE', () => {
  const [IPV4, IPV6] = ['127.0.0.1', '127.0.0.2'] as const;
  const RESOLVER = join(__dirname, '../support/processes/resolve-store.cjs');
  let main: RedisProcess;
  let perSecond: RedisProcess;
  beforeAll(async () => {
    const directives = ['--bind', IPV4, IPV6];
    [main, perSecond] = await Promise.all([RedisProcess.start({ directives }), RedisProcess.start({ directives })]);
  });
  afterAll(() => Promise.all([main[Symbol.asyncDispose](), perSecond[Symbol.asyncDispose]()]));

  /** The addresses of the server to which the service is connected. */
  async function connectedTo({ control, port }: RedisProcess): Promise<readonly string[]> {
    const own = await control.client('ID');
    const clients = String(await control.client('LIST'))
      .trim()
      .split('\n');
    const others = clients.filter((each) => !each.startsWith(`id=${own} `));
    return [...new Set(others.map((each) => (/ laddr=(\S+)/.exec(each)?.[1] ?? '').replace(`:${port}`, '')))];
  }

  it.each([
    ['tcp4', IPV4, 'tcp6', IPV6],
    ['tcp6', IPV6, 'tcp4', IPV4],
  ])('select the IP version of a name: %s connects to %s, %s to %s', async (type, address, typeOther, addressOther) => {
    await using weir = await start({
      NODE_OPTIONS: `--require ${RESOLVER}`,
      KVSTORE_URL: `store.test:${main.port}`,
      KVSTORE_SOCKET_TYPE: type,
      KVSTORE_PERSECOND: 'true',
      KVSTORE_PERSECOND_URL: `store.test:${perSecond.port}`,
      KVSTORE_PERSECOND_SOCKET_TYPE: typeOther,
    });
    expect((await weir.http('/healthcheck')).status).toBe(200);
    expect([await connectedTo(main), await connectedTo(perSecond)]).toEqual([[address], [addressOther]]);
  });
});

function descriptorOf(key: string, value: string) {
  return { entries: [{ key, value }], limit: undefined, hitsAddend: undefined, isNegativeHits: false };
}

/** Calls once for each number below `count`, four at a time. */
async function flood(count: number, call: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  async function caller(): Promise<void> {
    for (let index = next; index < count; index = next) {
      next += 1;
      await call(index);
    }
  }
  await Promise.all(Array.from({ length: 4 }, caller));
}

describe('a service with a heap of 128 MiB and counters in memory', () => {
  let weir: WeirProcess;
  let client: RateLimitClient;
  beforeAll(async () => {
    weir = await start({
      ...{ BACKEND_TYPE: 'memory', MEMORY_MAX_BYTES: String(2 * MIB), LOCAL_CACHE_SIZE_IN_BYTES: String(MIB) },
      ...{ NODE_OPTIONS: '--max-old-space-size=128', LOG_LEVEL: 'debug' },
    });
    client = new RateLimitClient(weir.grpcAddress);
  });
  afterAll(async () => {
    client?.[Symbol.dispose]();
    await weir?.[Symbol.asyncDispose]();
  });

  async function remaining(): Promise<number | undefined> {
    return (await client.shouldRateLimit('shop', ['user=regular'])).statuses[0]?.limitRemaining;
  }
  /** Of 250 KB. */
  function longText(index: number): string {
    return `${'x'.repeat(250_000)}${index}`;
  }

  it('survives calls whose values are new and take 250 KB each, and counts its other callers exactly', async () => {
    expect(await remaining()).toBe(999);
    await flood(800, (index) => client.shouldRateLimit('shop', [descriptorOf('user', longText(index))], 2000));
    await flood(100, (index) => client.shouldRateLimit('shop', [descriptorOf('agent', longText(index))], 2));
    expect(await remaining()).toBe(998);
    const statistics = await weir.statistics();
    expect(statistics.get('ratelimit.memory.keys')).toBe(901);
    expect(statistics.get('ratelimit.memory.bytes')).toBeLessThan(901 * 200);
    expect(statistics.get('ratelimit.memory.evicted_keys')).toBe(0);
    expect(statistics.get('ratelimit.localcache.entryCount')).toBe(900);
    expect(peakMemory(weir.pid!)).toBeLessThan(300);
    expect(weir.output.length).toBeLessThan(MIB);
  });

  it('keeps no body in memory because a part of it is in a table', async () => {
    const before = (await weir.statistics()).get('ratelimit.statistics.runtime_keys')!;
    const padding = ' '.repeat(900_000);
    await flood(200, async (index) => {
      const agent = { entries: [{ key: 'agent', value: `agent number ${index}` }] };
      const body = padding + JSON.stringify({ domain: 'shop', descriptors: [agent] });
      expect((await weir.http('/json', { method: 'POST', body })).status).toBe(200);
    });
    expect((await weir.statistics()).get('ratelimit.statistics.runtime_keys')).toBe(before + 200);
    expect(peakMemory(weir.pid!)).toBeLessThan(300);
  });

  it('evicts the keys that expire soonest beyond MEMORY_MAX_BYTES', async () => {
    await flood(40, (index) =>
      client.shouldRateLimit(
        'shop',
        Array.from({ length: 1000 }, (_, at) => descriptorOf('path', `/${index}/${at}`)),
      ),
    );
    expect(await remaining()).toBe(997);
    expect((await weir.statistics()).get('ratelimit.memory.bytes')).toBeLessThanOrEqual(2 * MIB);
  });
});
