import { setImmediate as nextTurn } from 'node:timers/promises';
import { UdpSender } from '../../../../src/sinks/statistics/senders/udp-sender';
import { UdpReceiver } from '../../../support/servers/statsd-receivers';

const FIRST = { address: '127.0.0.1', family: 4 };
const SECOND = { address: '127.0.0.2', family: 4 };
/** No process listens on these. */
const SILENT = { address: '127.0.0.3', family: 4 };
const SILENT_TOO = { address: '127.0.0.4', family: 4 };

/** Two receivers on one port of two addresses. */
async function receivers() {
  for (;;) {
    const first = await UdpReceiver.start({ host: FIRST.address });
    try {
      return { first, second: await UdpReceiver.start({ host: SECOND.address, port: first.port }) };
    } catch {
      await first[Symbol.asyncDispose]();
    }
  }
}

describe('the host of a UdpSender', () => {
  let first: UdpReceiver;
  let second: UdpReceiver;
  let addresses: readonly (typeof FIRST)[];
  let lookups: number;
  let sender: UdpSender;
  beforeEach(async () => {
    ({ first, second } = await receivers());
    lookups = 0;
    addresses = [FIRST];
  });
  afterEach(async () => {
    sender.close();
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
  });

  function senderWith(resolveInterval: number, icmpWait = 1) {
    return new UdpSender({
      host: 'statsd.example',
      port: first.port,
      icmpWait,
      resolveInterval,
      resolve: async () => {
        lookups += 1;
        if (addresses.length === 0) throw new Error('the name server is unavailable');
        return addresses;
      },
    });
  }

  /** Sends a line in a flush of its own; what the flush finds out about the host is known afterwards. */
  async function flush(line: string) {
    await sender.open();
    await sender.send([line]);
    await nextTurn();
  }

  it('is followed to its new address', async () => {
    sender = senderWith(0);
    await flush('a:1|c');
    addresses = [SECOND];
    await flush('b:1|c');
    await flush('c:1|c');
    await second.until('the line', () => second.lines.length === 1);
    await first.until('the lines before', () => first.lines.length === 2);
    expect([first.lines, second.lines]).toEqual([['a:1|c', 'b:1|c'], ['c:1|c']]);
  });

  it('keeps its address while that is one of several, and while the name cannot be resolved', async () => {
    sender = senderWith(0);
    await flush('a:1|c');
    addresses = [SECOND, FIRST];
    await flush('b:1|c');
    await flush('c:1|c');
    addresses = [];
    await flush('d:1|c');
    await flush('e:1|c');
    await first.until('all lines', () => first.lines.length === 5);
    expect(lookups).toBe(5);
    expect(second.lines).toEqual([]);
  });

  it('is reached at its next address when one refuses, and that one stays in use', async () => {
    sender = senderWith(0, 500);
    addresses = [SILENT, FIRST, SECOND];
    await expect(flush('a:1|c')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    for (const line of ['b:1|c', 'c:1|c', 'd:1|c']) await flush(line);
    await first.until('all lines', () => first.lines.length === 3);
    expect(first.lines).toEqual(['b:1|c', 'c:1|c', 'd:1|c']);
    expect(second.lines).toEqual([]);
  });

  it('is tried at all addresses in turn, even if one is listed twice or the name is unavailable in between', async () => {
    sender = senderWith(3_600_000, 500);
    addresses = [SILENT, SILENT, SILENT_TOO];
    await expect(flush('a:1|c')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    addresses = [];
    await expect(flush('b:1|c')).rejects.toThrow('the name server is unavailable');
    addresses = [SILENT, SILENT, SILENT_TOO];
    await using late = await UdpReceiver.start({ host: SILENT.address, port: first.port });
    await expect(flush('c:1|c')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await flush('d:1|c');
    await late.until('the line', () => late.lines.length === 1);
    expect(late.lines).toEqual(['d:1|c']);
  });

  it('is resolved once per interval, not per flush', async () => {
    sender = senderWith(3_600_000);
    for (let line = 0; line < 20; line += 1) await flush(`a:${line}|c`);
    expect(lookups).toBe(1);
  });

  it('is resolved by the system', async () => {
    sender = new UdpSender({ host: 'localhost', port: first.port });
    await expect(sender.open()).resolves.toBeUndefined();
  });

  it('is not available without an address', async () => {
    sender = new UdpSender({ host: 'statsd.example', port: first.port, resolve: async () => [] });
    await expect(sender.open()).rejects.toThrow('statsd.example has no address');
  });
});
