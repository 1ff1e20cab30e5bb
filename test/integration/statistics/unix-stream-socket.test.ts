import { WeirProcess } from '../../support/processes/weir-process';
import { SocketFolder, UnixReceiver } from '../../support/servers/unix-stream-receiver';
import { HITS, serviceWithAgent } from './service-with-agent';

test('a daemon on a Unix socket receives tagged packets, even if it starts late and restarts', async () => {
  await using folder = await SocketFolder.make();
  await using running = await serviceWithAgent(`unixstream://${folder.path}`, {
    STATS_FLUSH_INTERVAL: '50ms',
    EXTRA_TAGS: 'stage:prod',
  });
  const { weir, call } = running;
  await call(3);
  await weir.line(/cannot send statistics/);
  {
    await using first = await UnixReceiver.start(folder.path);
    await first.until('the hits', () => first.lines.includes(`${HITS}:3|c|#stage:prod`));
    await weir.line(/resumed sending statistics/);
  }
  await weir.until('the service to notice that the daemon has ended', () => running.changes.length === 3);
  await call(4);
  await using second = await UnixReceiver.start(folder.path);
  await second.until('the hits', () => second.sum(HITS) === 4);
  await call(2);
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
  await second.until('the last hits', () => second.sum(HITS) === 6);
  const changes = ['cannot send statistics', 'resumed sending statistics'];
  expect(running.changes).toEqual([...changes, ...changes]);
});

test('a daemon without tags receives lines at the same address', async () => {
  await using folder = await SocketFolder.make();
  await using receiver = await UnixReceiver.start(folder.path, { framing: 'lines' });
  await using _ = await WeirProcess.start({
    env: {
      FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
      PUSHSTATS_HOST: `unixstream://${folder.path}`,
      STATS_FLUSH_INTERVAL: '50ms',
    },
  });
  await receiver.until('a line', () => receiver.lines.length > 0);
  expect(receiver.lines[0]).toBe('ratelimit.statistics.runtime_keys:0|g');
});
