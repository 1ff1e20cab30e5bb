import type { LookupAddress } from 'node:dns';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ConnectionSender, type LineSender, streamSender } from '../../../src/sinks/statistics/senders';
import { UdpSender } from '../../../src/sinks/statistics/udp-sender';
import { UnixDatagramSender } from '../../../src/sinks/statistics/unix-datagram-sender';
import { type Lines, TcpReceiver, UdpReceiver } from '../../support/servers/statsd-receivers';
import { UnixDatagramReceiver } from '../../support/servers/unix-datagram-receiver';
import { SocketFolder, UnixReceiver } from '../../support/servers/unix-stream-receiver';
import { turnsDuring } from '../../support/waiting/turns';
import { CHANGES, HITS, SentStatistics, TRANSPORTS } from './receivers';

const host = '127.0.0.1';
const KINDS = ['tcp', 'udp', 'unix stream', 'unix datagram'] as const;

describe.each(KINDS)('statistics over %s', (kind) => {
  it('arrive as values of gauges, deltas of changed counters, and every duration, byte for byte', async () => {
    using place = await TRANSPORTS[kind]();
    await using receiver = await place.start();
    using sent = new SentStatistics(place.sender());
    const { statistics } = sent;
    statistics.gauge('g', () => 2.5);
    statistics.gauge('unknown', () => Number.NaN);
    statistics.counter('still');
    statistics.counter('ключ.é😀\ud800').add(2);
    statistics.timer('t').record(1.5);
    statistics.timer('t').record(20);
    await sent.hit(3);
    await receiver.until('the durations', () => receiver.lines.includes('t:20|ms'));
    expect(receiver.lines).toEqual([
      'ratelimit.statistics.runtime_keys:0|g',
      'ratelimit.statistics.rolled_up:0|g',
      'g:2.5|g',
      'ключ.é😀\ufffd:2|c',
      `${HITS}:3|c`,
      't:1|ms',
      't:20|ms',
    ]);
    receiver.lines.length = 0;
    await sent.hit();
    await receiver.until('the counter', () => receiver.lines.includes(`${HITS}:1|c`));
    expect(receiver.lines.filter((line) => !line.endsWith('|g'))).toEqual([`${HITS}:1|c`]);
  });

  it('arrive exactly at a receiver that starts late, ends and starts again, and only changes are logged', async () => {
    using place = await TRANSPORTS[kind]();
    using sent = new SentStatistics(place.sender());
    for (let round = 1; round <= 2; round += 1) {
      // The first flush may reach a connection that is being closed, so it carries no hit.
      while (sent.log.short.length % 2 === 0) await sent.output.flush();
      sent.statistics.timer('t').record(round);
      for (let flush = 0; flush < 3; flush += 1) await sent.hit();
      await using receiver = await place.start();
      await sent.hit();
      await receiver.until('the duration', () => receiver.lines.includes(`t:${round}|ms`));
      expect(receiver.sum(HITS)).toBe(4);
    }
    expect(sent.log.short).toEqual([...CHANGES, ...CHANGES]);
  });
});

describe('a flush', () => {
  it('sends at most 1,000 durations per timer, evenly sampled and marked with the sample rate', async () => {
    await using receiver = await TcpReceiver.start();
    using sent = new SentStatistics(new ConnectionSender({ to: { host, port: receiver.port } }));
    for (let call = 0; call < 3_000; call += 1) sent.statistics.timer('t').record(call);
    await sent.output.flush();
    await receiver.until('the last duration', () => receiver.lines.includes('t:2996|ms|@0.25'));
    const durations = receiver.lines.filter((line) => line.startsWith('t:'));
    expect(durations).toHaveLength(750);
    expect(durations.every((line) => line.endsWith('|@0.25'))).toBe(true);
  });

  it('yields to the event loop between batches of some hundred lines', async () => {
    await using receiver = await TcpReceiver.start();
    using sent = new SentStatistics(new ConnectionSender({ to: { host, port: receiver.port } }));
    for (let rule = 0; rule < 10_000; rule += 1) sent.statistics.rule(`d.k_${rule}`).totalHits += 1;
    expect(await turnsDuring(sent.output.flush())).toBeGreaterThan(30);
    // Although it is closed right after sending.
    sent.output.close();
    await receiver.until('all rules', () => receiver.lines.filter((line) => line.endsWith('|c')).length === 10_000);
  });
});

