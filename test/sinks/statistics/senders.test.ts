import { once } from 'node:events';
import { Writable } from 'node:stream';
import { StreamSender } from '../../../src/sinks/statistics/senders/stream-sender';
import { TcpSender } from '../../../src/sinks/statistics/senders/connection-sender';
import { UdpSender } from '../../../src/sinks/statistics/senders/udp-sender';
import { TcpReceiver, UdpReceiver } from './receivers';

describe('lines over TCP', () => {
  it('end in a newline each, and are UTF-8', async () => {
    await using receiver = await TcpReceiver.start();
    const sender = new TcpSender({ host: '127.0.0.1', port: receiver.port });
    await sender.open();
    await sender.send(['a:1|c', 'ключ.é😀:2|c']);
    await sender.send(['lone.\ud800:3|c']);
    await receiver.until('three lines', () => receiver.lines.length === 3);
    expect(receiver.lines).toEqual(['a:1|c', 'ключ.é😀:2|c', 'lone.\ufffd:3|c']);
    sender.close();
  });

  it('are delivered although the connection is closed right behind them', async () => {
    await using receiver = await TcpReceiver.start();
    const sender = new TcpSender({ host: '127.0.0.1', port: receiver.port });
    await sender.open();
    const lines = Array.from({ length: 20_000 }, (_, index) => `name.number.${index}:1|c`);
    await sender.send(lines);
    sender.close();
    await receiver.until('all lines', () => receiver.lines.length === lines.length);
    expect(receiver.lines).toEqual(lines);
  });

  it('reject when nobody listens, and go over a new connection once somebody does', async () => {
    const gone = await TcpReceiver.start();
    const { port } = gone;
    await gone[Symbol.asyncDispose]();
    const sender = new TcpSender({ host: '127.0.0.1', port });
    await expect(sender.open()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await expect(sender.send(['a:1|c'])).rejects.toThrow('the connection was lost');
    await using receiver = await TcpReceiver.start({ port });
    await sender.open();
    await sender.send(['a:1|c']);
    await receiver.until('the line', () => receiver.lines.length === 1);
    sender.close();
  });

  it('outlive a connection that is reset while nothing is sent', async () => {
    await using receiver = await TcpReceiver.start();
    const sender = new TcpSender({ host: '127.0.0.1', port: receiver.port });
    await sender.open();
    await sender.send(['a:1|c']);
    await receiver.until('the line', () => receiver.lines.length === 1);
    await receiver.cut();
    while (receiver.connections < 2) {
      await new Promise((resolve) => setImmediate(resolve));
      await sender.open();
    }
    await sender.send(['b:1|c']);
    await receiver.until('the next line', () => receiver.lines.length === 2);
    expect(receiver.lines).toEqual(['a:1|c', 'b:1|c']);
    sender.close();
  });

  it('keep one connection while it lasts', async () => {
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

  it('reject for a host that has no address', async () => {
    const sender = new TcpSender({ host: 'nowhere.invalid', port: 8125 });
    await expect(sender.open()).rejects.toMatchObject({ syscall: 'getaddrinfo' });
  });

  it('reject, and hold no more than their own bytes, when they are not read', async () => {
    await using receiver = await TcpReceiver.start({ reads: false });
    const sender = new TcpSender({ host: '127.0.0.1', port: receiver.port, patience: 200 });
    await sender.open();
    const lines = Array.from({ length: 1_000 }, () => 'x'.repeat(1_000));
    async function untilRefused() {
      for (;;) await sender.send(lines);
    }
    await expect(untilRefused()).rejects.toThrow('nothing was taken within 200 ms');
    await expect(sender.send(lines)).rejects.toThrow('the connection was lost');
    sender.close();
  });
});

describe('lines over UDP', () => {
  it('share datagrams as far as 1432 bytes go; a longer one travels alone, uncut', async () => {
    await using receiver = await UdpReceiver.start();
    const sender = new UdpSender({ host: '127.0.0.1', port: receiver.port, refusalTime: 1 });
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

  it('fill a datagram to the last byte', async () => {
    await using receiver = await UdpReceiver.start();
    const sender = new UdpSender({ host: '127.0.0.1', port: receiver.port, refusalTime: 1 });
    await sender.open();
    await sender.send(['a'.repeat(700), 'b'.repeat(731), 'c'.repeat(700), 'd'.repeat(732)]);
    await receiver.until('all lines', () => receiver.lines.length === 4);
    expect(receiver.datagrams.map(({ length }) => length)).toEqual([1432, 700, 732]);
    sender.close();
  });

  it('reject when the port is refused, and arrive once somebody listens', async () => {
    const gone = await UdpReceiver.start();
    const { port } = gone;
    await gone[Symbol.asyncDispose]();
    const sender = new UdpSender({ host: '127.0.0.1', port });
    await sender.open();
    await expect(sender.send(['a:1|c'])).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await using receiver = await UdpReceiver.start({ port });
    await sender.open();
    await sender.send(['b:1|c']);
    await receiver.until('the line', () => receiver.lines.length === 1);
    sender.close();
  });

  it('reject for a host that has no address', async () => {
    const sender = new UdpSender({ host: 'nowhere.invalid', port: 8125 });
    await expect(sender.open()).rejects.toMatchObject({ syscall: 'getaddrinfo' });
    await expect(sender.send(['a:1|c'])).rejects.toThrow('the socket is closed');
    sender.close();
  });
});

describe('lines into a stream', () => {
  it('wait for its reader', async () => {
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

  it('reject for ever when it has failed, and its errors end nothing', async () => {
    const stream = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')), autoDestroy: false });
    const sender = new StreamSender('standard output', stream);
    await expect(sender.send(['a'])).rejects.toThrow('EPIPE');
    await expect(sender.open()).rejects.toThrow('EPIPE');
    const late = once(stream, 'error');
    stream.emit('error', new Error('late'));
    await late;
  });
});
