import { join } from 'node:path';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { RedisSentinels } from '../support/processes/redis/redis-sentinels';
import { RedisTls } from '../support/processes/redis/redis-tls';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': [
    'domain: shop',
    'descriptors:',
    '  - {key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}',
    '  - {key: burst, rate_limit: {unit: second, requests_per_unit: 1000000}}',
  ].join('\n'),
};

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

/** Keys of limits per second stay longer than a test takes, almost always. */
const KEPT = { EXPIRATION_JITTER_MAX_SECONDS: '1000000' };

function start(env: Readonly<Record<string, string>>, awaitServing = true): Promise<WeirProcess> {
  return WeirProcess.start({
    env: { ...rules.env, BACKEND_TYPE: 'kvstore', KVSTORE_PERSECOND: 'true', ...KEPT, ...env },
    awaitServing,
  });
}

describe('KVSTORE_SOCKET_TYPE and KVSTORE_PERSECOND_SOCKET_TYPE', () => {
  const IPV4 = '127.0.0.1';
  const IPV6 = '127.0.0.2';
  const RESOLVER = join(__dirname, '../support/processes/resolve-store.cjs');
  let main: RedisProcess;
  let perSecond: RedisProcess;
  beforeAll(async () => {
    const directives = ['--bind', IPV4, IPV6];
    [main, perSecond] = await Promise.all([RedisProcess.start({ directives }), RedisProcess.start({ directives })]);
  });
  afterAll(() => Promise.all([main[Symbol.asyncDispose](), perSecond[Symbol.asyncDispose]()]));

  /** The addresses of the server to which the service is connected. */
  async function connectedTo({ control, port }: RedisProcess): Promise<ReadonlySet<string | undefined>> {
    const own = await control.client('ID');
    const clients = String(await control.client('LIST'))
      .trim()
      .split('\n');
    const others = clients.filter((each) => !each.startsWith(`id=${own} `));
    return new Set(others.map((each) => (/ laddr=(\S+)/.exec(each)?.[1] ?? '').replace(`:${port}`, '')));
  }

  it.each([
    ['tcp4', IPV4, 'tcp6', IPV6],
    ['tcp6', IPV6, 'tcp4', IPV4],
  ])('select the IP version of a name: %s connects to %s, %s to %s', async (type, address, typeOther, addressOther) => {
    await using weir = await start({
      NODE_OPTIONS: `--require ${RESOLVER}`,
      KVSTORE_URL: `store.test:${main.port}`,
      KVSTORE_SOCKET_TYPE: type,
      KVSTORE_PERSECOND_URL: `store.test:${perSecond.port}`,
      KVSTORE_PERSECOND_SOCKET_TYPE: typeOther,
    });
    expect((await weir.http('/healthcheck')).status).toBe(200);
    expect([await connectedTo(main), await connectedTo(perSecond)]).toEqual([
      new Set([address]),
      new Set([addressOther]),
    ]);
  });

  it('allow both IP versions with tcp, and the path of a socket with unix', async () => {
    await using weir = await start({
      NODE_OPTIONS: `--require ${RESOLVER}`,
      KVSTORE_URL: `store.test:${main.port}`,
      KVSTORE_SOCKET_TYPE: 'tcp',
      KVSTORE_PERSECOND_URL: perSecond.socket,
      KVSTORE_PERSECOND_SOCKET_TYPE: 'unix',
    });
    using client = new RateLimitClient(weir.grpcAddress);
    const { statuses } = await client.shouldRateLimit('shop', ['user=x', 'burst=x']);
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([999_999, 999_999]);
    expect(await connectedTo(perSecond)).toEqual(new Set([`${perSecond.socket}:0`]));
  });

  it.each([
    ['KVSTORE', 'unix', 'KVSTORE_SOCKET_TYPE is unix, but KVSTORE_URL is host and port'],
    [
      'KVSTORE_PERSECOND',
      'tcp6',
      'KVSTORE_PERSECOND_SOCKET_TYPE is tcp6, but KVSTORE_PERSECOND_URL is an IPv4 address',
    ],
  ])('prevent the start when they contradict the address: %s_SOCKET_TYPE=%s', async (prefix, type, message) => {
    await using weir = await start(
      {
        KVSTORE_URL: main.address,
        KVSTORE_PERSECOND_URL: perSecond.address,
        [`${prefix}_SOCKET_TYPE`]: type,
      },
      false,
    );
    expect(await weir.line(/cannot run/)).toContain(message);
    expect(await weir.exited).toBe(1);
  });
});

