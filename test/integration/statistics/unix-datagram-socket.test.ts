import { WeirProcess } from '../../support/processes/weir-process';
import { UnixDatagramReceiver } from '../../support/servers/unix-datagram-receiver';
import { SocketFolder } from '../../support/servers/unix-stream-receiver';
import { HITS, serviceWithAgent } from './service-with-agent';

test('an agent on a datagram socket receives every hit with tags, even if it starts late, crashes and restarts', async () => {
  await using folder = await SocketFolder.make();
  await using running = await serviceWithAgent(`unix://${folder.path}`, {
    STATS_FLUSH_INTERVAL: '50ms',
    EXTRA_TAGS: 'stage:prod',
  });
  const { weir, call } = running;
  function logged(count: number) {
    return weir.until(`${count} changes`, () => running.changes.length === count);
  }
  await call(3);
  await logged(1);
  {
    await using first = await UnixDatagramReceiver.start(folder.path);
    await first.until('the hits', () => first.lines.includes(`${HITS}:3|c|#stage:prod`));
    await logged(2);
    await first.crash();
  }
  await logged(3);
  await call(4);
  {
    await using second = await UnixDatagramReceiver.start(folder.path);
    await second.until('the hits', () => second.sum(HITS) === 4);
    await logged(4);
  }
  await logged(5);
  await call(5);
  await using third = await UnixDatagramReceiver.start(folder.path);
  await third.until('the hits', () => third.sum(HITS) === 5);
  await logged(6);
  await call(2);
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
  await third.until('the last hits', () => third.sum(HITS) === 7);
  const changes = ['cannot send statistics', 'resumed sending statistics'];
  expect(running.changes).toEqual([...changes, ...changes, ...changes]);
});

test('an agent that does not read delays no decision, and receives every hit once it reads', async () => {
  await using folder = await SocketFolder.make();
  await using receiver = await UnixDatagramReceiver.start(folder.path);
  await using running = await serviceWithAgent(`unix://${folder.path}`, { STATS_FLUSH_INTERVAL: '1ms' });
  const { weir, call } = running;
  receiver.pause();
  let hits = 0;
  await weir.until('the agent to have no room', async () => {
    await Promise.all(Array.from({ length: 50 }, () => call()));
    hits += 50;
    return running.changes.length > 0;
  });
  receiver.resume();
  await receiver.until('every hit', () => receiver.sum(HITS) === hits);
  receiver.pause();
  await call();
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
});

test('a daemon without tags receives lines in datagrams too', async () => {
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

describe('without the native package for datagram sockets', () => {
  const withoutPackage = { NODE_OPTIONS: `--require=${require.resolve('./without-native-package.cjs')}` };

  test('the service does not start with a datagram socket, and names both remedies', async () => {
    await using weir = await WeirProcess.start({
      env: { ...withoutPackage, USE_DOG_STATSD: 'true', STATSD_HOST: 'unix:///run/dsd.socket' },
      awaitServing: false,
    });
    expect(await weir.exited).toBe(1);
    expect(weir.output).toContain('STATSD_HOST=unix:///run/dsd.socket cannot be used: the package node-unix-socket');
    expect(weir.output).toContain('install it with npm install --include=optional');
    expect(weir.output).toContain('let the daemon listen on a stream socket, unixstream:///path');
    expect(weir.output.match(/Cannot find module/g)).toHaveLength(1);
    expect(weir.output).not.toContain('Require stack');
  });

  test('the service starts with a stream socket', async () => {
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
