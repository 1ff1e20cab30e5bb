import { UnixStreamSender } from '../../../src/sinks/statistics/senders/connection-sender';
import { SocketFolder, UnixReceiver } from './unix-receiver';
import { taggedOutput } from './tagged-output';

describe('lines over a Unix socket', () => {
  let folder: SocketFolder;
  beforeEach(async () => {
    folder = await SocketFolder.make();
  });
  afterEach(() => folder[Symbol.asyncDispose]());

  it('travel in packets behind their length in bytes, whole lines in each', async () => {
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

  it('fill a packet to the last of the 8192 bytes that the Datadog agent reads; a longer line travels alone', async () => {
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

  it('are delivered although the connection is closed right behind them', async () => {
    await using receiver = await UnixReceiver.start(folder.path);
    const sender = new UnixStreamSender({ path: folder.path, framing: 'packets' });
    await sender.open();
    const lines = Array.from({ length: 20_000 }, (_, index) => `name.number.${index}:1|c`);
    await sender.send(lines);
    sender.close();
    await receiver.until('all lines', () => receiver.lines.length === lines.length);
    expect(receiver.lines).toEqual(lines);
  });

  it('end in a newline each, without a length, for a daemon that reads lines', async () => {
    await using receiver = await UnixReceiver.start(folder.path, { framing: 'lines' });
    const sender = new UnixStreamSender({ path: folder.path, framing: 'lines' });
    await sender.open();
    await sender.send(['a:1|c', 'b:2|c']);
    await sender.send(['c:3|c']);
    await receiver.until('three lines', () => receiver.lines.length === 3);
    expect(receiver.lines).toEqual(['a:1|c', 'b:2|c', 'c:3|c']);
    sender.close();
  });

  it('reject, and hold no more than their own bytes, when they are not read', async () => {
    await using _ = await UnixReceiver.start(folder.path, { reads: false });
    const sender = new UnixStreamSender({ path: folder.path, framing: 'packets', patience: 200 });
    await sender.open();
    const lines = Array.from({ length: 1_000 }, () => 'x'.repeat(1_000));
    async function untilRefused() {
      for (;;) await sender.send(lines);
    }
    await expect(untilRefused()).rejects.toThrow('nothing was taken within 200 ms');
    await expect(sender.send(lines)).rejects.toThrow('the connection was lost');
    sender.close();
  });

  it('reject where no socket is, and where nobody listens behind one', async () => {
    const sender = new UnixStreamSender({ path: folder.path, framing: 'packets' });
    await expect(sender.open()).rejects.toMatchObject({ code: 'ENOENT' });
    const notASocket = new UnixStreamSender({ path: __filename, framing: 'packets' });
    await expect(notASocket.open()).rejects.toMatchObject({ code: /ECONNREFUSED|ENOTSOCK/ });
  });
});

describe('a daemon on a Unix socket', () => {
  const HITS = 'ratelimit.service.rate_limit.d.k.total_hits';

  function outputTo(path: string, patience: number) {
    return taggedOutput(new UnixStreamSender({ path, framing: 'packets', patience }));
  }

  it('that comes late and is started anew gets every hit, and the log tells the changes alone', async () => {
    await using folder = await SocketFolder.make();
    using to = outputTo(folder.path, 5_000);
    const { output, log, hitAndFlush } = to;
    for (let flush = 0; flush < 3; flush += 1) await hitAndFlush();
    const first = await UnixReceiver.start(folder.path);
    await hitAndFlush();
    await first.until('what was kept', () => first.sum(HITS) === 4);
    await first[Symbol.asyncDispose]();

    // The first flush may reach a connection that is just closing: it carries no hit.
    while (log.lines.length < 3) await output.flush();
    for (let flush = 0; flush < 3; flush += 1) await hitAndFlush();
    await using second = await UnixReceiver.start(folder.path);
    await hitAndFlush();
    await second.until('what was kept', () => second.sum(HITS) === 4);
    const change = ['warn statistics are not taken; they are kept for later', 'warn statistics are taken again'];
    expect(log.lines).toEqual([...change, ...change]);
  });

  it('that does not read costs no memory, and what it did not take is taken once it does', async () => {
    await using folder = await SocketFolder.make();
    const silent = await UnixReceiver.start(folder.path, { reads: false });
    using to = outputTo(folder.path, 100);
    const { statistics, output, log } = to;
    const rules = Array.from({ length: 10_000 }, (_, index) => statistics.rule(`d.k_${index}`));
    function hit() {
      for (const rule of rules) rule.totalHits += 1;
    }
    // As many as the system's own buffers take.
    while (log.lines.length === 0) {
      hit();
      await output.flush();
    }
    const before = process.memoryUsage().heapUsed;
    for (let flush = 0; flush < 10; flush += 1) {
      hit();
      await output.flush();
    }
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000);
    await silent[Symbol.asyncDispose]();

    while (log.lines.length < 2) {
      await using receiver = await UnixReceiver.start(folder.path);
      await output.flush();
      const last = 'ratelimit.service.rate_limit.d.k_9999.total_hits';
      await receiver.until('the last rule', () => receiver.sum(last) > 0);
    }
    expect(log.lines).toHaveLength(2);
  });
});