describe('KVSTORE_TLS and KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION', () => {
  it('let the main instance use a server whose certificate is for another name', async () => {
    using tls = new RedisTls();
    await using main = await RedisProcess.start({ ...tls.server, directives: tls.directives('elsewhere.example') });
    const { caFile = '', certFile = '', keyFile = '' } = tls.files({ withCertificate: true });
    await using weir = await start({
      KVSTORE_URL: main.address,
      KVSTORE_TLS: 'true',
      KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION: 'true',
      KVSTORE_TLS_CACERT: caFile,
      KVSTORE_TLS_CLIENT_CERT: certFile,
      KVSTORE_TLS_CLIENT_KEY: keyFile,
      KVSTORE_PERSECOND: 'false',
    });
    using client = new RateLimitClient(weir.grpcAddress);
    await client.shouldRateLimit('shop', ['user=x', 'burst=x']);
    expect(await main.control.dbsize()).toBe(2);
  });
});

describe('KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR', () => {
  it('makes the service reconnect when the server has become a replica', async () => {
    await using main = await RedisProcess.start();
    await using weir = await start({
      KVSTORE_URL: main.address,
      KVSTORE_POOL_SIZE: '1',
      KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR: 'true',
      KVSTORE_PERSECOND: 'false',
    });
    using client = new RateLimitClient(weir.grpcAddress);
    await main.control.call('REPLICAOF', '127.0.0.1', '1');
    await expect(client.shouldRateLimit('shop', ['user=x'])).rejects.toMatchObject({ code: 14 });
    await weir.until('a new connection', async () => {
      return ((await weir.statistics()).get('ratelimit.redis_pool.cx_total') ?? 0) > 1;
    });
  });
});

describe('sentinels that require a password', () => {
  const OTHER = { KVSTORE: 'KVSTORE_PERSECOND', KVSTORE_PERSECOND: 'KVSTORE' } as const;
  let sentinels: RedisSentinels;
  let single: RedisProcess;
  beforeAll(async () => {
    [sentinels, single] = await Promise.all([
      RedisSentinels.start({
        sentinelLines: ['requirepass watch', 'sentinel sentinel-pass watch'],
        sentinelOptions: { control: { password: 'watch' } },
      }),
      RedisProcess.start(),
    ]);
  });
  afterEach(() => Promise.all([sentinels.master.control.flushall(), single.control.flushall()]));
  afterAll(() => Promise.all([sentinels[Symbol.asyncDispose](), single[Symbol.asyncDispose]()]));

  it.each(['KVSTORE', 'KVSTORE_PERSECOND'] as const)('name the master to %s_TYPE=sentinel', async (prefix) => {
    await using weir = await start({
      [`${prefix}_TYPE`]: 'sentinel',
      [`${prefix}_URL`]: sentinels.url,
      [`${prefix}_SENTINEL_AUTH`]: 'watch',
      [`${OTHER[prefix]}_URL`]: single.address,
    });
    using client = new RateLimitClient(weir.grpcAddress);
    await client.shouldRateLimit('shop', ['user=x', 'burst=x']);
    const onMaster = await sentinels.master.control.keys('*');
    expect(onMaster).toEqual([expect.stringMatching(prefix === 'KVSTORE' ? /^shop_user_x_/ : /^shop_burst_x_/)]);
    expect(await single.control.dbsize()).toBe(1);
  });
});
