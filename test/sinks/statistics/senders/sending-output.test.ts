import { type LineSender, PartialDeliveryError } from '../../../../src/sinks/statistics/senders/line-sender';
import { SendingOutput } from '../../../../src/sinks/statistics/senders/sending-output';
import { statsdLines } from '../../../../src/sinks/statistics/lines/statsd-lines';
import { TcpSender } from '../../../../src/sinks/statistics/senders/connection-sender';
import { UdpSender } from '../../../../src/sinks/statistics/senders/udp-sender';
import { Statistics } from '../../../../src/statistics/statistics';
import { recordingLog } from '../../../http/http-client';
import { heapAfterCollection } from '../../../support/processes/collect-garbage';
import { TcpReceiver, UdpReceiver } from '../../../support/servers/statsd-receivers';

const RULE = 'ratelimit.service.rate_limit.d.k.total_hits';

function outputTo(port: number, timeout = 60_000) {
  const statistics = new Statistics(10_000);
  const log = recordingLog();
  const sender = new TcpSender({ host: '127.0.0.1', port, timeout });
  const output = new SendingOutput({ statistics, format: statsdLines({}), sender, log });
  return { statistics, log, output, [Symbol.dispose]: () => output.close() };
}

describe('a flush of a SendingOutput', () => {
  it('sends the values of gauges, the deltas of changed counters, and every duration', async () => {
    await using receiver = await TcpReceiver.start();
    using to = outputTo(receiver.port);
    const { statistics, output } = to;
    statistics.gauge('g', () => 2.5);
    statistics.gauge('unknown', () => Number.NaN);
    statistics.counter('still');
    statistics.rule('d.k').totalHits += 3;
    statistics.timer('t').record(1.5);
    statistics.timer('t').record(20);
    await output.flush();
    await receiver.until('the durations', () => receiver.lines.includes('t:20|ms'));
    expect(receiver.lines).toEqual([
      'ratelimit.statistics.runtime_keys:0|g',
      'ratelimit.statistics.rolled_up:0|g',
      'g:2.5|g',
      `${RULE}:3|c`,
      't:1|ms',
      't:20|ms',
    ]);
    receiver.lines.length = 0;
    statistics.rule('d.k').totalHits += 1;
    await output.flush();
    await receiver.until('the counter', () => receiver.lines.includes(`${RULE}:1|c`));
    expect(receiver.lines.filter((line) => line.endsWith('ms'))).toEqual([]);
  });

  it('sends at most 1,000 durations per timer, evenly sampled and marked with the sample rate', async () => {
    await using receiver = await TcpReceiver.start();
    using to = outputTo(receiver.port);
    for (let call = 0; call < 3_000; call += 1) to.statistics.timer('t').record(call);
    await to.output.flush();
    await receiver.until('the last duration', () => receiver.lines.includes('t:2996|ms|@0.25'));
    const durations = receiver.lines.filter((line) => line.startsWith('t:'));
    expect(durations).toHaveLength(750);
    expect(durations.every((line) => line.endsWith('|@0.25'))).toBe(true);
  });

  it('yields to the event loop between batches of some hundred lines', async () => {
    await using receiver = await TcpReceiver.start();
    using to = outputTo(receiver.port);
    for (let rule = 0; rule < 10_000; rule += 1) to.statistics.rule(`d.k_${rule}`).totalHits += 1;
    let turns = 0;
    let isOver = false;
    function count(): void {
      turns += 1;
      if (!isOver) setImmediate(count);
    }
    count();
    await to.output.flush();
    isOver = true;
    expect(turns).toBeGreaterThan(30);
    await receiver.until('all rules', () => receiver.lines.filter((line) => line.endsWith('|c')).length === 10_000);
  });
});

