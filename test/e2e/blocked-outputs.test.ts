import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { NamedPipe } from '../support/processes/named-pipe';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';
import { SilentPeer } from '../support/servers/silent-peer';
import { until } from '../support/waiting/until';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};
const DROPPED = 'ratelimit.log.dropped';
/** Makes the line of a call some kilobytes long. */
const DESCRIPTORS = Array.from({ length: 50 }, (_, index) => `user=${index}`);

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

function settings(more: Readonly<Record<string, string>> = {}) {
  return { ...rules.env, LOG_LEVEL: 'debug', DISABLE_STATS: 'true', ...more };
}

/** Sends calls, each of which is answered and logged, until lines of the log are dropped. */
async function fillTheLog(weir: WeirProcess): Promise<void> {
  using client = new RateLimitClient(weir.grpcAddress);
  await weir.until('log lines to be dropped', async () => {
    for (let call = 0; call < 50; call += 1) {
      expect((await client.shouldRateLimit('shop', DESCRIPTORS)).statuses).toHaveLength(DESCRIPTORS.length);
    }
    return ((await weir.statistics()).get(DROPPED) ?? 0) > 0;
  });
}

describe('with a standard error that is not read, the service', () => {
  it('answers calls, counts the lines that it drops, and drains on SIGTERM', async () => {
    using pipe = new NamedPipe();
    await using weir = await WeirProcess.start({ env: settings(), outputs: { stderr: pipe.writer } });
    await fillTheLog(weir);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  });

  it.each(['pipe', 'socket'])('logs how many lines it has dropped when the %s is read again', async (kind) => {
    using pipe = new NamedPipe();
    const outputs = kind === 'pipe' ? { stderr: pipe.writer } : {};
    await using weir = await WeirProcess.start({ env: settings(), outputs });
    function output() {
      return kind === 'pipe' ? pipe.text : weir.output;
    }
    weir.pauseOutput();
    await fillTheLog(weir);
    const dropped = (await weir.statistics()).get(DROPPED);
    weir.resumeOutput();
    pipe.read();
    const line = await until('the line to be written', () => /.*log lines were dropped.*/.exec(output())?.[0]);
    expect(line).toMatch(new RegExp(`level=warning .* lines=${dropped}$`));
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    await until('the last line is read', () => output().includes('drained; the process exits'));
  });

  it('continues when the process that reads it is stopped', async () => {
    using pipe = new NamedPipe();
    await using weir = await WeirProcess.start({ env: settings(), outputs: { stderr: pipe.writer } });
    const reader = spawn('cat', [pipe.path], { stdio: ['ignore', 'pipe', 'ignore'] });
    try {
      pipe.closeReader();
      let isReading = false;
      reader.stdout.once('data', () => (isReading = true));
      using client = new RateLimitClient(weir.grpcAddress);
      // Until the reader has opened the pipe, writing to it fails; after that it is tried again.
      await weir.until('the log to be read', async () => {
        await client.shouldRateLimit('shop', ['user=x']);
        return isReading;
      });
      reader.kill('SIGSTOP');
      await fillTheLog(weir);
      weir.signal('SIGTERM');
      expect(await weir.exited).toBe(0);
    } finally {
      reader.kill('SIGKILL');
    }
  });

  it('continues when the process that reads it has ended', async () => {
    using pipe = new NamedPipe();
    await using weir = await WeirProcess.start({ env: settings(), outputs: { stderr: pipe.writer } });
    pipe.closeReader();
    await fillTheLog(weir);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  });
});

test('a standard error that is a file has every line of the log, up to the last', async () => {
  const file = join(rules.root, 'log');
  const descriptor = openSync(file, 'w');
  try {
    await using weir = await WeirProcess.start({ env: settings(), outputs: { stderr: descriptor } });
    using client = new RateLimitClient(weir.grpcAddress);
    for (let call = 0; call < 100; call += 1) await client.shouldRateLimit('shop', [`user=${call}`]);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  } finally {
    closeSync(descriptor);
  }
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  expect(lines.filter((line) => line.includes('msg="decision"'))).toHaveLength(100);
  expect(lines.at(-1)).toContain('drained; the process exits');
});

test('the service drains and exits while all of its outputs and its store hang', async () => {
  using stdout = new NamedPipe();
  using stderr = new NamedPipe();
  await using daemon = await SilentPeer.start({ reads: false });
  await using collector = await SilentPeer.start();
  await using redis = await RedisProcess.start();
  const [host = '', port = ''] = daemon.address.split(':');
  await using weir = await WeirProcess.start({
    env: settings({
      DISABLE_STATS: '',
      STATS_FLUSH_INTERVAL: '50ms',
      USE_PUSHSTATS: 'true',
      PUSHSTATS_HOST: host,
      PUSHSTATS_PORT: port,
      TRACING_ENABLED: 'true',
      TRACING_SAMPLING_RATE: '1',
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://${collector.address}`,
      BACKEND_TYPE: 'kvstore',
      KVSTORE_URL: redis.address,
      KVSTORE_TIMEOUT: '4s',
    }),
    outputs: { stdout: stdout.writer, stderr: stderr.writer },
  });
  await fillTheLog(weir);
  redis.signal('SIGSTOP');
  using client = new RateLimitClient(weir.grpcAddress);
  await expect(client.shouldRateLimit('shop', ['user=x'])).rejects.toMatchObject({ code: 14 });
  const inFlight = client.shouldRateLimit('shop', ['user=x']).catch((error: unknown) => error);
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
  expect(await inFlight).toMatchObject({ code: 14 });
});

test('a standard output that is not read delays neither calls nor the drain', async () => {
  using stdout = new NamedPipe();
  await using weir = await WeirProcess.start({
    env: { ...rules.env, STATS_FLUSH_INTERVAL: '10ms', USE_PUSHSTATS: 'false' },
    outputs: { stdout: stdout.writer },
  });
  using client = new RateLimitClient(weir.grpcAddress);
  await weir.until('the pipe to be full', async () => {
    await client.shouldRateLimit('shop', ['user=x']);
    return stdout.isFull;
  });
  await client.shouldRateLimit('shop', ['user=x']);
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
});
