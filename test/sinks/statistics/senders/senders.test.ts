import { Writable } from 'node:stream';
import { StreamSender } from '../../../../src/sinks/statistics/senders/stream-sender';
import { TcpSender } from '../../../../src/sinks/statistics/senders/connection-sender';
import { UdpSender } from '../../../../src/sinks/statistics/senders/udp-sender';
import { TcpReceiver, UdpReceiver } from '../../../support/servers/statsd-receivers';

describe('TcpSender', () => {
  it('terminates each line with a newline and encodes it as UTF-8', async () => {
    await using receiver = await TcpReceiver.start();
    const sender = new TcpSender({ host: '127.0.0.1', port: receiver.port });
    await sender.open();
    await sender.send(['a:1|c', 'ключ.é😀:2|c']);
    await sender.send(['lone.\ud800:3|c']);
    await receiver.until('three lines', () => receiver.lines.length === 3);
    expect(receiver.lines).toEqual(['a:1|c', 'ключ.é😀:2|c', 'lone.\ufffd:3|c']);
    sender.close();
  });

  it('delivers the lines although it is closed right after sending them', async () => {
    await using receiver = await TcpReceiver.start();
    const sender = new TcpSender({ host: '127.0.0.1', port: receiver.port });
    await sender.open();
    const lines = Array.from({ length: 20_000 }, (_, index) => `name.number.${index}:1|c`);
    await sender.send(lines);
    sender.close();
    await receiver.until('all lines', () => receiver.lines.length === lines.length);
    expect(receiver.lines).toEqual(lines);
  });

  it('rejects when no process listens, and connects again once one does', async () => {
    const stopped = await TcpReceiver.start();
    const { port } = stopped;
    await stopped[Symbol.asyncDispose]();
    const sender = new TcpSender({ host: '127.0.0.1', port });
    await expect(sender.open()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await expect(sender.send(['a:1|c'])).rejects.toThrow('the connection was lost');
    await using receiver = await TcpReceiver.start({ port });
    await sender.open();
    await sender.send(['a:1|c']);
    await receiver.until('the line', () => receiver.lines.length === 1);
    sender.close();
  });

  it('reconnects after the connection was reset while nothing was sent', async () => {
    await using receiver = await TcpReceiver.start();
    const sender = new TcpSender({ host: '127.0.0.1', port: receiver.port });
    await sender.open();
    await sender.send(['a:1|c']);
    await receiver.until('the line', () => receiver.lines.length === 1);
    await receiver.resetConnections();
    while (receiver.connections < 2) {
      await new Promise((resolve) => setImmediate(resolve));
      await sender.open();
    }
    await sender.send(['b:1|c']);
    await receiver.until('the next line', () => receiver.lines.length === 2);
    expect(receiver.lines).toEqual(['a:1|c', 'b:1|c']);
    sender.close();
  });

  it('keeps one connection open across flushes', async () => {
    await using receiver = await TcpReceiver.start();
    const sender = new TcpSender({ host: '127.0.0.1', port: receiver.port });
    for (const line of ['a:1|c', 'b:1|c', 'c:1|c']) {
      await sender.open();
      await sender.send([line]);
    }
    await receiver.until('three lines', () => receiver.lines.length === 3);
    expect(receiver.connections).toBe(1);
    sender.close();
  });

  it('rejects a host name without an address', async () => {
    const sender = new TcpSender({ host: 'nowhere.invalid', port: 8125 });
    await expect(sender.open()).rejects.toMatchObject({ syscall: 'getaddrinfo' });
  });

  it('times out and buffers no further lines when the receiver does not read', async () => {
    await using receiver = await TcpReceiver.start({ reads: false });
    const sender = new TcpSender({ host: '127.0.0.1', port: receiver.port, timeout: 1_000 });
    await sender.open();
    const lines = Array.from({ length: 1_000 }, () => 'x'.repeat(1_000));
    async function untilRejected() {
      for (;;) await sender.send(lines);
    }
    await expect(untilRejected()).rejects.toThrow('timed out after 1000 ms');
    await expect(sender.send(lines)).rejects.toThrow('the connection was lost');
    sender.close();
  });
});

describe('UdpSender', () => {
  it('packs lines into datagrams of up to 1432 bytes, and sends a longer line alone and unsplit', async () => {
    await using receiver = await UdpReceiver.start();
    const sender = new UdpSender({ host: '127.0.0.1', port: receiver.port, icmpWait: 1 });
    await sender.open();
    const short = Array.from({ length: 40 }, (_, index) => `é.${String(index).padStart(2, '0')}.${'x'.repeat(90)}:1|c`);
    const long = `${'y'.repeat(5_000)}:1|c`;
    await sender.send([...short, long, ...short]);
    await receiver.until('all lines', () => receiver.lines.length === 81);
    expect(receiver.lines).toEqual([...short, long, ...short]);
    const sizes = receiver.datagrams.map((datagram) => Buffer.byteLength(datagram));
    expect(sizes.filter((size) => size > 1432)).toEqual([5_004]);
    expect(sizes.filter((size) => size > 1300).length).toBeGreaterThanOrEqual(5);
    sender.close();
  });

  it('fills a datagram up to the last byte', async () => {
    await using receiver = await UdpReceiver.start();
    const sender = new UdpSender({ host: '127.0.0.1', port: receiver.port, icmpWait: 1 });
    await sender.open();
    await sender.send(['a'.repeat(700), 'b'.repeat(731), 'c'.repeat(700), 'd'.repeat(732)]);
    await receiver.until('all lines', () => receiver.lines.length === 4);
    expect(receiver.datagrams.map(({ length }) => length)).toEqual([1432, 700, 732]);
    sender.close();
  });

  it('rejects when the connection is refused, and delivers once a process listens', async () => {
    const stopped = await UdpReceiver.start();
    const { port } = stopped;
    await stopped[Symbol.asyncDispose]();
    const sender = new UdpSender({ host: '127.0.0.1', port, icmpWait: 500 });
    await sender.open();
    await expect(sender.send(['a:1|c'])).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await using receiver = await UdpReceiver.start({ port });
    await sender.open();
    await sender.send(['b:1|c']);
    await receiver.until('the line', () => receiver.lines.length === 1);
    sender.close();
  });

  it('rejects a host name without an address', async () => {
    const sender = new UdpSender({ host: 'nowhere.invalid', port: 8125 });
    await expect(sender.open()).rejects.toMatchObject({ syscall: 'getaddrinfo' });
    await expect(sender.send(['a:1|c'])).rejects.toThrow('the socket is closed');
    sender.close();
  });
});

describe('StreamSender', () => {
  it('waits for the reader of the stream', async () => {
    const read: (() => void)[] = [];
    const stream = new Writable({ write: (_chunk, _encoding, done) => void read.push(done) });
    const sender = new StreamSender('standard output', stream);
    await sender.open();
    let isSent = false;
    const sent = sender.send(['a', 'b']).then(() => (isSent = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isSent).toBe(false);
    read.shift()?.();
    await sent;
  });

  it('rejects what the output does not accept, and sends again when it does', async () => {
    const errors = [new Error('EPIPE'), undefined];
    const written: string[] = [];
    function write(text: string, done: (error?: Error) => void) {
      written.push(text);
      done(errors.shift());
    }
    const sender = new StreamSender('standard output', { write });
    await sender.open();
    await expect(sender.send(['a'])).rejects.toThrow('EPIPE');
    await sender.send(['b', 'c']);
    expect(written).toEqual(['a\n', 'b\nc\n']);
  });
});
