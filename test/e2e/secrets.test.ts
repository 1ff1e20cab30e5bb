import { RateLimitClient } from '../support/clients/grpc-client';
import { SecretMount } from '../support/data/secret-mount';
import { everySecret, settingRows, underGoNames } from '../support/data/secret-settings';
import { observableOutput } from '../support/processes/observable-output';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { OtlpReceiver } from '../support/servers/otlp-receiver';
import { TcpReceiver } from '../support/servers/statsd-receivers';
import { until } from '../support/waiting/until';
import { adsServer, expectAnswers, expectNoSecrets, expectNoneQuoted, secrets, storeLine } from './no-secrets';
import { Shop } from './shop';

it('the settings of these tests include a secret in each one that the settings table marks as secret', () => {
  const environment = everySecret(secrets, { store: 's:1', perSecond: 'p:1', xds: 'x:1', otlp: 'o:1' });
  const rows = settingRows.filter(({ type }) => type.secret !== undefined);
  expect(rows.length).toBeGreaterThan(5);
  for (const { name, alias = name } of rows) {
    expect(underGoNames(environment)[alias]).toBe(environment[name]);
    expect(secrets.shownIn(environment[name] ?? '')).toContain(name);
  }
});

it('the output contains no secret during normal operation and after the passwords have changed', async () => {
  const [main, perSecond] = [secrets.of('KVSTORE_AUTH'), secrets.of('KVSTORE_PERSECOND_AUTH')];
  await using xds = await adsServer();
  await using statsd = await TcpReceiver.start();
  await using otlp = await OtlpReceiver.http();
  await using redis = await RedisProcess.start({
    directives: ['--user', 'ann', 'on', `>${main}`, '~*', '&*', '+@all', '--requirepass', perSecond],
    control: { password: perSecond },
  });
  const { address: store } = redis;
  const servers = { store, perSecond: store, xds: xds.address, otlp: new URL(otlp.url).host };
  const push = { USE_PUSHSTATS: 'true', PUSHSTATS_PORT: String(statsd.port), STATS_FLUSH_INTERVAL: '50ms' };
  const env = { ...everySecret(secrets, servers), ...push, PUSHSTATS_HOST: '127.0.0.1' };
  let reached = 0;
  await expectNoSecrets(env, async (weir) => {
    await expectAnswers(weir);
    expect(weir.output).toMatch(new RegExp(`kvstore \\(main: single ${store}`));
    await weir.until('spans and statistics to arrive', () => otlp.spans.length > 0 && statsd.lines.length > 0);
    // Both services use the same server, so both must get here before the passwords change.
    reached += 1;
    await weir.until('both services to get here', () => reached === 2);
    await redis.control.call('ACL', 'SETUSER', 'ann', 'resetpass', '>another');
    await redis.control.call('CONFIG', 'SET', 'requirepass', 'another');
    await redis.control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    for (const name of ['main', 'per second']) await storeLine(weir, name, 'WRONGPASS');
  });
  expect(secrets.shownIn(statsd.lines.join('\n'))).toEqual([]);
});

it('the output contains no secret when stores quote the requests', () => expectNoneQuoted('single'));

/** The connections of the service. */
const CONNECTIONS = 4;
const [FIRST, SECOND, THIRD] = ['first', 'second', 'third'].map((name) => secrets.of(name)) as [string, string, string];

/** The connections of the service to a server with a password that can be changed. */
class GuardedRedis {
  constructor(readonly server: RedisProcess) {}

  async changePassword(password: string): Promise<void> {
    await this.server.control.config('SET', 'requirepass', password);
    // For the test's own client, when it connects again.
    this.server.control.options.password = password;
  }

  /**
   * The connections of the service that have authenticated, by their ids. A connection is in the list before it has.
   */
  async connections(): Promise<readonly string[]> {
    const own = String(await this.server.control.client('ID'));
    const list = String(await this.server.control.call('CLIENT', 'LIST', 'TYPE', 'normal'));
    return Array.from(list.matchAll(/^id=(\d+) .* cmd=(?!NULL|auth)/gm), ([, id]) => id!).filter((id) => id !== own);
  }

  /** Waits until all connections are there, without some old ones. */
  async allConnected(without: readonly string[] = []): Promise<void> {
    await until('all connections are there', async () => {
      const now = await this.connections();
      return now.length === CONNECTIONS && !now.some((id) => without.includes(id));
    });
  }

  /** Cuts connections, and waits until the service has replaced them. */
  async replace(...ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.server.control.client('KILL', 'ID', id);
    await this.allConnected(ids);
  }
}

it('the password of the store is rotated in its file without a restart and a failed call, by all workers', async () => {
  await using server = await RedisProcess.start({ directives: ['--requirepass', FIRST], control: { password: FIRST } });
  const redis = new GuardedRedis(server);
  using mount = new SecretMount({ password: `${FIRST}\n` });
  const file = { REDIS_URL: server.address, REDIS_AUTH_FILE: mount.path('password'), REDIS_POOL_SIZE: '2' };
  await using shop = await Shop.start({ env: { ...file, BACKEND_TYPE: 'redis', WORKERS: '2', LOG_LEVEL: 'debug' } });
  const { weir } = shop;
  async function callBoth(): Promise<void> {
    for (let worker = 0; worker < 2; worker += 1) {
      using client = new RateLimitClient(weir.grpcAddress);
      await client.shouldRateLimit('shop', ['user=x']);
    }
  }
  await redis.allConnected();
  await redis.changePassword(SECOND);
  mount.replace({ password: `${SECOND}\n` });
  for (const id of await redis.connections()) {
    await redis.replace(id);
    await callBoth();
  }
  // No attempt to authenticate has failed.
  expect(await server.control.call('ACL', 'LOG')).toEqual([]);
  await weir.line(/the new value in the file of a secret is used/);

  // The file is late: calls fail until it has the new password.
  await redis.changePassword(THIRD);
  for (const id of await redis.connections()) await server.control.client('KILL', 'ID', id);
  await weir.line(/cannot connect to the counter store; retrying.*WRONGPASS/);
  mount.replace({ password: THIRD });
  await weir.until('calls to be answered', () =>
    callBoth().then(
      () => true,
      () => false,
    ),
  );
  await redis.allConnected();

  const [connection = ''] = await redis.connections();
  mount.replace({});
  await redis.replace(connection);
  await weir.line(/cannot use the file of a secret; keeping its last value.*REDIS_AUTH_FILE=\/.*ENOENT/);
  mount.replace({ password: THIRD });
  await redis.replace(...(await redis.connections()));
  await weir.line(/the file of a secret can be used again/);

  const shown = (await observableOutput(weir)) + (await weir.debug('/api/settings'));
  expect(shown).toContain(`{"name":"REDIS_AUTH_FILE","source":"file","value":"${mount.path('password')}",`);
  expect(secrets.shownIn(shown)).toEqual([]);
  expect(weir.output).not.toContain('a worker has ended');
});
