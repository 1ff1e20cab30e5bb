import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceError } from '@grpc/grpc-js';
import { readMarkdown } from '../docs/markdown-files';
import { CONNECTION_LOST } from '../support/clients/grpc-client';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';
import { LIMIT, Load, Shop } from './shop';
import { DRAIN, expectAnsweredByDrain, expectLosslessDrain, expectServedDuringDelay } from './shutdown';

const RUN_IN_PROGRAM = join(__dirname, '../support/processes/run-in-program.cjs');

const IGNORED = ['SIGUSR1', 'SIGUSR2', 'SIGALRM', 'SIGVTALRM', 'SIGPROF', 'SIGIO', 'SIGSTKFLT'] as const;

describe('the service on a termination signal', () => {
  it('answers every call that it has counted, rejects the others as unavailable, and exits with 0', () =>
    expectLosslessDrain('SIGTERM'));

  it('is unhealthy while calls are in flight, and exits immediately with 1 on a second signal a second later', async () => {
    await using shop = await Shop.start({ env: { KVSTORE_PIPELINE_WINDOW: '60s' } });
    const { weir } = shop;
    const lost = shop.hit().catch((error: unknown) => error);
    await shop.called();
    weir.signal('SIGTERM');
    const health = await weir.until('the health to turn', async () => {
      const response = await weir.http('/healthcheck');
      return response.status === 500 && response.text();
    });
    expect(health).toContain('termination');
    expect(await weir.debugHealth()).toEqual([500, health]);
    await weir.signalAgain('SIGINT');
    expect(await weir.exited).toBe(1);
    expect(CONNECTION_LOST).toContain(((await lost) as ServiceError).code);
    expect(weir.output).toContain('drain aborted by second signal');
  });

  it('takes further signals within a second for the same one', async () => {
    await using shop = await Shop.start({ env: { KVSTORE_PIPELINE_WINDOW: '2s' } });
    const { weir } = shop;
    const inFlight = shop.hit();
    await shop.called();
    for (const signal of DRAIN) weir.signal(signal);
    await weir.line(/msg="draining: /);
    expect(await inFlight).toBe(LIMIT - 1);
    expect(await weir.exited).toBe(0);
  });

  it.each(['1', '2'])(
    'closes every listener and ends the program that has called run() on a second signal, with WORKERS=%s',
    async (WORKERS) => {
      await using redis = await RedisProcess.start();
      await using shop = await Shop.start({
        env: { WORKERS, BACKEND_TYPE: 'redis', REDIS_URL: redis.address, SHUTDOWN_DELAY: '1h' },
        program: RUN_IN_PROGRAM,
      });
      const { weir } = shop;
      await shop.hit();
      redis.signal('SIGSTOP');
      const lost = shop.hit().catch((error: unknown) => error);
      weir.signal('SIGTERM');
      await weir.line(/msg="unhealthy from now on/);
      await weir.signalAgain('SIGTERM');
      expect(await weir.exited).toBe(1);
      expect(await lost).toBeInstanceOf(Error);
      expect(weir.output).toContain('run() has returned 1; open: none');
    },
  );

  it('turns unready at once, serves every call and reloads rules until SHUTDOWN_DELAY is over', () =>
    expectServedDuringDelay('1'));

  it.each(['1', '2'])('ends SHUTDOWN_DELAY when its last caller has gone, with WORKERS=%s', async (WORKERS) => {
    await using shop = await Shop.start({ env: { SHUTDOWN_DELAY: '1h', WORKERS } });
    await shop.hit();
    shop.weir.signal('SIGTERM');
    await shop.weir.line(/msg="unhealthy from now on/);
    await shop.hit();
    shop.client[Symbol.dispose]();
    expect(await shop.weir.exited).toBe(0);
  });

  it('does not wait for SHUTDOWN_DELAY while it has no rules and no listeners for decisions', async () => {
    const env = { RUNTIME_SUBDIRECTORY: 'missing', SHUTDOWN_DELAY: '1h' };
    await using shop = await Shop.start({ env, awaitServing: false });
    await shop.weir.line(/no active rules; not serving/);
    await shop.drain();
    expect(shop.weir.output).not.toContain('unhealthy from now on');
  });
});

it('the service answers what a slow store answers during the drain', () => expectAnsweredByDrain('1'));

test('the service ignores signals that mean nothing to it, with a line for each, and serves', async () => {
  await using shop = await Shop.start({ env: { LOG_LEVEL: '' } });
  const { weir } = shop;
  await using load = new Load(() => shop.hit(), 16);
  for (const signal of IGNORED) {
    weir.signal(signal);
    await weir.line(new RegExp(`level=warning msg="signal ignored: .*" signal=${signal}$`));
  }
  await load.more(100, weir);
  expect(load.failures).toEqual([]);
  expect(weir.output).not.toContain('Debugger');
  await load[Symbol.asyncDispose]();
  await shop.drain();
});

it('leaves SIGPROF to V8, which samples the process with it, when Node was started with --cpu-prof', async () => {
  using folder = new TemporaryFolder();
  await using weir = await WeirProcess.start({
    env: { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' },
    node: [process.execPath, '--cpu-prof', `--cpu-prof-dir=${folder.base}`],
  });
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
  expect(weir.output).not.toContain('signal ignored');
  const [file = ''] = readdirSync(folder.base);
  const { samples } = JSON.parse(readFileSync(folder.at(file), 'utf8')) as {
    readonly samples: readonly number[];
  };
  expect(new Set(samples).size).toBeGreaterThan(10);
});

test('docs/operations.md lists the signals with what the service does', () => {
  const rows = readMarkdown('docs/operations.md').split('\n');
  expect(rows).toContain(
    `| ${DRAIN.join(', ')} | drains; another one, more than a second after the first, ends the process |`,
  );
  expect(rows).toContain(
    `| ${IGNORED.join(', ')} | ignores it, with a line in the log; SIGPROF samples a process that Node's \`--cpu-prof\` started |`,
  );
});
