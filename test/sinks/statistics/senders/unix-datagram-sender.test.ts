import { once } from 'node:events';
import { createServer } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PartialDeliveryError } from '../../../../src/sinks/statistics/senders/line-sender';
import { UnixDatagramSender } from '../../../../src/sinks/statistics/senders/unix-datagram-sender';
import { heapAfterCollection } from '../../../support/processes/collect-garbage';
import { UnixDatagramReceiver } from '../../../support/servers/unix-datagram-receiver';
import { SocketFolder } from '../../../support/servers/unix-stream-receiver';
import { until } from '../../../support/waiting/until';
import { taggedOutput } from './tagged-output';

/** More than any system queues for a receiver that does not read. */
const TOO_MANY = Array.from({ length: 40_000 }, (_, index) => `name.number.${index}${'x'.repeat(200)}:1|c`);

describe('UnixDatagramSender', () => {
  let folder: SocketFolder;
  beforeEach(async () => {
    folder = await SocketFolder.make();
  });
  afterEach(() => folder[Symbol.asyncDispose]());

  async function senderTo(path: string, timeout?: number) {
    const sender = new UnixDatagramSender(timeout === undefined ? { path } : { path, timeout });
    await sender.open();
    return sender;
  }

  it('sends lines byte for byte, whole lines per datagram, without a trailing newline', async () => {
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const sender = await senderTo(folder.path);
    await sender.send(['a:1|c|#é:😀', 'b:2|c']);
    await sender.send(['c:3|c']);
    await receiver.until('three lines', () => receiver.lines.length === 3);
    expect(receiver.datagrams.map(String)).toEqual(['a:1|c|#é:😀\nb:2|c', 'c:3|c']);
  });

  it('fills a datagram up to the 8192 bytes that the Datadog agent reads, and sends a longer line alone', async () => {
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const sender = await senderTo(folder.path);
    const lines = ['a'.repeat(8000), 'b'.repeat(191), 'c'.repeat(8000), 'd'.repeat(192), 'e'.repeat(20_000), 'f'];
    await sender.send(lines);
    await receiver.until('all lines', () => receiver.lines.length === lines.length);
    expect(receiver.lines).toEqual(lines);
    expect(receiver.datagrams.map(({ length }) => length)).toEqual([8192, 8000, 192, 20_000, 1]);
  });

  it('leaves out lines that no datagram over UDP can carry either', async () => {
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const sender = await senderTo(folder.path);
    const longest = 'x'.repeat(65_507);
    await sender.send(['y', `${longest}x`, longest, 'z']);
    await receiver.until('all lines', () => receiver.lines.length === 3);
    expect(receiver.lines).toEqual(['y', longest, 'z']);
  });

  it('waits for a receiver that makes room late, and delivers each line once', async () => {
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const sender = await senderTo(folder.path, 20_000);
    receiver.pause();
    let isSent = false;
    const sent = sender.send(TOO_MANY).then(() => (isSent = true));
    await nextTurn();
    expect(isSent).toBe(false);
    receiver.resume();
    await sent;
    await receiver.until('all lines', () => receiver.lines.length >= TOO_MANY.length);
    expect(receiver.lines).toEqual(TOO_MANY);
  });

  it('reports how many lines were delivered before the receiver stopped reading', async () => {
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const sender = await senderTo(folder.path, 100);
    receiver.pause();
    const error = await sender.send(TOO_MANY).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PartialDeliveryError);
    const { delivered } = error as PartialDeliveryError;
    expect(error).toMatchObject({
      message: `only the first ${delivered} lines were delivered`,
      cause: new Error('timed out after 100 ms'),
    });
    await expect(sender.send(['still.full:1|c'])).rejects.not.toBeInstanceOf(PartialDeliveryError);
    receiver.resume();
    await receiver.until('the delivered lines', () => receiver.lines.length >= delivered);
    await sender.send(['last:1|c']);
    await receiver.until('the last line', () => receiver.lines.includes('last:1|c'));
    expect(receiver.lines).toEqual([...TOO_MANY.slice(0, delivered), 'last:1|c']);
  });

  it('rejects a send in flight when it is closed', async () => {
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const sender = await senderTo(folder.path);
    receiver.pause();
    const sent = sender.send(TOO_MANY);
    sender.close();
    await expect(sent).rejects.toMatchObject({ cause: new Error('the sender was closed') });
  });

  it('rejects when there is no socket, when no process reads from it, and when it is a stream socket', async () => {
    const sender = await senderTo(folder.path);
    await expect(sender.send(['a:1|c'])).rejects.toThrow('No such file or directory');
    const receiver = await UnixDatagramReceiver.start(folder.path);
    await receiver.crash();
    await expect(sender.send(['a:1|c'])).rejects.toThrow('Connection refused');

    const stream = `${folder.path}.stream`;
    const server = createServer().listen(stream);
    await once(server, 'listening');
    await expect((await senderTo(stream)).send(['a:1|c'])).rejects.toThrow(
      'this is a stream socket: use unixstream://',
    );
    server.close();
  });
});

