import { Socket } from 'node:dgram';
import { statsdLines } from '../../../../src/sinks/statistics/lines/statsd-lines';
import { SendingOutput } from '../../../../src/sinks/statistics/senders/sending-output';
import { UdpSender } from '../../../../src/sinks/statistics/senders/udp-sender';
import { Statistics } from '../../../../src/statistics/statistics';
import { recordingLog } from '../../../http/http-client';
import { UdpReceiver } from '../../../support/servers/statsd-receivers';

/** Four datagrams of one line each. */
const LINES = Array.from({ length: 4 }, (_, index) => `${'n'.repeat(1_000)}.${index}:1|c`);

function systemError(name: string): Error {
  return Object.assign(new Error(`send ${name}`), { code: name });
}

let receiver: UdpReceiver;
let sender: UdpSender;
/** The number of datagrams that the system accepts before it rejects one with the code. */
let rejectsAfter: number;
let code: string;
/** The code of an ICMP error that arrives directly before. */
let icmpCode: string | undefined;

beforeEach(async () => {
  receiver = await UdpReceiver.start();
  sender = new UdpSender({ host: '127.0.0.1', port: receiver.port, icmpWait: 1 });
  rejectsAfter = Infinity;
  icmpCode = undefined;
  // oxlint-disable-next-line unbound-method -- called with the socket
  const original = Socket.prototype.send as (
    this: Socket,
    datagram: Buffer,
    done: (error: Error | null) => void,
  ) => void;
  jest.spyOn(Socket.prototype, 'send').mockImplementation(function send(this: Socket, ...args: unknown[]) {
    const [datagram, done] = args as [Buffer, (error: Error | null) => void];
    rejectsAfter -= 1;
    if (rejectsAfter !== -1) return original.call(this, datagram, done);
    if (icmpCode !== undefined) this.emit('error', systemError(icmpCode));
    process.nextTick(done, systemError(code));
  });
});
afterEach(async () => {
  jest.restoreAllMocks();
  sender.close();
  await receiver[Symbol.asyncDispose]();
});

describe('a UdpSender whose system rejects a datagram', () => {
  it.each(['EPERM', 'ENOBUFS'])('reports after %s how many lines were sent before it', async (rejection) => {
    await sender.open();
    await sender.send(['first:1|c']);
    code = rejection;
    rejectsAfter = 2;
    await expect(sender.send(LINES)).rejects.toMatchObject({ name: 'PartialDeliveryError', delivered: 2 });
    await sender.open();
    await sender.send(['last:1|c']);
    await receiver.until('the last line', () => receiver.lines.includes('last:1|c'));
    expect(receiver.lines).toEqual(['first:1|c', ...LINES.slice(0, 2), 'last:1|c']);
  });

  it.each(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH'])(
    'reports no line as sent after %s, which may be an ICMP error for a datagram before',
    async (rejection) => {
      await sender.open();
      await sender.send(['first:1|c']);
      code = rejection;
      rejectsAfter = 2;
      await expect(sender.send(LINES)).rejects.toMatchObject({ name: 'Error', code });
    },
  );

  it.each(['ECONNREFUSED', 'EPERM'])(
    'reports no line as sent when %s has arrived before, as an event',
    async (event) => {
      await sender.open();
      await sender.send(['first:1|c']);
      code = 'EPERM';
      icmpCode = event;
      rejectsAfter = 2;
      await expect(sender.send(LINES)).rejects.toMatchObject({ name: 'Error', code: icmpCode });
    },
  );

  it('reports no line as sent before it has waited for ICMP errors, or when the first datagram is rejected', async () => {
    await sender.open();
    code = 'EPERM';
    rejectsAfter = 2;
    await expect(sender.send(LINES)).rejects.toMatchObject({ name: 'Error', code });
    await sender.open();
    await sender.send(['first:1|c']);
    rejectsAfter = 0;
    await expect(sender.send(LINES)).rejects.toMatchObject({ name: 'Error', code });
  });
});

describe('a SendingOutput over UDP', () => {
  it('sends every count once beside a name that is too long for a datagram, of which it warns once', async () => {
    const statistics = new Statistics(0);
    const names = Array.from({ length: 600 }, (_, index) => `c_${index}`);
    const long = 'x'.repeat(70_000);
    for (const name of [...names.slice(0, 300), long, ...names.slice(300)]) statistics.counter(name).add(1);
    const log = recordingLog();
    const output = new SendingOutput({ statistics, format: statsdLines({}), sender, log });
    for (let flush = 1; flush <= 3; flush += 1) {
      statistics.counter(`flush_${flush}`).add(1);
      statistics.counter(long).add(1);
      await output.flush();
      await receiver.until('the last counter', () => receiver.sum(`flush_${flush}`) === 1);
    }
    expect(names.map((name) => receiver.sum(name))).toEqual(names.map(() => 1));
    expect(log.lines).toEqual(['warn a statistic is not sent, as its name is too long for a datagram']);
  });

  it('sends the longest line that fits a datagram', async () => {
    await sender.open();
    const line = `${'x'.repeat(65_507 - ':1|c'.length)}:1|c`;
    await sender.send(['first:1|c', `y${line}`, line, 'last:1|c']);
    await receiver.until('the last line', () => receiver.lines.includes('last:1|c'));
    expect(receiver.lines).toEqual(['first:1|c', line, 'last:1|c']);
  });

  it('sends every count once when the system rejects a datagram in the middle of a flush', async () => {
    const statistics = new Statistics(0);
    const names = Array.from({ length: 300 }, (_, index) => `c_${index}.${'n'.repeat(60)}`);
    for (const name of names) statistics.counter(name).add(1);
    const output = new SendingOutput({ statistics, format: statsdLines({}), sender, log: recordingLog() });
    code = 'EPERM';
    // One datagram of gauges, and four of about twenty counters each.
    rejectsAfter = 5;
    await output.flush();
    await output.flush();
    statistics.counter('last').add(1);
    await output.flush();
    await receiver.until('the last counter', () => receiver.sum('last') === 1);
    expect(names.map((name) => receiver.sum(name))).toEqual(names.map(() => 1));
  });
});
