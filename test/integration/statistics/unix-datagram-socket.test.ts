import { RateLimitClient } from '../../support/grpc-client';
import { RuleFolder } from '../../support/rule-folder';
import { WeirProcess } from '../../support/weir-process';
import { UnixDatagramReceiver } from '../../sinks/statistics/unix-datagram-receiver';
import { SocketFolder } from '../../sinks/statistics/unix-receiver';

const RULES = 'domain: shop\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1000000 } }]';
const HITS = 'ratelimit.service.rate_limit.shop.k.total_hits';

const changes = (weir: WeirProcess) => weir.output.match(/(?<=statistics are )(?:not taken|taken again)/g) ?? [];

test('an agent on a datagram socket gets every hit with tags, also when it comes late, crashes and is started anew', async () => {
  await using rules = await RuleFolder.with({ 'shop.yaml': RULES });
  await using folder = await SocketFolder.make();
  await using weir = await WeirProcess.start({
    env: {
      ...rules.env,
      USE_DOG_STATSD: 'true',
      STATSD_HOST: `unix://${folder.path}`,
      STATS_FLUSH_INTERVAL: '50ms',
      EXTRA_TAGS: 'stage:prod',
    },
  });
  using client = new RateLimitClient(weir.grpcAddress);
  const logged = (count: number) => weir.until(`${count} changes`, () => changes(weir).length === count);
  await client.ask('shop', ['k'], 3);
  await logged(1);
  {
    await using first = await UnixDatagramReceiver.start(folder.path);
    await first.until('the hits', () => first.lines.includes(`${HITS}:3|c|#stage:prod`));
    await logged(2);
    await first.crash();
  }
  await logged(3);
  await client.ask('shop', ['k'], 4);
  {
    await using second = await UnixDatagramReceiver.start(folder.path);
    await second.until('the hits', () => second.sum(HITS) === 4);
    await logged(4);
  }
  await logged(5);
  await client.ask('shop', ['k'], 5);
  await using third = await UnixDatagramReceiver.start(folder.path);
  await third.until('the hits', () => third.sum(HITS) === 5);
  await logged(6);
  await client.ask('shop', ['k'], 2);
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
  await third.until('the last hits', () => third.sum(HITS) === 7);
  const change = ['not taken', 'taken again'];
  expect(changes(weir)).toEqual([...change, ...change, ...change]);
});

test('an agent that does not read holds up no decision, and gets every hit once it reads', async () => {
  await using rules = await RuleFolder.with({ 'shop.yaml': RULES });
  await using folder = await SocketFolder.make();
  await using receiver = await UnixDatagramReceiver.start(folder.path);
  await using weir = await WeirProcess.start({
    env: {
      ...rules.env,
      USE_DOG_STATSD: 'true',
      STATSD_HOST: `unix://${folder.path}`,
      STATS_FLUSH_INTERVAL: '1ms',
    },
  });
  using client = new RateLimitClient(weir.grpcAddress);
  receiver.pause();
  let hits = 0;
  await weir.until('the agent to have no room', async () => {
    await Promise.all(Array.from({ length: 50 }, () => client.ask('shop', ['k'])));
    hits += 50;
    return changes(weir).length > 0;
  });
  receiver.resume();
  await receiver.until('every hit', () => receiver.sum(HITS) === hits);
  receiver.pause();
  await client.ask('shop', ['k']);
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
});

test('a daemon that reads lines without tags gets them in datagrams too', async () => {
  await using folder = await SocketFolder.make();
  await using receiver = await UnixDatagramReceiver.start(folder.path);
  await using _ = await WeirProcess.start({
    env: {
      FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
      PUSHSTATS_HOST: `unixgram://${folder.path}`,
      STATS_FLUSH_INTERVAL: '50ms',
    },
  });
  await receiver.until('a line', () => receiver.lines.length > 0);
  expect(receiver.lines[0]).toBe('ratelimit.statistics.runtime_keys:0|g');
});

describe('where the package that sends datagrams has nothing for the machine', () => {
  const withoutPackage = { NODE_OPTIONS: `--require=${require.resolve('./without-native-package.cjs')}` };

  test('asking for them keeps the service from starting, and both ways out are named', async () => {
    await using weir = await WeirProcess.start({
      env: { ...withoutPackage, USE_DOG_STATSD: 'true', STATSD_HOST: 'unix:///run/dsd.socket' },
      awaitServing: false,
    });
    expect(await weir.exited).toBe(1);
    expect(weir.output).toContain('PUSHSTATS_HOST=unix:///run/dsd.socket cannot be used: the package node-unix-socket');
    expect(weir.output).toContain('install it with npm install --include=optional');
    expect(weir.output).toContain('let the daemon listen on a stream socket, unixstream:///path');
  });

  test('nobody else misses it', async () => {
    await using folder = await SocketFolder.make();
    await using weir = await WeirProcess.start({
      env: {
        ...withoutPackage,
        FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
        USE_DOG_STATSD: 'true',
        STATSD_HOST: `unixstream://${folder.path}`,
      },
    });
    expect(weir.isRunning).toBe(true);
  });
});
