import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type ServiceError, credentials } from '@grpc/grpc-js';
import { RateLimitClient } from '../support/clients/grpc-client';
import { selfSigned } from '../support/data/certificates';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { Load, SHOP, Shop } from './shop';
import { DRAIN, expectAnsweredByDrain, expectLosslessDrain, expectServedDuringDelay } from './shutdown';
import { TemporaryFolder } from '../support/data/temporary-folder';

const PROCESSES = join(__dirname, '../support/processes');
const DAY = 86_400_000;

const own = new TemporaryFolder();
const tls = {
  GRPC_SERVER_USE_TLS: 'true',
  GRPC_SERVER_TLS_CERT: own.at('crt'),
  GRPC_SERVER_TLS_KEY: own.at('key'),
};
beforeAll(() => {
  const { cert, key } = selfSigned(new Date(Date.now() - DAY), new Date(Date.now() + DAY));
  own.write('crt', cert);
  own.write('key', key);
});
afterAll(() => own[Symbol.dispose]());

/** The environment of a process that sends itself signals at a step. */
function signalled(step: string): Readonly<Record<string, string>> {
  return { SIGNAL_AT_STEP: step, NODE_OPTIONS: `--require=${PROCESSES}/signal-at-step.cjs` };
}

it.each(DRAIN.slice(1))('the service answers every call that it has counted on %s', async (signal) => {
  await expectLosslessDrain(signal);
});

it('two workers are unready at once, and serve every call and reload rules until SHUTDOWN_DELAY is over', () =>
  expectServedDuringDelay('2'));

it('two workers answer what a slow store answers during the drain', () => expectAnsweredByDrain('2'));

it.each(['1', '2'])(
  'the drain ends in time after the default of SHUTDOWN_DELAY although the store hangs, with WORKERS=%s',
  async (WORKERS) => {
    await using redis = await RedisProcess.start();
    const env = { WORKERS, BACKEND_TYPE: 'redis', REDIS_URL: redis.address, SHUTDOWN_DELAY: '' };
    await using shop = await Shop.start({ env });
    await shop.hit();
    redis.signal('SIGSTOP');
    const failed = shop.hit().catch((error: unknown) => error);
    await shop.drain();
    // What weir answers, and not a lost connection.
    expect(((await failed) as ServiceError).details).toBe('the counter store did not answer in time');
    expect(shop.weir.output).not.toContain('drain aborted');
  },
);

it.each(['1', '2'])(
  'calls in flight are answered while rules change all the time, with WORKERS=%s',
  async (WORKERS) => {
    await using shop = await Shop.start({ env: { KVSTORE_PIPELINE_WINDOW: '4s', WORKERS } });
    const inFlight = shop.hit();
    await shop.called();
    let changes = 0;
    await using editing = new Load(async () => {
      changes += 1;
      await shop.rules.write('shop.yaml', `${SHOP}# version ${changes}\n`);
      if (changes === 5) shop.weir.signal('SIGTERM');
      await pause(20);
    }, 1);
    expect(await inFlight).toBe(999_999);
    expect(await shop.weir.exited).toBe(0);
    await editing[Symbol.asyncDispose]();
    expect([changes > 5, editing.failures]).toEqual([true, []]);
    expect(shop.weir.output).not.toMatch(/level=(error|fatal)/);
  },
);

