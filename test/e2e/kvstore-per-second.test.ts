import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { RedisTls } from '../support/processes/redis/redis-tls';
import { WeirProcess } from '../support/processes/weir-process';
import { roomInMinute } from '../support/waiting/window-room';

const DAY = 86_400;
/** The length of the window of each unit, in seconds. */
const UNITS = { second: 1, minute: 60, hour: 3_600, day: DAY, week: 7 * DAY, month: 30 * DAY, year: 365 * DAY };
type Unit = keyof typeof UNITS;
const NAMES = Object.keys(UNITS) as Unit[];
const LONGER = NAMES.filter((unit) => unit !== 'second');
const RULES = {
  'shop.yaml': `domain: shop\ndescriptors:\n${NAMES.map(
    (unit) => `  - {key: ${unit}, rate_limit: {unit: ${unit}, requests_per_unit: 1000000}}\n`,
  ).join('')}`,
};
const RESOURCE_EXHAUSTED = 8;
const UNAVAILABLE = 14;

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

describe('two instances with different credentials, TLS, pools and windows', () => {
  /** In milliseconds. */
  const MAIN_WINDOW = 100;
  const PER_SECOND_WINDOW = 400;
  const JITTER = 1_000_000;
  const PASSWORDS = { main: 'main-secret', perSecond: 'per-second-secret', other: 'of-the-test' };
  let tls: RedisTls;
  let main: RedisProcess;
  let perSecond: RedisProcess;
  let weir: WeirProcess;
  let client: RateLimitClient;
  beforeAll(async () => {
    tls = new RedisTls();
    const { isTls, control } = tls.server;
    [main, perSecond] = await Promise.all([
      RedisProcess.start({
        directives: ['--requirepass', PASSWORDS.main],
        control: { password: PASSWORDS.main },
      }),
      RedisProcess.start({
        directives: [
          ...tls.directives('127.0.0.1'),
          ...['--requirepass', PASSWORDS.other],
          ...['--user', 'burst', 'on', `>${PASSWORDS.perSecond}`, '~*', '&*', '+@all'],
        ],
        isTls: isTls === true,
        control: { ...control, password: PASSWORDS.other },
      }),
    ]);
    const { caFile = '', certFile = '', keyFile = '' } = tls.files({ withCertificate: true });
    weir = await WeirProcess.start({
      env: {
        ...rules.env,
        BACKEND_TYPE: 'kvstore',
        CACHE_KEY_PREFIX: 'prod:',
        EXPIRATION_JITTER_MAX_SECONDS: String(JITTER),
        KVSTORE_URL: main.address,
        KVSTORE_AUTH: PASSWORDS.main,
        KVSTORE_POOL_SIZE: '2',
        KVSTORE_PIPELINE_WINDOW: `${MAIN_WINDOW}ms`,
        KVSTORE_TLS_CACERT: caFile,
        KVSTORE_TLS_CLIENT_CERT: certFile,
        KVSTORE_TLS_CLIENT_KEY: keyFile,
        KVSTORE_PERSECOND: 'true',
        KVSTORE_PERSECOND_URL: perSecond.address,
        KVSTORE_PERSECOND_AUTH: `burst:${PASSWORDS.perSecond}`,
        KVSTORE_PERSECOND_TLS: 'true',
        KVSTORE_PERSECOND_POOL_SIZE: '3',
        KVSTORE_PERSECOND_PIPELINE_WINDOW: `${PER_SECOND_WINDOW}ms`,
      },
    });
    client = new RateLimitClient(weir.grpcAddress);
  });
  afterAll(async () => {
    client[Symbol.dispose]();
    await weir[Symbol.asyncDispose]();
    await Promise.all([main[Symbol.asyncDispose](), perSecond[Symbol.asyncDispose]()]);
    tls[Symbol.dispose]();
  });

  function windowStart(unit: Unit, milliseconds: number): number {
    const seconds = Math.floor(milliseconds / 1000);
    return seconds - (seconds % UNITS[unit]);
  }
  /** The counters in a server, by key. */
  async function stored({ control }: RedisProcess): Promise<Readonly<Record<string, string | null>>> {
    const keys = await control.keys('*');
    return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await control.get(key)] as const)));
  }

  it('hold the counters of per-second limits in the second server, and all others in the first, byte for byte', async () => {
    await roomInMinute();
    const begun = Date.now();
    const { statuses } = await client.shouldRateLimit(
      'shop',
      NAMES.map((unit) => `${unit}=x`),
      3,
    );
    const ended = Date.now();
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual(NAMES.map(() => 999_997));
    expect(await stored(main)).toEqual(
      Object.fromEntries(LONGER.map((unit) => [`prod:shop_${unit}_x_${windowStart(unit, begun)}`, '3'])),
    );
    const [[key, count] = [], ...more] = Object.entries(await stored(perSecond));
    expect([count, more]).toEqual(['3', []]);
    const second = /^prod:shop_second_x_(\d+)$/.exec(key ?? '')?.[1];
    expect(Number(second)).toBeGreaterThanOrEqual(windowStart('second', begun));
    expect(Number(second)).toBeLessThanOrEqual(windowStart('second', ended));
  });

  it('expire keys after a time that EXPIRATION_JITTER_MAX_SECONDS lengthens', async () => {
    await client.shouldRateLimit(
      'shop',
      Array.from({ length: 20 }, (_, index) => `second=${index}`),
    );
    const keys = await perSecond.control.keys('*');
    const longest = Math.max(...(await Promise.all(keys.map((key) => perSecond.control.ttl(key)))));
    expect(longest).toBeGreaterThan(JITTER / 10);
    expect(longest).toBeLessThanOrEqual(JITTER);
  });

  it('have as many connections as their pools, with the user of their credentials', async () => {
    async function connections({ control }: RedisProcess) {
      const own = await control.client('ID');
      const clients = String(await control.client('LIST'))
        .trim()
        .split('\n');
      return clients.filter((each) => !each.startsWith(`id=${own} `)).map((each) => /user=(\S+)/.exec(each)?.[1]);
    }
    await weir.until('the pools to be full', async () => {
      const statistics = await weir.statistics();
      return (
        statistics.get('ratelimit.redis_pool.cx_active') === 2 &&
        statistics.get('ratelimit.redis_per_second_pool.cx_active') === 3
      );
    });
    expect(await connections(main)).toEqual(['default', 'default']);
    expect(await connections(perSecond)).toEqual(['burst', 'burst', 'burst']);
  });

  it('have their own pipeline windows', async () => {
    async function duration(entry: string) {
      const begun = performance.now();
      await client.shouldRateLimit('shop', [entry]);
      return performance.now() - begun;
    }
    const durations = await Promise.all([duration('hour=y'), duration('second=y')]);
    // A timer may fire a millisecond early.
    expect(durations[0]).toBeGreaterThanOrEqual(MAIN_WINDOW - 1);
    expect(durations[1]).toBeGreaterThanOrEqual(PER_SECOND_WINDOW - 1);
  });
});

