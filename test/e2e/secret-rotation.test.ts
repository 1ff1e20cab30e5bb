import { SecretMount } from '../support/data/secret-mount';
import { Secrets } from '../support/data/secrets';
import { RateLimitClient } from '../support/clients/grpc-client';
import { observableOutput } from '../support/processes/observable-output';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';
import { until } from '../support/waiting/until';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: key, rate_limit: {unit: day, requests_per_unit: 1000}}]\n',
};
const POOL_SIZE = 2;

const secrets = new Secrets();
const [FIRST, SECOND, THIRD] = ['first', 'second', 'third'].map((name) => secrets.of(name)) as [string, string, string];

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

/** A server with a password that can be changed, and the connections of the service to it. */
class GuardedRedis implements AsyncDisposable {
  private constructor(
    readonly server: RedisProcess,
    readonly poolSize: number,
  ) {}

  /** @param poolSize the connections of the service, while none is missing */
  static async start(password: string, poolSize: number): Promise<GuardedRedis> {
    const server = await RedisProcess.start({ directives: ['--requirepass', password], control: { password } });
    return new GuardedRedis(server, poolSize);
  }

  async changePassword(password: string): Promise<void> {
    await this.server.control.config('SET', 'requirepass', password);
    // For the test's own client, when it connects again.
    this.server.control.options.password = password;
  }

  /** The connections of the service, by their ids. */
  async connections(): Promise<readonly string[]> {
    const own = String(await this.server.control.client('ID'));
    const list = String(await this.server.control.call('CLIENT', 'LIST', 'TYPE', 'normal'));
    return Array.from(list.matchAll(/^id=(\d+)/gm), ([, id]) => id!).filter((id) => id !== own);
  }

  async cut(id: string): Promise<void> {
    await this.server.control.client('KILL', 'ID', id);
  }

  /** Cuts a connection, and waits until the service has replaced it. */
  async replaceConnection(id: string): Promise<void> {
    await this.cut(id);
    await until('the connection is replaced', async () => {
      const now = await this.connections();
      return now.length === this.poolSize && !now.includes(id);
    });
  }

  /** How many attempts to authenticate have failed since the last call. */
  async rejections(): Promise<number> {
    const entries = (await this.server.control.call('ACL', 'LOG')) as readonly unknown[];
    await this.server.control.call('ACL', 'LOG', 'RESET');
    return entries.length;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server[Symbol.asyncDispose]();
  }
}

async function call(weir: WeirProcess): Promise<void> {
  using client = new RateLimitClient(weir.grpcAddress);
  await client.shouldRateLimit('shop', ['key=a']);
}

describe.each([1, 2])('with WORKERS=%i, the password of the store in a file', (workers) => {
  it('is rotated without a restart and without a failed call, and never shown', async () => {
    await using redis = await GuardedRedis.start(FIRST, workers * POOL_SIZE);
    using mount = new SecretMount({ password: `${FIRST}\n` });
    await using weir = await WeirProcess.start({
      env: {
        ...rules.env,
        WORKERS: String(workers),
        LOG_LEVEL: 'debug',
        BACKEND_TYPE: 'redis',
        REDIS_URL: redis.server.address,
        REDIS_AUTH_FILE: mount.path('password'),
        REDIS_POOL_SIZE: String(POOL_SIZE),
      },
    });
    async function allConnected(): Promise<boolean> {
      return (await redis.connections()).length === redis.poolSize;
    }
    async function callAll(): Promise<void> {
      for (let time = 0; time < workers; time += 1) await call(weir);
    }
    await weir.until('all connections', allConnected);
    await callAll();

    await redis.changePassword(SECOND);
    mount.replace({ password: `${SECOND}\n` });
    for (const id of await redis.connections()) {
      await redis.replaceConnection(id);
      await callAll();
    }
    expect(await redis.rejections()).toBe(0);
    await weir.line(/the new value in the file of a secret is used/);

    // The file is late: calls fail until it has the new password.
    await redis.changePassword(THIRD);
    for (const id of await redis.connections()) await redis.cut(id);
    await weir.line(/cannot connect to the counter store; retrying.*WRONGPASS/);
    mount.replace({ password: THIRD });
    // A connection is in the list before it has authenticated.
    await weir.until('calls to be answered', () =>
      callAll().then(
        () => true,
        () => false,
      ),
    );
    await weir.until('all connections', allConnected);

    const [connection = ''] = await redis.connections();
    mount.replace({});
    await redis.replaceConnection(connection);
    await weir.line(/cannot use the file of a secret; keeping its last value.*REDIS_AUTH_FILE=\/.*ENOENT/);
    mount.replace({ password: THIRD });
    for (const id of await redis.connections()) await redis.replaceConnection(id);
    await weir.line(/the file of a secret can be used again/);

    const shown = (await observableOutput(weir)) + (await weir.debug('/api/settings'));
    expect(shown).toContain(`{"name":"REDIS_AUTH_FILE","source":"file","value":"${mount.path('password')}"}`);
    expect(secrets.shownIn(shown)).toEqual([]);
    expect(weir.output).not.toContain('a worker has ended');
  });
});

it('a file that cannot be used is an invalid setting', async () => {
  using mount = new SecretMount({ empty: '\n', url: `redis://:${secrets.inUrl('url')}@h:1` });
  await using weir = await WeirProcess.start({
    env: {
      BACKEND_TYPE: 'redis',
      REDIS_URL_FILE: mount.path('url'),
      REDIS_URL: 'h:1',
      REDIS_AUTH_FILE: mount.path('none'),
      OPERATOR_TOKEN_FILE: mount.path('empty'),
    },
    awaitServing: false,
  });
  expect(await weir.exited).toBe(1);
  for (const problem of [
    `cannot use OPERATOR_TOKEN_FILE=${mount.path('empty')}: it is empty.`,
    'REDIS_URL and REDIS_URL_FILE are both set; remove REDIS_URL to use the file, or REDIS_URL_FILE to use the variable.',
    `cannot use REDIS_AUTH_FILE=${mount.path('none')}: it cannot be read (ENOENT).`,
  ])
    expect(weir.output).toContain(`  ${problem}`);
  expect(secrets.shownIn(weir.output)).toEqual([]);
});
