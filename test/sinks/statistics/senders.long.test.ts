import { setImmediate as nextTurn } from 'node:timers/promises';
import { UnixDatagramSender } from '../../../src/sinks/statistics/senders/unix-datagram-sender';
import { heapAfterCollection } from '../../support/processes/collect-garbage';
import { UnixDatagramReceiver } from '../../support/servers/unix-datagram-receiver';
import { SocketFolder } from '../../support/servers/unix-stream-receiver';
import { until } from '../../support/waiting/until';
import { CHANGES, SentStatistics, TRANSPORTS } from './receivers';

/** Sends hits on ten thousand rules until the buffers of the system are full, and then for 20 flushes more. */
async function fill({
  statistics,
  log,
  output,
}: SentStatistics): Promise<{ readonly hits: number; readonly heap: number }> {
  // Long enough that one batch takes three datagrams, of which the system accepts some when its queue is nearly full.
  const rules = Array.from({ length: 10_000 }, (_, index) => statistics.rule(`d.${'k'.repeat(32)}_${index}`));
  let hits = 0;
  async function hitAndFlush() {
    hits += 1;
    for (const rule of rules) rule.totalHits += 1;
    statistics.timer('t').record(hits);
    await output.flush();
  }
  while (log.lines.length === 0) await hitAndFlush();
  const before = heapAfterCollection();
  for (let flush = 0; flush < 20; flush += 1) await hitAndFlush();
  return { hits, heap: heapAfterCollection() - before };
}

describe.each(['tcp', 'unix stream', 'unix datagram'] as const)('a receiver on %s that does not read', (kind) => {
  it('costs no memory, and what was kept arrives at the next one that does', async () => {
    await using place = await TRANSPORTS[kind]();
    const silent = await place.start({ reads: false });
    using sent = new SentStatistics(place.sender(50));
    expect((await fill(sent)).heap).toBeLessThan(50_000_000);
    await silent[Symbol.asyncDispose]();
    await using receiver = await place.start();
    await until('the last counter', async () => {
      sent.statistics.counter('last').add(1);
      await sent.output.flush();
      return receiver.sum('last') > 0;
    });
    expect(sent.log.lines.slice(0, 2)).toEqual(CHANGES);
  });
});

describe('a receiver on a Unix datagram socket', () => {
  /** More than any system queues for a receiver that does not read. */
  const TOO_MANY = Array.from({ length: 40_000 }, (_, index) => `name.number.${index}${'x'.repeat(200)}:1|c`);
  let folder: SocketFolder;
  let receiver: UnixDatagramReceiver;
  beforeEach(async () => {
    folder = await SocketFolder.make();
    receiver = await UnixDatagramReceiver.start(folder.path);
    receiver.pause();
  });
  afterEach(async () => {
    await receiver[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  it('that stops reading in the middle of a flush has received every hit once when it reads again', async () => {
    using sent = new SentStatistics(new UnixDatagramSender({ path: folder.path, timeout: 50 }));
    const { hits } = await fill(sent);
    receiver.resume();
    do await sent.output.flush();
    while (sent.log.lines.at(-1) !== CHANGES[1]);
    sent.statistics.counter('last').add(1);
    await until('the last counter', async () => {
      await sent.output.flush();
      return receiver.lines.includes('last:1|c');
    });
    const sums = new Map<string, number>();
    for (const line of receiver.lines) {
      const [, rule, delta] = /^ratelimit\.service\.rate_limit\.(.+)\.total_hits:(\d+)\|c$/.exec(line) ?? [];
      if (rule !== undefined) sums.set(rule, (sums.get(rule) ?? 0) + Number(delta));
    }
    expect([sums.size, new Set(sums.values())]).toEqual([10_000, new Set([hits])]);
  });

  it('is waited for when it makes room late, unless the output is closed', async () => {
    const sender = new UnixDatagramSender({ path: folder.path, timeout: 20_000 });
    await sender.open();
    let isSent = false;
    const sent = sender.send(TOO_MANY).then(() => (isSent = true));
    await nextTurn();
    expect(isSent).toBe(false);
    receiver.resume();
    await sent;
    await receiver.until('all lines', () => receiver.lines.length >= TOO_MANY.length);
    expect(receiver.lines).toEqual(TOO_MANY);
    receiver.pause();
    const failing = sender.send(TOO_MANY);
    sender.close();
    await expect(failing).rejects.toMatchObject({ cause: new Error('the sender was closed') });
  });
});
