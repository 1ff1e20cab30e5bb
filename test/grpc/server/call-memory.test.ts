import { ErrorCode, FrameType } from '../../../src/grpc/http2/protocol';
import { GrpcStatus } from '../../../src/grpc/method';
import { MethodObserver } from '../../../src/grpc/method-observer';
import { grpcGauges } from '../../../src/main/servers';
import { Statistics } from '../../../src/statistics/statistics';
import { prefixed } from '../../support/clients/http2-connection';
import { collectGarbage } from '../../support/processes/collect-garbage';
import { until } from '../../support/waiting/until';
import {
  bodiesOf,
  data,
  hello,
  ofType,
  resetsOf,
  rstStream,
  streamOf,
  sumOf,
  updatesOf,
  windowUpdate,
} from '../http2/frames';
import type { RawClient } from '../http2/raw-client';
import { callFrames, callHeaders, callRaw } from './raw-call';
import { Seen } from './servers';
import { passTime, sending, settled, start, statusOf } from './sessions';

const MIB = 2 ** 20;
const HOUR = 3_600_000;
const { RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED } = GrpcStatus;

/** An initial window of 0, with which no response can be sent. */
const closed = hello([4, 0]);
describe('incomplete requests', () => {
  const unfinished = prefixed(Buffer.alloc(MIB)).subarray(0, 16_000);

  it.each([
    ['with RESOURCE_EXHAUSTED', 'Echo', ErrorCode.NO_ERROR],
    ['without a status if that must wait for its window', 'Talk', ErrorCode.ENHANCE_YOUR_CALM],
  ])('that make no progress give way to others, %s', async (_how, method, code) => {
    const server = await start({ limits: { maxHeldBytes: 100_000 } });
    async function begin(name: string, frames: number): Promise<RawClient> {
      const client = sending(server, closed, callHeaders(1, name));
      if (name === 'Talk') client.send(data(1, prefixed('a')));
      client.send(data(1, unfinished), ...Array.from({ length: frames - 1 }, () => data(1, Buffer.alloc(16_000))));
      await settled(client);
      return client;
    }
    const slow = await begin(method, 4);
    passTime(900);
    await begin('Echo', 4);

    await slow.until('a reset', () => resetsOf(slow.frames).length > 0);
    expect(resetsOf(slow.frames)).toEqual([[1, code]]);
    if (method === 'Echo') expect(await statusOf(slow, 1)).toBe(RESOURCE_EXHAUSTED);
    expect(server.seen.rejected).toEqual(['request_memory']);
  });

  it('use no memory for bytes that are only announced, and do not keep the input chunks', async () => {
    const server = await start();
    const client = sending(server, hello());
    const calls = 200;
    collectGarbage();
    const before = process.memoryUsage().arrayBuffers;
    const filling = Array.from({ length: 4 }, () => Buffer.alloc(15_000));
    for (let at = 0; at < calls; at += 1) {
      // A rejected call that fills most of a chunk, then one byte of a message of 4 MiB.
      const [filler, begun] = [4 * at + 1, 4 * at + 3];
      client.send(callHeaders(filler, 'Nothing'), ...filling.map((bytes) => data(filler, bytes)));
      client.send(callHeaders(begun, 'Echo'), data(begun, Buffer.from([0, 0, 0x40, 0, 0, 1])));
    }
    await settled(client);
    // Garbage collection may free buffers with a delay.
    await until('the chunks are released', () => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers - before < (calls * 60_000) / 4;
    });

    expect(server.seen.messages).toEqual([]);
  });
});