describe('the service, on a signal', () => {
  // While it reads certificates, its streams have no subscribers yet.
  it.each([
    ['while its program is loaded', '1', 'SIGTERM', signalled('load SIGTERM')],
    ['while its program is loaded', '1', 'SIGINT', signalled('load SIGINT')],
    ['before it reads certificates', '2', 'SIGTERM', { ...tls, ...signalled('load SIGTERM') }],
    ['while a listener opens', '1', 'SIGTERM', { NODE_OPTIONS: `--require=${PROCESSES}/signal-while-opening.cjs` }],
    ['while a listener opens', '2', 'SIGTERM', { NODE_OPTIONS: `--require=${PROCESSES}/signal-while-opening.cjs` }],
  ])('%s, with WORKERS=%s: %s, drains as soon as it is put together', async (_when, WORKERS, signal, more) => {
    await using shop = await Shop.start({ env: { ...more, WORKERS }, awaitServing: false });
    expect(await shop.weir.exited).toBe(0);
    expect(shop.weir.output).toMatch(new RegExp(`draining: .* signal=${signal}`));
    expect(shop.weir.output).not.toMatch(/level=(error|fatal)/);
    if ('SIGNAL_AT_STEP' in more) expect(shop.weir.output).not.toContain('msg="serving"');
  });

  it('takes a second one at once, before it serves, for the same one', async () => {
    await using shop = await Shop.start({ env: signalled('load SIGTERM SIGINT'), awaitServing: false });
    expect(await shop.weir.exited).toBe(0);
    expect(shop.weir.output).not.toContain('msg="serving"');
  });

  it.each(['1', '2'])('that arrives with the last lines, exits with 0, with WORKERS=%s', async (WORKERS) => {
    await using shop = await Shop.start({ env: { ...signalled('flush SIGTERM'), WORKERS } });
    await shop.drain();
    expect(shop.weir.output).toContain('drained; the process exits');
  });
});

test('the answer to a command line is ended by a signal, as every program', () => {
  const env = { PATH: process.env['PATH'], ...signalled('load SIGTERM') };
  expect(spawnSync(process.execPath, [join(__dirname, '../../dist/main.js'), '--help'], { env }).signal).toBe(
    'SIGTERM',
  );
});

test('the service closes the inspector that Node opens for a SIGUSR1 before the service has started', async () => {
  const NODE_OPTIONS = `--inspect-port=0 --require ${PROCESSES}/signal-at-start.cjs`;
  await using shop = await Shop.start({ env: { NODE_OPTIONS } });
  const [, port] = /ws:\/\/127\.0\.0\.1:(\d+)/.exec(await shop.weir.line(/Debugger listening on/)) ?? [];
  expect(port).toBeDefined();
  const inspector = `http://127.0.0.1:${port}/json`;
  await shop.weir.until('the inspector to be closed', () =>
    fetch(inspector).then(
      () => false,
      () => true,
    ),
  );
});

it.each([
  'dist/main.js --help',
  ...['admin', 'check', 'client'].map((name) => `dist/cli/weir-${name}.js -h`),
  'packages/versioning/dist/bump/weir-bump.js -h',
])('a program whose output is closed by its reader ends without an error: %s', (program) => {
  const command = `{ node ${program}; echo "code $?" >&3; } 3>&2 2>&1 | true`;
  // Several times, because the reader may be slower.
  const results = Array.from({ length: 5 }, () => spawnSync('sh', ['-c', command], { encoding: 'utf8' }).stderr);
  expect(new Set(results)).toEqual(new Set(['code 0\n']));
});

const ROUND_ROBIN = {
  'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
  // Reconnects soon after an instance is back.
  'grpc.initial_reconnect_backoff_ms': 50,
  'grpc.max_reconnect_backoff_ms': 200,
};

it('two instances that are restarted one after the other under load fail no call of a client of both', async () => {
  await using one = await Shop.start();
  await using other = await Shop.start();
  const addresses = `ipv4:${one.weir.grpcAddress},${other.weir.grpcAddress}`;
  using client = new RateLimitClient(addresses, credentials.createInsecure(), ROUND_ROBIN);
  await using load = new Load(() => client.shouldRateLimit('shop', ['user=x']), 32);
  /** Ends an instance, starts another one on the same port, and waits until it has received calls. */
  async function restart(shop: Shop): Promise<Shop> {
    await shop.drain();
    const next = await Shop.start({ env: { GRPC_PORT: String(shop.weir.ports.grpc) } });
    await next.called();
    return next;
  }
  await using nextOne = await restart(one);
  await using nextOther = await restart(other);
  expect([nextOne, nextOther].map(({ weir }) => weir.isRunning)).toEqual([true, true]);
  await load[Symbol.asyncDispose]();
  expect(load.failures).toEqual([]);
  expect(load.answered).toBeGreaterThan(100);
});
