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
    // The servers first: there is no service if it did not start.
    await Promise.all([main[Symbol.asyncDispose](), perSecond[Symbol.asyncDispose]()]);
    tls[Symbol.dispose]();
    client[Symbol.dispose]();
    await weir[Symbol.asyncDispose]();
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

type Prefix = 'KVSTORE' | 'KVSTORE_PERSECOND';

/** Calls to a service whose two servers hang. The settings of one instance make its calls fail, those of the other let them wait. */
class HangingCalls implements AsyncDisposable {
  /** What became of the calls, in the order in which they ended. */
  readonly ended: string[] = [];
  readonly #weir: WeirProcess;
  readonly #client: RateLimitClient;

  private constructor(weir: WeirProcess) {
    this.#weir = weir;
    this.#client = new RateLimitClient(weir.grpcAddress);
  }

  static async start(servers: Readonly<Record<Prefix, RedisProcess>>, failing: Prefix, waiting: Prefix) {
    const weir = await WeirProcess.start({
      env: {
        ...rules.env,
        BACKEND_TYPE: 'kvstore',
        KVSTORE_PERSECOND: 'true',
        [`${failing}_URL`]: servers[failing].address,
        [`${failing}_POOL_SIZE`]: '1',
        [`${failing}_TIMEOUT`]: '12s',
        [`${failing}_POOL_ON_EMPTY_BEHAVIOR`]: 'ERROR',
        [`${failing}_POOL_ON_EMPTY_WAIT_DURATION`]: '4s',
        [`${waiting}_URL`]: servers[waiting].address,
        [`${waiting}_POOL_SIZE`]: '1',
        // Longer than the default, so that these calls fail if it is ignored.
        [`${waiting}_TIMEOUT`]: '40s',
        [`${waiting}_POOL_ON_EMPTY_BEHAVIOR`]: 'WAIT',
      },
    });
    return new HangingCalls(weir);
  }

  /** Makes a call, and returns its duration in milliseconds once the service has begun to decide it. */
  async begin(name: string, unit: Unit): Promise<{ readonly duration: Promise<number> }> {
    const hits = `ratelimit.service.rate_limit.shop.${unit}.total_hits`;
    const before = (await this.#weir.statistics()).get(hits) ?? 0;
    const duration = this.#call(name, unit);
    await this.#weir.until('the call to begin', async () => (await this.#weir.statistics()).get(hits) === before + 1);
    return { duration };
  }

  async #call(name: string, unit: Unit): Promise<number> {
    const begun = performance.now();
    const outcome = await this.#client.shouldRateLimit('shop', [`${unit}=x`]).then(
      () => 'OK',
      ({ code }: { code: number }) => code,
    );
    this.ended.push(`${name}: ${outcome}`);
    return performance.now() - begun;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
    await this.#weir[Symbol.asyncDispose]();
  }
}

describe('two instances that both hang', () => {
  it('fail and hold up calls each by its own timeout and pool policy', async () => {
    await using main = await RedisProcess.start();
    await using perSecond = await RedisProcess.start();
    const servers = { KVSTORE: main, KVSTORE_PERSECOND: perSecond };
    await using failsPerSecond = await HangingCalls.start(servers, 'KVSTORE_PERSECOND', 'KVSTORE');
    await using failsMain = await HangingCalls.start(servers, 'KVSTORE', 'KVSTORE_PERSECOND');
    for (const server of [main, perSecond]) server.signal('SIGSTOP');

    async function play(calls: HangingCalls, failing: Unit, waiting: Unit) {
      const waitingCalls = [await calls.begin('first', waiting), await calls.begin('second', waiting)];
      const first = await calls.begin('with the connection', failing);
      const second = await calls.begin('without a connection', failing);
      // A timer may fire a millisecond early.
      expect(await second.duration).toBeGreaterThanOrEqual(3_999);
      expect(await first.duration).toBeGreaterThanOrEqual(11_999);
      return waitingCalls.map(({ duration }) => duration);
    }
    const waiting = await Promise.all([play(failsPerSecond, 'second', 'hour'), play(failsMain, 'hour', 'second')]);
    for (const server of [main, perSecond]) server.signal('SIGCONT');
    await Promise.all(waiting.flat());
    const expected = [
      `without a connection: ${RESOURCE_EXHAUSTED}`,
      `with the connection: ${UNAVAILABLE}`,
      'first: OK',
      'second: OK',
    ];
    expect([failsPerSecond.ended, failsMain.ended]).toEqual([expected, expected]);
  });
});
