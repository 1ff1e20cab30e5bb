import { UnixStreamSender } from '../../../../src/sinks/statistics/senders/connection-sender';
import { heapAfterCollection } from '../../../support/processes/collect-garbage';
import { SocketFolder, UnixReceiver } from '../../../support/servers/unix-stream-receiver';
import { until } from '../../../support/waiting/until';
import { taggedOutput } from './tagged-output';

describe('UnixStreamSender', () => {
  let folder: SocketFolder;
  beforeEach(async () => {
    folder = await SocketFolder.make();
  });
  afterEach(() => folder[Symbol.asyncDispose]());

  it('sends packets of whole lines, each prefixed with its length in bytes', async () => {
    await using receiver = await UnixReceiver.start(folder.path);
    const sender = new UnixStreamSender({ path: folder.path, framing: 'packets' });
    await sender.open();
    await sender.send(['a:1|c|#é:😀', 'b:2|c']);
    await sender.send(['c:3|c']);
    await receiver.until('three lines', () => receiver.lines.length === 3);
    expect(receiver.packets.map(String)).toEqual(['a:1|c|#é:😀\nb:2|c', 'c:3|c']);
    expect(receiver.connections).toBe(1);
    sender.close();
  });

  it('fills a packet up to the 8192 bytes that the Datadog agent reads, and sends a longer line alone', async () => {
    await using receiver = await UnixReceiver.start(folder.path);
    const sender = new UnixStreamSender({ path: folder.path, framing: 'packets' });
    await sender.open();
    const lines = ['a'.repeat(8000), 'b'.repeat(191), 'c'.repeat(8000), 'd'.repeat(192), 'e'.repeat(70_000), 'f'];
    await sender.send(lines);
    await receiver.until('all lines', () => receiver.lines.length === lines.length);
    expect(receiver.lines).toEqual(lines);
    expect(receiver.packets.map(({ length }) => length)).toEqual([8192, 8000, 192, 70_000, 1]);
    sender.close();
  });

  it('delivers the lines although it is closed right after sending them', async () => {
    await using receiver = await UnixReceiver.start(folder.path);
    const sender = new UnixStreamSender({ path: folder.path, framing: 'packets' });
    await sender.open();
    const lines = Array.from({ length: 20_000 }, (_, index) => `name.number.${index}:1|c`);
    await sender.send(lines);
    sender.close();
    await receiver.until('all lines', () => receiver.lines.length === lines.length);
    expect(receiver.lines).toEqual(lines);
  });

  it('terminates each line with a newline, without a length, for a receiver that reads lines', async () => {
    await using receiver = await UnixReceiver.start(folder.path, { framing: 'lines' });
    const sender = new UnixStreamSender({ path: folder.path, framing: 'lines' });
    await sender.open();
    await sender.send(['a:1|c', 'b:2|c']);
    await sender.send(['c:3|c']);
    await receiver.until('three lines', () => receiver.lines.length === 3);
    expect(receiver.lines).toEqual(['a:1|c', 'b:2|c', 'c:3|c']);
    sender.close();
  });

  it('times out and buffers no further lines when the receiver does not read', async () => {
    await using _ = await UnixReceiver.start(folder.path, { reads: false });
    const sender = new UnixStreamSender({ path: folder.path, framing: 'packets', timeout: 1_000 });
    await sender.open();
    const lines = Array.from({ length: 1_000 }, () => 'x'.repeat(1_000));
    async function untilRejected() {
      for (;;) await sender.send(lines);
    }
    await expect(untilRejected()).rejects.toThrow('timed out after 1000 ms');
    await expect(sender.send(lines)).rejects.toThrow('the connection was lost');
    sender.close();
  });

  it('rejects when there is no socket, and when no process listens on it', async () => {
    const sender = new UnixStreamSender({ path: folder.path, framing: 'packets' });
    await expect(sender.open()).rejects.toMatchObject({ code: 'ENOENT' });
    const notASocket = new UnixStreamSender({ path: __filename, framing: 'packets' });
    await expect(notASocket.open()).rejects.toMatchObject({ code: /ECONNREFUSED|ENOTSOCK/ });
  });
});

describe('a SendingOutput to a Unix stream socket', () => {
  const HITS = 'ratelimit.service.rate_limit.d.k.total_hits';

  function outputTo(path: string, timeout: number) {
    return taggedOutput(new UnixStreamSender({ path, framing: 'packets', timeout }));
  }

  it('delivers every hit to a receiver that starts late and restarts, and logs only the changes of its state', async () => {
    await using folder = await SocketFolder.make();
    using to = outputTo(folder.path, 5_000);
    const { output, log, hitAndFlush } = to;
    for (let flush = 0; flush < 3; flush += 1) await hitAndFlush();
    const first = await UnixReceiver.start(folder.path);
    await hitAndFlush();
    await first.until('the kept hits', () => first.sum(HITS) === 4);
    await first[Symbol.asyncDispose]();

    // The first flush may reach a connection that is being closed, so it carries no hit.
    while (log.lines.length < 3) await output.flush();
    for (let flush = 0; flush < 3; flush += 1) await hitAndFlush();
    await using second = await UnixReceiver.start(folder.path);
    await hitAndFlush();
    await second.until('the kept hits', () => second.sum(HITS) === 4);
    const changes = ['warn cannot send statistics; will retry', 'warn resumed sending statistics'];
    expect(log.lines).toEqual([...changes, ...changes]);
  });

  it('uses no more memory while the receiver does not read, and delivers what it kept once another one reads', async () => {
    await using folder = await SocketFolder.make();
    const silent = await UnixReceiver.start(folder.path, { reads: false });
    using to = outputTo(folder.path, 100);
    const { statistics, output, log } = to;
    const rules = Array.from({ length: 10_000 }, (_, index) => statistics.rule(`d.k_${index}`));
    function hit() {
      for (const rule of rules) rule.totalHits += 1;
    }
    // Until the buffers of the system are full.
    while (log.lines.length === 0) {
      hit();
      await output.flush();
    }
    const before = heapAfterCollection();
    for (let flush = 0; flush < 10; flush += 1) {
      hit();
      await output.flush();
    }
    expect(heapAfterCollection() - before).toBeLessThan(50_000_000);
    await silent[Symbol.asyncDispose]();

    await using receiver = await UnixReceiver.start(folder.path);
    const last = 'ratelimit.service.rate_limit.d.k_9999.total_hits';
    // A flush may time out on a busy machine.
    await until('the last rule', async () => {
      if (receiver.sum(last) === 0) await output.flush();
      return receiver.sum(last) > 0;
    });
    expect(log.lines.slice(0, 2)).toEqual([
      'warn cannot send statistics; will retry',
      'warn resumed sending statistics',
    ]);
  });
});
