import { once } from 'node:events';
import { createServer } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { TakenInPart } from '../../../src/sinks/statistics/senders/line-sender';
import { UnixDatagramSender } from '../../../src/sinks/statistics/senders/unix-datagram-sender';
import { UnixDatagramReceiver } from './unix-datagram-receiver';
import { SocketFolder } from './unix-receiver';
import { taggedOutput } from './tagged-output';

/** More than the system keeps for a daemon that does not read, however it is set. */
const TOO_MANY = Array.from({ length: 40_000 }, (_, index) => `name.number.${index}${'x'.repeat(200)}:1|c`);

describe('lines to a datagram socket', () => {
  let folder: SocketFolder;
  beforeEach(async () => {
    folder = await SocketFolder.make();
  });
  afterEach(() => folder[Symbol.asyncDispose]());

  async function senderTo(path: string, patience?: number) {
    const sender = new UnixDatagramSender(patience === undefined ? { path } : { path, patience });
    await sender.open();
    return sender;
  }

  it('arrive byte for byte, whole ones in each datagram and no newline behind the last', async () => {
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const sender = await senderTo(folder.path);
    await sender.send(['a:1|c|#é:😀', 'b:2|c']);
    await sender.send(['c:3|c']);
    await receiver.until('three lines', () => receiver.lines.length === 3);
    expect(receiver.datagrams.map(String)).toEqual(['a:1|c|#é:😀\nb:2|c', 'c:3|c']);
  });

  it('fill a datagram to the last of the 8192 bytes that the Datadog agent reads; a longer line travels alone', async () => {
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const sender = await senderTo(folder.path);
    const lines = ['a'.repeat(8000), 'b'.repeat(191), 'c'.repeat(8000), 'd'.repeat(192), 'e'.repeat(20_000), 'f'];
    await sender.send(lines);
    await receiver.until('all lines', () => receiver.lines.length === lines.length);
    expect(receiver.lines).toEqual(lines);
    expect(receiver.datagrams.map(({ length }) => length)).toEqual([8192, 8000, 192, 20_000, 1]);
  });

  it('wait for a daemon that makes room late, and arrive each once', async () => {
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

  it('that a daemon does not read are refused, but for as many as is told', async () => {
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const sender = await senderTo(folder.path, 100);
    receiver.pause();
    const refusal = await sender.send(TOO_MANY).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(TakenInPart);
    expect(refusal).toMatchObject({ message: 'nothing was taken within 100 ms' });
    const { taken } = refusal as TakenInPart;
    await expect(sender.send(['still.full:1|c'])).rejects.not.toBeInstanceOf(TakenInPart);
    receiver.resume();
    await receiver.until('what was taken', () => receiver.lines.length >= taken);
    await sender.send(['last:1|c']);
    await receiver.until('the last line', () => receiver.lines.includes('last:1|c'));
    expect(receiver.lines).toEqual([...TOO_MANY.slice(0, taken), 'last:1|c']);
  });

  it('are let go of by closing', async () => {
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const sender = await senderTo(folder.path);
    receiver.pause();
    const sent = sender.send(TOO_MANY);
    sender.close();
    await expect(sent).rejects.toThrow('the sender was closed');
  });

  it('are refused where no socket is, where nobody reads from one, and where it is one for streams', async () => {
    const sender = await senderTo(folder.path);
    await expect(sender.send(['a:1|c'])).rejects.toThrow('No such file or directory');
    const receiver = await UnixDatagramReceiver.start(folder.path);
    await receiver.crash();
    await expect(sender.send(['a:1|c'])).rejects.toThrow('Connection refused');

    const stream = `${folder.path}.stream`;
    const server = createServer().listen(stream);
    await once(server, 'listening');
    await expect((await senderTo(stream)).send(['a:1|c'])).rejects.toThrow(
      'this is a stream socket, which is reached as unixstream://',
    );
    server.close();
  });
});

describe('a daemon on a datagram socket', () => {
  const HITS = 'ratelimit.service.rate_limit.d.k.total_hits';

  function outputTo(path: string, patience: number) {
    return taggedOutput(new UnixDatagramSender({ path, patience }));
  }

  it('that comes late, crashes and is started anew gets every hit, and the log tells the changes alone', async () => {
    await using folder = await SocketFolder.make();
    using to = outputTo(folder.path, 5_000);
    const { log, hitAndFlush } = to;
    for (let flush = 0; flush < 3; flush += 1) await hitAndFlush();
    for (const ends of ['crash', Symbol.asyncDispose, Symbol.asyncDispose] as const) {
      const receiver = await UnixDatagramReceiver.start(folder.path);
      await hitAndFlush();
      await receiver.until('what was kept and the newest', () => receiver.sum(HITS) === 4);
      await receiver[ends]();
      for (let flush = 0; flush < 3; flush += 1) await hitAndFlush();
    }
    const change = ['warn statistics are not taken; they are kept for later', 'warn statistics are taken again'];
    expect(log.lines).toEqual([...change, ...change, ...change, change[0]]);
  });

  it('that does not read costs no memory, and once it reads every count is exact', async () => {
    await using folder = await SocketFolder.make();
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    using to = outputTo(folder.path, 50);
    const { statistics, output, log } = to;
    // So long that the lines sent at a time are three datagrams, of which the system has room for some when it runs out.
    const rules = Array.from({ length: 10_000 }, (_, index) => statistics.rule(`d.${'k'.repeat(32)}_${index}`));
    let hits = 0;
    async function hitAndFlush() {
      hits += 1;
      for (const rule of rules) rule.totalHits += 1;
      await output.flush();
    }
    receiver.pause();
    // As many as the system keeps, however it is set.
    while (log.lines.length === 0 && hits < 100) await hitAndFlush();
    expect(log.lines).toEqual(['warn statistics are not taken; they are kept for later']);
    const before = process.memoryUsage().heapUsed;
    for (let flush = 0; flush < 20; flush += 1) await hitAndFlush();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000);

    receiver.resume();
    do await output.flush();
    while (log.lines.at(-1) !== 'warn statistics are taken again');
    // What arrives last: by then everything that was taken before has arrived.
    statistics.counter('last').add(1);
    await output.flush();
    await receiver.until('the last counter', () => receiver.lines.at(-1) === 'last:1|c');
    const sums = new Map<string, number>();
    for (const line of receiver.lines) {
      const [, rule, delta] = /^ratelimit\.service\.rate_limit\.(.+)\.total_hits:(\d+)\|c$/.exec(line) ?? [];
      if (rule !== undefined) sums.set(rule, (sums.get(rule) ?? 0) + Number(delta));
    }
    expect([sums.size, new Set(sums.values())]).toEqual([rules.length, new Set([hits])]);
  });
});
