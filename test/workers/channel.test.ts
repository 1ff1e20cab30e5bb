import { once } from 'node:events';
import { constants } from 'node:http2';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { Readable } from 'node:stream';
import { firstValueFrom } from 'rxjs';
import type { Operation } from '../../src/counting/operation';
import { DecisionError } from '../../src/counting/decision-error';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import { LONGEST_TABLE_KEY } from '../../src/text/table-key';
import { Channel } from '../../src/workers/channel';
import { RemoteCounters, serveCounters } from '../../src/workers/counters';
import { WorkerRequests, serveRequests } from '../../src/workers/requests';
import { until } from '../support/waiting/until';
import { channelPair, duplexPair } from '../support/workers/channel-pair';
import { operation, stopWhenOver } from '../support/data/operations';

const MIB = 1024 * 1024;

describe('a channel', () => {
  it.each([1, 7, 99_991])('delivers messages of any length and text in order, in chunks of %i bytes', async (size) => {
    const { primary, worker } = channelPair(size);
    const received: unknown[] = [];
    worker.messages('counters').subscribe((message) => received.push(message));
    const messages = ['', '\n+.\u2028', '\ud800', 'ü'.repeat(size < 10 ? 1_000 : MIB), [1, null, { a: 'b' }]];
    for (const message of messages) {
      primary.send('counters', message);
      primary.send('statistics', 'another topic');
    }
    await until('all of them', () => received.length === messages.length);
    expect(received).toEqual(messages);
    primary.close();
  });

  it.each([
    ['is no message', '?[]\n'],
    ['is half a message', '["rules",{\n'],
    ['has no end', ' '.repeat(65 * MIB)],
  ])('closes, completes its topics, and then does nothing when a line %s', async (_, bytes) => {
    const [stream, other] = duplexPair();
    const channel = new Channel(stream);
    let isCompleted = false;
    channel.messages('rules').subscribe({ complete: () => (isCompleted = true) });
    channel.start();
    other.write(bytes);
    await firstValueFrom(channel.closed$);
    expect(isCompleted).toBe(true);
    channel.send('control', 'x');
    await channel.sent();
  });

  it('delivers what has arrived before it reads, and answers what arrives together in one write', async () => {
    const [stream, other] = duplexPair();
    const channel = new Channel(stream);
    const written: string[] = [];
    other.on('data', (chunk: Buffer) => written.push(String(chunk)));
    channel.receive('counters', (count: number) => channel.send('counters', count + 1));
    other.write('["counters",1]\n["counters",');
    other.write('2]\n');
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    channel.start();
    await until('it has answered', () => written.join('').split('\n').length === 3);
    other.write('["counters",3]\n["counters",4]\n');
    await until('it has answered again', () => written.join('').split('\n').length === 5);
    expect(written.join('')).toBe('["counters",2]\n["counters",3]\n["counters",4]\n["counters",5]\n');
    expect(written.at(-1)).toBe('["counters",4]\n["counters",5]\n');
    channel.close();
  });

  it('is congested while the other end does not read, and closes rather than keep any amount for it', async () => {
    const [stream, other] = duplexPair();
    const channel = new Channel(stream);
    let [sent, isClosed] = [0, false];
    channel.closed$.subscribe(() => (isClosed = true));
    channel.send('rules', 'x'.repeat(MIB - 100));
    void channel.sent().then(() => (sent += 1));
    expect(channel.isCongested).toBe(false);
    channel.send('rules', 'x'.repeat(100));
    expect([channel.isCongested, sent]).toEqual([true, 0]);
    other.resume();
    await until('everything is accepted', () => sent === 1 && !channel.isCongested);
    other.pause();
    for (let count = 0; count < 64; count += 1) {
      expect(isClosed).toBe(false);
      channel.send('rules', 'x'.repeat(MIB));
    }
    expect(isClosed).toBe(true);
  });
});