describe('a SendingOutput to a Unix datagram socket', () => {
  const HITS = 'ratelimit.service.rate_limit.d.k.total_hits';

  function outputTo(path: string, timeout: number) {
    return taggedOutput(new UnixDatagramSender({ path, timeout }));
  }

  it('delivers every hit to a receiver that starts late, crashes and restarts, and logs only the changes of its state', async () => {
    await using folder = await SocketFolder.make();
    using to = outputTo(folder.path, 5_000);
    const { log, hitAndFlush } = to;
    for (let flush = 0; flush < 3; flush += 1) await hitAndFlush();
    for (const ends of ['crash', Symbol.asyncDispose, Symbol.asyncDispose] as const) {
      const receiver = await UnixDatagramReceiver.start(folder.path);
      await hitAndFlush();
      await receiver.until('the kept hits and the newest', () => receiver.sum(HITS) === 4);
      await receiver[ends]();
      for (let flush = 0; flush < 3; flush += 1) await hitAndFlush();
    }
    const changes = ['warn cannot send statistics; will retry', 'warn resumed sending statistics'];
    expect(log.lines).toEqual([...changes, ...changes, ...changes, changes[0]]);
  });

  it('uses no more memory while the receiver does not read, and delivers exact counts once it reads', async () => {
    await using folder = await SocketFolder.make();
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    using to = outputTo(folder.path, 50);
    const { statistics, output, log } = to;
    // Long enough that one batch takes three datagrams, of which the system accepts some when its queue is nearly full.
    const rules = Array.from({ length: 10_000 }, (_, index) => statistics.rule(`d.${'k'.repeat(32)}_${index}`));
    let hits = 0;
    async function hitAndFlush() {
      hits += 1;
      for (const rule of rules) rule.totalHits += 1;
      await output.flush();
    }
    receiver.pause();
    // Until the queue of the system is full.
    while (log.lines.length === 0 && hits < 100) await hitAndFlush();
    expect(log.lines).toEqual(['warn cannot send statistics; will retry']);
    const before = heapAfterCollection();
    for (let flush = 0; flush < 20; flush += 1) await hitAndFlush();
    expect(heapAfterCollection() - before).toBeLessThan(50_000_000);

    receiver.resume();
    do await output.flush();
    while (log.lines.at(-1) !== 'warn resumed sending statistics');
    // Sent last: once it has arrived, everything before it has.
    statistics.counter('last').add(1);
    await until('the last counter', async () => {
      await output.flush();
      return receiver.lines.includes('last:1|c');
    });
    const sums = new Map<string, number>();
    for (const line of receiver.lines) {
      const [, rule, delta] = /^ratelimit\.service\.rate_limit\.(.+)\.total_hits:(\d+)\|c$/.exec(line) ?? [];
      if (rule !== undefined) sums.set(rule, (sums.get(rule) ?? 0) + Number(delta));
    }
    expect([sums.size, new Set(sums.values())]).toEqual([rules.length, new Set([hits])]);
  });
});