describe('a SendingOutput whose receiver is unavailable', () => {
  it('retries at each flush, delivers all counts once the receiver is back, and logs only the changes of its state', async () => {
    const first = await TcpReceiver.start();
    const { port } = first;
    using to = outputTo(port);
    const { statistics, output, log } = to;
    function hit() {
      return (statistics.rule('d.k').totalHits += 1);
    }
    hit();
    await output.flush();
    await first.until('the first hit', () => first.sum(RULE) === 1);
    await first[Symbol.asyncDispose]();
    statistics.timer('t').record(7);
    for (let flush = 0; flush < 5; flush += 1) {
      hit();
      await output.flush();
    }
    await using second = await TcpReceiver.start({ port });
    hit();
    await output.flush();
    await second.until('the duration', () => second.lines.includes('t:7|ms'));
    // The first flush of the outage may have reached a connection that was being closed.
    expect(second.sum(RULE)).toBe(6);
    expect(log.lines).toEqual(['warn cannot send statistics; will retry', 'warn resumed sending statistics']);
  });

  it('reconnects and delivers the rest when the receiver resets its connections', async () => {
    await using receiver = await TcpReceiver.start();
    using to = outputTo(receiver.port);
    const { statistics, output } = to;
    for (let hits = 1; hits <= 6; hits += 1) {
      statistics.rule('d.k').totalHits += 1;
      // The first flush detects the reset.
      await output.flush();
      await output.flush();
      await receiver.until('every hit', () => receiver.sum(RULE) === hits);
      if (hits % 2 === 0) await receiver.resetConnections();
    }
    expect(receiver.connections).toBeGreaterThan(1);
  });

  it('uses no more memory while the receiver does not read', async () => {
    const silent = await TcpReceiver.start({ reads: false });
    const { port } = silent;
    using to = outputTo(port, 100);
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
    for (let flush = 0; flush < 20; flush += 1) {
      hit();
      statistics.timer('t').record(flush);
      await output.flush();
    }
    expect(heapAfterCollection() - before).toBeLessThan(20_000_000);
    await silent[Symbol.asyncDispose]();
  });

  it('sends the remaining durations later, each once, when the receiver fails among them', async () => {
    const statistics = new Statistics(0);
    const arrived: string[] = [];
    let room = 2;
    const sender: LineSender = {
      destination: 'a receiver that fails',
      open: async () => {},
      send: async (lines) => {
        if (room === 0) throw new Error('gone');
        room -= 1;
        arrived.push(...lines.filter((line) => line.startsWith('t:')));
      },
      close: () => {},
    };
    const output = new SendingOutput({ statistics, format: statsdLines({}), sender, log: recordingLog() });
    for (let call = 0; call < 600; call += 1) statistics.timer('t').record(call);
    await output.flush();
    expect(arrived).toHaveLength(256);
    room = 100;
    statistics.timer('t').record(600);
    await output.flush();
    expect(arrived).toEqual(Array.from({ length: 601 }, (_, call) => `t:${call}|ms`));
  });

  it('sends exactly the remaining counters and durations later after a partial delivery', async () => {
    const statistics = new Statistics(0);
    const arrived: string[] = [];
    let room = 0;
    const sender: LineSender = {
      destination: 'a receiver with little room',
      open: async () => {},
      send: async (lines) => {
        const delivered = lines.slice(0, room);
        room -= delivered.length;
        arrived.push(...delivered.filter((line) => !line.endsWith('|g')));
        if (delivered.length < lines.length) throw new PartialDeliveryError(delivered.length, new Error('full'));
      },
      close: () => {},
    };
    const output = new SendingOutput({ statistics, format: statsdLines({}), sender, log: recordingLog() });
    const expected: string[] = [];
    for (let index = 0; index < 300; index += 1) {
      statistics.counter(`c_${index}`).add(index + 1);
      expected.push(`c_${index}:${index + 1}|c`);
    }
    for (let call = 0; call < 300; call += 1) {
      statistics.timer('t').record(call);
      expected.push(`t:${call}|ms`);
    }
    // A prime number, so that the partial deliveries end at varying positions.
    for (let flush = 0; flush < 10; flush += 1) {
      room = 97;
      await output.flush();
    }
    expect(arrived).toEqual(expected);
  });

  it('loses no counts over UDP while the receiver’s host refuses the datagrams', async () => {
    const stopped = await UdpReceiver.start();
    const { port } = stopped;
    await stopped[Symbol.asyncDispose]();
    const statistics = new Statistics(10_000);
    const log = recordingLog();
    const sender = new UdpSender({ host: '127.0.0.1', port, icmpWait: 500 });
    const output = new SendingOutput({ statistics, format: statsdLines({}), sender, log });
    for (let flush = 0; flush < 3; flush += 1) {
      statistics.rule('d.k').totalHits += 1;
      await output.flush();
    }
    await using receiver = await UdpReceiver.start({ port });
    await output.flush();
    await receiver.until('every hit', () => receiver.sum(RULE) === 3);
    expect(log.lines).toHaveLength(2);
    output.close();
  });
});