describe('two instances that both hang', () => {
  it('fail and hold up calls each by its own timeout and pool policy', async () => {
    await using main = await RedisProcess.start();
    await using perSecond = await RedisProcess.start();
    await using weir = await WeirProcess.start({
      env: {
        ...rules.env,
        BACKEND_TYPE: 'kvstore',
        KVSTORE_URL: main.address,
        KVSTORE_POOL_SIZE: '1',
        // Shorter than the default, which would apply to per-second limits if their own was ignored.
        KVSTORE_TIMEOUT: '9s',
        KVSTORE_POOL_ON_EMPTY_BEHAVIOR: 'WAIT',
        KVSTORE_PERSECOND: 'true',
        KVSTORE_PERSECOND_URL: perSecond.address,
        KVSTORE_PERSECOND_POOL_SIZE: '1',
        KVSTORE_PERSECOND_TIMEOUT: '3s',
        KVSTORE_PERSECOND_POOL_ON_EMPTY_BEHAVIOR: 'ERROR',
        KVSTORE_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION: '1100ms',
      },
    });
    using client = new RateLimitClient(weir.grpcAddress);
    const ended: string[] = [];
    async function call(unit: Unit) {
      const begun = performance.now();
      const outcome = await client.shouldRateLimit('shop', [`${unit}=x`]).then(
        () => 'OK',
        ({ code }: { code: number }) => code,
      );
      ended.push(`${unit}: ${outcome}`);
      return performance.now() - begun;
    }
    /** Makes a call, and returns when the service has begun to decide it. */
    async function begin(unit: Unit) {
      const name = `ratelimit.service.rate_limit.shop.${unit}.total_hits`;
      const before = (await weir.statistics()).get(name) ?? 0;
      const duration = call(unit);
      await weir.until('the call to be in flight', async () => (await weir.statistics()).get(name) === before + 1);
      return { duration };
    }
    for (const server of [main, perSecond]) server.signal('SIGSTOP');
    const calls = [];
    for (const unit of ['hour', 'hour', 'second', 'second'] as const) calls.push(await begin(unit));
    // A timer may fire a millisecond early.
    expect(await calls[3]?.duration).toBeGreaterThanOrEqual(1_099);
    expect(await calls[2]?.duration).toBeGreaterThanOrEqual(2_999);
    main.signal('SIGCONT');
    await Promise.all(calls.map(({ duration }) => duration));
    expect(ended).toEqual([`second: ${RESOURCE_EXHAUSTED}`, `second: ${UNAVAILABLE}`, 'hour: OK', 'hour: OK']);
    perSecond.signal('SIGCONT');
  });
});