describe('a connection', () => {
  it('stays open across flushes, and is opened again after a reset', async () => {
    await using receiver = await TcpReceiver.start();
    using sent = new SentStatistics(new ConnectionSender({ to: { host, port: receiver.port } }));
    for (let hits = 1; hits <= 3; hits += 1) {
      await sent.hit();
      await receiver.until('the hit', () => receiver.sum(HITS) === hits);
    }
    expect(receiver.connections).toBe(1);
    await receiver.resetConnections();
    while (receiver.connections < 2) {
      await nextTurn();
      await sent.output.flush();
    }
    await sent.hit();
    await receiver.until('the next hit', () => receiver.sum(HITS) === 4);
  });

  it('times out and buffers no further lines when the receiver does not read', async () => {
    await using receiver = await TcpReceiver.start({ reads: false });
    const sender = new ConnectionSender({ to: { host, port: receiver.port }, timeout: 500 });
    await sender.open();
    const lines = Array.from({ length: 1_000 }, () => 'x'.repeat(1_000));
    async function untilRejected() {
      for (;;) await sender.send(lines);
    }
    await expect(untilRejected()).rejects.toThrow('timed out after 500 ms');
    await expect(sender.send(lines)).rejects.toThrow('the connection was lost');
    sender.close();
  });
});

describe('a packet of several lines', () => {
  const longest = 'e'.repeat(65_507);

  async function send(sender: LineSender, receiver: Lines, lines: readonly string[]): Promise<void> {
    await sender.open?.();
    await sender.send(lines);
    await receiver.until('all lines', () => receiver.lines.length === lines.length);
    sender.close();
    expect(receiver.lines).toEqual(lines);
  }

  it('has up to 8192 bytes and its length for the Datadog agent; a longer line is alone', async () => {
    using folder = new SocketFolder();
    await using receiver = await UnixReceiver.start(folder.path);
    const lines = ['a'.repeat(8000), 'b'.repeat(191), 'c'.repeat(8000), 'é'.repeat(96), 'e'.repeat(70_000), 'f'];
    await send(new ConnectionSender({ to: { path: folder.path }, framing: 'packets' }), receiver, lines);
    expect(receiver.packets.map(({ length }) => length)).toEqual([8192, 8000, 192, 70_000, 1]);
  });

  it('has up to 1432 bytes over UDP; a longer line is alone', async () => {
    await using receiver = await UdpReceiver.start();
    const lines = ['a'.repeat(700), 'b'.repeat(731), 'é'.repeat(350), 'd'.repeat(732), 'f'.repeat(1432)];
    await send(new UdpSender({ host, port: receiver.port, icmpWait: 1 }), receiver, [longest, ...lines]);
    expect(receiver.datagrams.map((each) => Buffer.byteLength(each))).toEqual([65_507, 1432, 700, 732, 1432]);
  });

  it('has up to 8192 bytes over a Unix datagram socket; a longer line is alone', async () => {
    using folder = new SocketFolder();
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const lines = [longest, 'a'.repeat(8000), 'b'.repeat(191), 'c'.repeat(8000), 'é'.repeat(96), 'f'];
    await send(new UnixDatagramSender(folder.path), receiver, lines);
    expect(receiver.datagrams.map(({ length }) => length)).toEqual([65_507, 8192, 8000, 194]);
  });
});

it('a datagram with a name that is too long causes one warning, and keeps no other statistic from being sent', async () => {
  await using receiver = await UdpReceiver.start();
  using sent = new SentStatistics(new UdpSender({ host, port: receiver.port, icmpWait: 1 }));
  const names = Array.from({ length: 600 }, (_, index) => `c_${index}`);
  const long = 'x'.repeat(70_000);
  for (const name of [...names.slice(0, 300), long, ...names.slice(300)]) sent.statistics.counter(name).add(1);
  for (let flush = 1; flush <= 3; flush += 1) {
    sent.statistics.counter(long).add(1);
    await sent.hit();
    await receiver.until('the last counter', () => receiver.sum(HITS) === flush);
  }
  expect(names.map((name) => receiver.sum(name))).toEqual(names.map(() => 1));
  expect(sent.log.short).toEqual(['warn a statistic is not sent, as its name is too long for a datagram']);
});

