import { setImmediate as nextTurn } from 'node:timers/promises';
import { UnixDatagramSender } from '../../../src/sinks/statistics/unix-datagram-sender';
import { heapAfterCollection } from '../../support/processes/collect-garbage';
import { UnixDatagramReceiver } from '../../support/servers/unix-datagram-receiver';
import { SocketFolder } from '../../support/servers/unix-stream-receiver';
import { until } from '../../support/waiting/until';
import { CHANGES, SentStatistics, TRANSPORTS } from './receivers';

describe.each(['tcp', 'unix stream', 'unix datagram'] as const)('a receiver on %s that does not read', (kind) => {
  it('costs no memory, and what was kept arrives at the next one that does', async () => {
    using place = await TRANSPORTS[kind]();
    const silent = await place.start({ reads: false });
    using sent = new SentStatistics(place.sender(50));
    const { statistics, log, output } = sent;
    const rules = Array.from({ length: 10_000 }, (_, index) => statistics.rule(`d.${'k'.repeat(32)}_${index}`));
    async function hitAndFlush() {
      for (const rule of rules) rule.totalHits += 1;
      statistics.timer('t').record(1);
      await output.flush();
    }
    // Until the buffers of the system are full.
    while (log.short.length === 0) await hitAndFlush();
    const before = heapAfterCollection();
    for (let flush = 0; flush < 20; flush += 1) await hitAndFlush();
    expect(heapAfterCollection() - before).toBeLessThan(50_000_000);
    await silent[Symbol.asyncDispose]();
    await using receiver = await place.start();
    await until('the last counter', async () => {
      statistics.counter('last').add(1);
      await output.flush();
      return receiver.sum('last') > 0;
    });
    expect(log.short.slice(0, 2)).toEqual(CHANGES);
  });
});

test('a receiver on a Unix datagram socket is waited for when it makes room late, unless the output is closed', async () => {
  /** More than any system queues for a receiver that does not read. */
  const lines = Array.from({ length: 40_000 }, (_, index) => `name.number.${index}${'x'.repeat(200)}:1|c`);
  using folder = new SocketFolder();
  await using receiver = await UnixDatagramReceiver.start(folder.path);
  const sender = new UnixDatagramSender(folder.path, 20_000);
  receiver.pause();
  let isSent = false;
  const sent = sender.send(lines).then(() => (isSent = true));
  await nextTurn();
  expect(isSent).toBe(false);
  receiver.resume();
  await sent;
  await receiver.until('all lines', () => receiver.lines.length >= lines.length);
  expect(receiver.lines).toEqual(lines);
  receiver.pause();
  const failing = sender.send(lines);
  sender.close();
  await expect(failing).rejects.toThrow('the sender was closed');
});