describe('the messages of a bidirectional call', () => {
  it('count towards the memory limit with the objects that they take, until they are handled', async () => {
    const server = await start({ limits: { maxHeldBytesPerConnection: 80_000, pingStrikes: Infinity } });
    const body = [Buffer.concat(Array.from({ length: 2_000 }, () => prefixed('')))];
    const exhausted = String(RESOURCE_EXHAUSTED);
    expect(await callRaw(server.address, { method: 'Talk', body })).toMatchObject({ status: exhausted });

    const client = sending(server, hello(), windowUpdate(0, MIB), callHeaders(1, 'Talk'), windowUpdate(1, MIB));
    const message = prefixed('x'.repeat(8_000));
    for (let at = 0; at < 40; at += 1) {
      client.send(data(1, message.subarray(0, 500)), data(1, message.subarray(500)));
      await settled(client);
    }
    client.send(data(1, Buffer.alloc(0), true));
    expect(await statusOf(client, 1)).toBe(GrpcStatus.OK);
    expect(server.grpcServer.heldBytes).toBe(0);
  });

  it('are handled in turn with other calls of their connection', async () => {
    const messages = Buffer.concat(['a', 'b', 'c'].map((text) => prefixed(text)));
    const talk = Buffer.concat([callHeaders(1, 'Talk'), data(1, messages, true)]);
    const client = sending(await start(), hello(), talk, callFrames(3, 'Echo', 'd'));
    function answered(): number[] {
      return ofType(client.frames, FrameType.DATA).map(({ stream }) => stream);
    }
    await client.until('all answers', () => answered().length === 4);
    expect(answered()).toEqual([1, 3, 1, 1]);
  });

  it('get no WINDOW_UPDATE while their caller does not read the responses, and go on when it does', async () => {
    const client = sending(await start({ limits: { pingStrikes: 1_000 } }), closed, callHeaders(1, 'Talk'));
    const message = prefixed('x'.repeat(8_000));
    let sent = 0;
    for (let round = 0; round < 40; round += 1) {
      const granted = 65_535 + sumOf(updatesOf(client.frames, 1));
      for (; sent + message.length <= granted; sent += message.length) client.send(data(1, message));
      // One turn reads the messages, the next handles some of them.
      for (let turn = 0; turn < 2; turn += 1) await settled(client);
    }

    expect(sent).toBeGreaterThan(65_535);
    expect(sent).toBeLessThan(300_000);
    client.send(windowUpdate(1, MIB), windowUpdate(0, MIB));
    await client.until('all responses', () => sumOf(bodiesOf(client.frames, 1)) === sent);
    expect(resetsOf(client.frames)).toEqual([]);
  });
});

it('a server with more work than time counts and accounts for the calls that wait, whatever becomes of them', async () => {
  // Its process never waits for events, as it sees it, and then handles one call at a time.
  const busy = { idle: 0, active: 0, utilization: 1 };
  jest.spyOn(performance, 'eventLoopUtilization').mockReturnValue(busy);
  const seen = new Seen();
  const statistics = new Statistics(0);
  const options = { statistics, now: () => performance.now() };
  const limits = { pacedStreams: 1, maxHeldBytesPerConnection: 30_000, pingStrikes: Infinity };
  const { grpcServer, ...server } = await start({ observe: (path) => new MethodObserver(path, options), limits }, seen);
  grpcGauges(statistics, () => grpcServer);
  const client = sending(server, hello());
  let sent = 0;
  function send(message = 'x', ...fields: [string, string][]): number {
    sent += 1;
    client.send(callFrames(streamOf(sent), 'Hold', message, ...fields));
    return streamOf(sent);
  }
  function statistic(name: string): number | undefined {
    return new Map(statistics.entries()).get(`ratelimit_server.${name}`);
  }
  await until('a call waits', async () => {
    send();
    await settled(client);
    return grpcServer.waitingStreams > 0;
  });
  const handled = seen.held.length;
  expect([statistic('Hold.total_requests'), statistic('grpc.waiting_calls')]).toEqual([handled, sent - handled]);

  const { heldBytes, waitingStreams } = grpcServer;
  const message = 'long'.repeat(3_000);
  const [, , third] = [send(message), send(message), send(message)];
  expect(await statusOf(client, third)).toBe(RESOURCE_EXHAUSTED);
  // This one is not a request of the method.
  client.send(callHeaders(streamOf((sent += 1)), 'Hold'), data(streamOf(sent), Buffer.alloc(0), true));
  expect(await statusOf(client, streamOf(sent))).toBe(GrpcStatus.INTERNAL);
  expect(statistic('Hold.total_requests')).toBe(handled + 1);
  expect(statistic('grpc.held_bytes')).toBe(heldBytes + 2 * message.length);

  const [cancelled, late] = [send(), send('x', ['grpc-timeout', '1H'])];
  await until('they wait', () => grpcServer.waitingStreams === waitingStreams + 4);
  client.send(rstStream(cancelled));
  await until('one is cancelled', () => grpcServer.waitingStreams === waitingStreams + 3);
  passTime(2 * HOUR);
  expect(await statusOf(client, late)).toBe(DEADLINE_EXCEEDED);
  expect([statistic('Hold.total_requests'), seen.cancelled]).toEqual([handled + 3, []]);

  await until('all others are handled', () => {
    for (const held of seen.held.splice(0)) held.reply(Buffer.from('done'));
    return grpcServer.waitingStreams === 0 && seen.messages.filter((each) => each === message).length === 2;
  });
  expect(grpcServer.heldBytes).toBe(0);
});