describe('the host of a UDP output', () => {
  // No process listens on the last one.
  const [FIRST, SECOND, SILENT] = [1, 2, 3].map((last) => ({ address: `127.0.0.${last}`, family: 4 }));

  /** Receivers on the first two addresses, and a sender to a host that has the addresses of each flush. */
  async function hostWith(icmpWait = 1) {
    const first = await UdpReceiver.start();
    const second = await UdpReceiver.start({ host: '127.0.0.2', port: first.port });
    let known: readonly (typeof FIRST)[] = [];
    async function resolve() {
      if (known.length === 0) throw new Error('the name server is unavailable');
      return known as readonly LookupAddress[];
    }
    const sender = new UdpSender({ host: 'statsd.example', port: first.port, icmpWait, resolve });
    return {
      /** Sends a line in a flush of its own; what the flush finds out about the host is known afterwards. */
      async flush(line: string, ...addresses: typeof known) {
        known = addresses;
        await sender.open();
        await sender.send([line]);
        await nextTurn();
      },
      /** The lines at each address, once there are as many as expected. */
      async lines(...expected: readonly number[]) {
        for (const [index, receiver] of [first, second].entries()) {
          await receiver.until('all lines', () => receiver.lines.length === expected[index]);
        }
        return [first.lines.join(''), second.lines.join('')];
      },
      async [Symbol.asyncDispose]() {
        sender.close();
        for (const each of [first, second]) await each[Symbol.asyncDispose]();
      },
    };
  }

  it('is followed to its new address, but kept while that is one of several or the name cannot be resolved', async () => {
    await using named = await hostWith();
    const rounds = [[FIRST], [SECOND, FIRST], [], [SECOND], [SECOND]];
    for (const [index, known] of rounds.entries()) await named.flush(String(index), ...known);
    expect(await named.lines(3, 2)).toEqual(['012', '34']);
  });

  it('is reached at its next address when one refuses, also if one is listed twice, and that one stays in use', async () => {
    await using named = await hostWith(500);
    const addresses = [SILENT, SILENT, FIRST, SECOND];
    await expect(named.flush('a', ...addresses)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await expect(named.flush('b')).rejects.toThrow('the name server is unavailable');
    for (const line of 'cde') await named.flush(line, ...addresses);
    expect(await named.lines(3, 0)).toEqual(['cde', '']);
  });
});

describe('an address that cannot be used', () => {
  async function send(sender: LineSender): Promise<void> {
    await sender.open?.();
    await sender.send(['a:1|c']);
  }

  it.each<[reason: string, sender: (path: string) => LineSender, error: object]>([
    [
      'an unknown name, over TCP',
      () => new ConnectionSender({ to: { host: 'x.invalid', port: 1 } }),
      { syscall: 'getaddrinfo' },
    ],
    ['an unknown name, over UDP', () => new UdpSender({ host: 'x.invalid', port: 1 }), { syscall: 'getaddrinfo' }],
    ['no address', () => new UdpSender({ host: 'x', port: 1, resolve: async () => [] }), new Error('x has no address')],
    ['no stream socket', (path) => new ConnectionSender({ to: { path } }), { code: 'ENOENT' }],
    ['no datagram socket', (path) => new UnixDatagramSender(path), { message: 'No such file or directory' }],
    ['a file', () => new ConnectionSender({ to: { path: __filename } }), { code: /ECONNREFUSED|ENOTSOCK/ }],
  ])('rejects the statistics: %s', async (_, senderTo, error) => {
    using folder = new SocketFolder();
    const sender = senderTo(folder.path);
    await expect(send(sender)).rejects.toMatchObject(error);
    sender.close();
  });

  it('is explained when it is a stream socket instead of a datagram socket', async () => {
    using folder = new SocketFolder();
    await using _ = await UnixReceiver.start(folder.path);
    const sender = new UnixDatagramSender(folder.path);
    await expect(sender.send(['a:1|c'])).rejects.toThrow('this is a stream socket: use unixstream://');
  });
});

it('standard output is waited for, rejects what it does not accept, and is written to again afterwards', async () => {
  const written: { readonly text: string; readonly done: (error?: Error) => void }[] = [];
  const sender = streamSender('standard output', { write: (text, done) => void written.push({ text, done }) });
  let isOver = false;
  const rejected = sender.send(['a']).finally(() => (isOver = true));
  await nextTurn();
  expect(isOver).toBe(false);
  written[0]!.done(new Error('EPIPE'));
  await expect(rejected).rejects.toThrow('EPIPE');
  const sent = sender.send(['b', 'c']);
  written[1]!.done();
  await sent;
  expect(written.map(({ text }) => text)).toEqual(['a\n', 'b\nc\n']);
});
