import { setImmediate as nextTurn } from 'node:timers/promises';
import { firstValueFrom } from 'rxjs';
import { jsonFrames, sendJson } from '../../../src/workers/channel/json-frames';
import { StreamChannel } from '../../../src/workers/channel/stream-channel';
import { TOPICS } from '../../../src/workers/channel/topics';
import { channelPair, duplexPair } from '../../support/workers/channel-pair';
import { until } from '../../support/waiting/until';

const MIB = 1024 * 1024;

describe('a channel', () => {
  it('delivers the frames of each topic in order, in both directions', async () => {
    const { primary, worker } = channelPair();
    const inWorker: string[] = [];
    const inPrimary: string[] = [];
    worker.frames(TOPICS.rules).subscribe((body) => inWorker.push(`rules ${body.toString()}`));
    worker.frames(TOPICS.control).subscribe((body) => inWorker.push(`control ${body.toString()}`));
    primary.frames(TOPICS.control).subscribe((body) => inPrimary.push(`control ${body.toString()}`));
    primary.send(TOPICS.rules, 'a');
    primary.send(TOPICS.control, 'b');
    primary.send(TOPICS.rules, 'c');
    worker.send(TOPICS.control, 'd');
    await until('all have arrived', () => inWorker.length === 3 && inPrimary.length === 1);
    expect(inWorker).toEqual(['rules a', 'control b', 'rules c']);
    expect(inPrimary).toEqual(['control d']);
  });

  it('sends the frames of one callback in one write', async () => {
    const writes: number[] = [];
    const { primary, worker } = channelPair({ onWrite: (bytes) => writes.push(bytes.length) });
    let arrived = 0;
    worker.frames(TOPICS.counters).subscribe(() => (arrived += 1));
    for (let count = 0; count < 10; count += 1) primary.send(TOPICS.counters, 'x');
    await until('they have arrived', () => arrived === 10);
    primary.send(TOPICS.counters, 'x');
    await until('the last has arrived', () => arrived === 11);
    expect(writes).toEqual([60, 6]);
  });

  it('copies what it sends', async () => {
    const { primary, worker } = channelPair();
    const body$ = firstValueFrom(worker.frames(TOPICS.counters));
    const body = Buffer.from('before');
    primary.send(TOPICS.counters, body);
    body.fill('x');
    expect((await body$).toString()).toBe('before');
  });

  it('delivers messages as JSON', async () => {
    const { primary, worker } = channelPair();
    const message$ = firstValueFrom(jsonFrames<{ ready: boolean }>(worker, TOPICS.control));
    sendJson(primary, TOPICS.control, { ready: true });
    expect(await message$).toEqual({ ready: true });
  });

  it('drops the frames of a topic without subscriber and delivers the others', async () => {
    const { primary, worker } = channelPair();
    const body$ = firstValueFrom(worker.frames(TOPICS.rules));
    primary.send(TOPICS.health, 'dropped');
    primary.send(TOPICS.rules, 'kept');
    expect((await body$).toString()).toBe('kept');
  });

  it('reports to both ends that it is closed, also later, completes its topics, and then does nothing', async () => {
    const { primary, worker } = channelPair();
    const completed: string[] = [];
    worker.frames(TOPICS.rules).subscribe({ complete: () => completed.push('rules') });
    worker.drained$.subscribe({ complete: () => completed.push('drained$') });
    await nextTurn();
    primary.close();
    await firstValueFrom(worker.closed$);
    await firstValueFrom(worker.closed$);
    await firstValueFrom(primary.closed$);
    expect(completed).toEqual(['rules', 'drained$']);
    worker.send(TOPICS.control, 'x');
    primary.send(TOPICS.control, 'x');
  });

  it('closes when the stream fails', async () => {
    const [stream] = duplexPair();
    const channel = new StreamChannel(stream);
    channel.start();
    stream.destroy(new Error('EPIPE'));
    await expect(firstValueFrom(channel.closed$)).resolves.toBeUndefined();
  });

  it('closes when what arrives is no frame', async () => {
    const [stream, other] = duplexPair();
    const channel = new StreamChannel(stream);
    channel.start();
    other.write(Buffer.alloc(100, 255));
    await expect(firstValueFrom(channel.closed$)).resolves.toBeUndefined();
  });

  it('is congested while the other end does not read, and reports when everything is accepted', async () => {
    const [stream, other] = duplexPair();
    const channel = new StreamChannel(stream);
    let drained = 0;
    channel.drained$.subscribe(() => (drained += 1));
    channel.send(TOPICS.requests, Buffer.alloc(MIB / 2));
    expect(channel.isCongested).toBe(false);
    channel.send(TOPICS.requests, Buffer.alloc(MIB / 2));
    expect(channel.isCongested).toBe(true);
    for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    expect(channel.isCongested).toBe(true);
    expect(drained).toBe(0);
    other.resume();
    await until('everything is accepted', () => drained === 1);
    expect(channel.isCongested).toBe(false);
  });

  it('closes rather than keep any amount for an end that does not read', async () => {
    const [stream] = duplexPair();
    const channel = new StreamChannel(stream);
    for (let count = 0; count < 64; count += 1) channel.send(TOPICS.rules, Buffer.alloc(MIB - 5));
    await nextTurn();
    let isClosed = false;
    channel.closed$.subscribe(() => (isClosed = true));
    expect(isClosed).toBe(false);
    channel.send(TOPICS.rules, 'x');
    expect(isClosed).toBe(true);
  });
});