describe('requests to a worker', () => {
  const sockets: Socket[] = [];
  afterEach(() => sockets.splice(0).forEach((socket) => socket.destroy()));

  /** Both ends of a connection. */
  async function socketPair(): Promise<readonly [Socket, Socket]> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const accepted = once(server, 'connection');
    const own = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [other] = (await accepted) as [Socket];
    server.close();
    sockets.push(own, other);
    return [own, other];
  }

  /** The worker has a page of some megabytes, which it sends as it is read. */
  async function connected(methods: Parameters<typeof serveRequests>[1]) {
    const [own, other] = await socketPair();
    const page = { sent: 0, isEnded: false };
    serveRequests(other, methods, (_, response) => {
      response.on('close', () => (page.isEnded = true));
      function* write() {
        for (; page.sent < 1000; page.sent += 1) yield Buffer.alloc(64 * 1024);
      }
      Readable.from(write()).pipe(response);
    });
    return { requests: new WorkerRequests(own), page, end: () => other.destroy() };
  }

  it('return results, and fail with their error, while others are in progress', async () => {
    const { requests, page } = await connected({
      echo: async (parameters) => parameters,
      missing: () => Promise.reject(new DecisionError('store_timeout', 'the store is away')),
      broken: () => Promise.reject(new Error('a fault')),
    });
    const long = { long: 'ü'.repeat(3 * MIB) };
    const stream = requests.get('/page');
    expect(await requests.call('echo', long)).toEqual([long]);
    await expect(requests.call('missing', {})).rejects.toEqual(new DecisionError('store_timeout', 'the store is away'));
    await expect(requests.call('broken', {})).rejects.toEqual(new Error('a fault'));
    expect(page.sent).toBeLessThan(1000);
    stream.close(constants.NGHTTP2_CANCEL);
    await until('it is cancelled', () => page.isEnded);
  });

  it('return nothing when the worker stands still, or ends before it has answered, but wait for what it has begun', async () => {
    let finish: (result: string) => void = () => undefined;
    const { requests, end } = await connected({ slow: () => new Promise((resolve) => (finish = resolve)) });
    const [stopped] = await socketPair();
    const slow = requests.call('slow', {}, 2_000);
    // When this has ended, so has the time of the other.
    expect(await new WorkerRequests(stopped).call('slow', {}, 2_000)).toEqual([]);
    finish('done');
    expect(await slow).toEqual(['done']);
    const cut = requests.call('slow', {});
    end();
    expect([await cut, await requests.call('slow', {})]).toEqual([[], []]);
  });
});

describe('counters in the memory of the primary', () => {
  /** The counts of batches, applied to counters at once. */
  function countsOf(counters: RemoteCounters | MemoryCounters, batches: readonly (readonly Operation[])[]) {
    return Promise.all(batches.map((batch) => firstValueFrom(counters.apply(batch))));
  }

  it('give a worker the counts that it would get in one process, for calls of any size, and fail when the primary ends', async () => {
    const keys = Array.from({ length: 1000 }, (_, index) => `${index}`.padEnd(LONGEST_TABLE_KEY, 'é'));
    const group = stopWhenOver();
    const guarded = keys.map((key) => operation(key, 1, { limit: 3, group }));
    const large = [...keys.slice(0, 950).map((key) => operation(key, 1, { limit: 3 })), ...guarded];
    // The lone surrogate would become another key in UTF-8.
    const small = ['\ud800', '\ud801', '\ud800'].map((key, hits) => operation(key, hits, { limit: 3 }));
    const batches = [large, small, large, small, large];
    const [memory, alone] = [1, 2].map(() => new MemoryCounters({ maxKeys: 10_000, now: () => 0 }));
    const { primary, worker } = channelPair();
    serveCounters(primary, (batch) => memory!.applyNow(batch));
    const counters = new RemoteCounters(worker, 0);
    expect(await countsOf(counters, batches)).toEqual(await countsOf(alone!, batches));
    const inFlight = countsOf(counters, [small]);
    primary.close();
    const failure = { name: 'DecisionError', code: 'store_failed' };
    await expect(inFlight).rejects.toMatchObject(failure);
    await expect(countsOf(counters, [small])).rejects.toMatchObject(failure);
    await Promise.all([counters, memory!, alone!].map((each) => each.close()));
  });

  it('get every operation as it was, whichever of its numbers are those of the operation before', async () => {
    const group = stopWhenOver();
    const over = stopWhenOver(true);
    const changes = [
      {},
      { hits: 2 },
      { windowSeconds: 3600 },
      { limit: 4 },
      { group },
      { group },
      { group: over },
      { group: { ...over } },
      { group: undefined },
    ];
    const sent = changes.map((_, last) => {
      const { hits, ...parts } = Object.assign({ hits: 1, limit: 3 }, ...changes.slice(0, last + 1));
      return operation('k', hits, parts);
    });
    const received: Operation[] = [];
    const { primary, worker } = channelPair();
    serveCounters(primary, (operations) => {
      received.push(...operations);
      return operations.map(() => 1);
    });
    const counters = new RemoteCounters(worker, 0);
    await firstValueFrom(counters.apply([...sent, ...sent]));
    expect(received).toEqual([...sent, ...sent]);
    primary.close();
    await counters.close();
  });
});
