import { type Client, status } from '@grpc/grpc-js';
import { BehaviorSubject } from 'rxjs';
import { ErrorCode, Flag, FrameType } from '../../../src/grpc/http2/protocol';
import { GrpcStatus, type UnaryHandler } from '../../../src/grpc/method';
import { healthService } from '../../../src/grpc/server/health-service';
import { prefixed } from '../../support/clients/http2-connection';
import fc from '../../support/data/properties';
import { until } from '../../support/waiting/until';
import {
  type Frame,
  bodiesOf,
  data,
  fieldsOf,
  goawaysOf,
  hello,
  ofType,
  ping,
  resetsOf,
  rstStream,
  streamOf,
} from '../http2/frames';
import type { RawClient } from '../http2/raw-client';
import { callFrames, callHeaders } from './raw-call';
import { Seen, pass, unaryCall } from './servers';
import { clientOf, passTime, sending, settled, start, statusOf } from './sessions';

const MIB = 2 ** 20;
const HOUR = 3_600_000;
const { DEADLINE_EXCEEDED, UNAVAILABLE } = GrpcStatus;

async function call(client: Client, method: string, message: Buffer | string, options = {}): Promise<string> {
  return (await unaryCall(client, `/test.Service/${method}`, Buffer.from(message as string), options)).toString();
}

it('a grpc-js client sends messages of up to 4 MiB, with a deadline', async () => {
  const client = clientOf(await start(), { 'grpc.max_receive_message_length': -1 });

  const deadline = Date.now() + HOUR;
  expect(await call(client, 'Echo', Buffer.alloc(4 * MIB, 'x'), { deadline })).toHaveLength(4 * MIB);
  const tooLarge = call(client, 'Echo', Buffer.alloc(4 * MIB + 1));
  await expect(tooLarge).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
});

describe('a status message', () => {
  it('is encoded as visible ASCII without outer spaces, at most 1 KiB long', async () => {
    const fail: UnaryHandler = (message, failing) => {
      failing.fail(GrpcStatus.NOT_FOUND, String(JSON.parse(Buffer.from(message).toString())));
    };
    const client = sending(await start({ unary: new Map([['/test.Service/Fail', fail]]) }), hello());
    let calls = 0;
    async function encodedOf(message: string): Promise<string> {
      const stream = streamOf((calls += 1));
      client.send(callFrames(stream, 'Fail', JSON.stringify(message)));
      await statusOf(client, stream);
      const [{ payload }] = ofType(client.frames, FrameType.HEADERS, stream) as [Frame];
      return fieldsOf(payload)['grpc-message'] ?? '';
    }
    const character = fc.oneof(fc.nat(0x7f), fc.nat(0x10ffff)).map((point) => String.fromCodePoint(point));
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: character, maxLength: 600 }), async (message) => {
        const encoded = await encodedOf(message);
        expect(encoded).toMatch(/^([!-~]([ -~]*[!-~])?)?$/);
        expect(encoded.length).toBeLessThanOrEqual(1_024);
        expect(Buffer.from(message).toString().startsWith(decodeURIComponent(encoded))).toBe(true);
      }),
      { numRuns: 300 },
    );
    expect(await encodedOf(`${'a'.repeat(1_022)}   b`)).toBe('a'.repeat(1_022));
    expect(await encodedOf('\ud800')).toBe('%EF%BF%BD');
  });

  it('is left out when it exceeds the SETTINGS_MAX_HEADER_LIST_SIZE of the client', async () => {
    const server = await start();
    const message = 'x'.repeat(300);
    const failed = { ':status': '200', 'content-type': 'application/grpc', 'grpc-status': '5' };
    for (const [settings, more] of [
      [[], { 'grpc-message': message }],
      [[[6, 200]], {}],
    ] as const) {
      const client = sending(server, hello(...settings), callFrames(1, 'Fail', `5 ${message}`));
      expect(await statusOf(client, 1)).toBe(5);
      const [{ payload }] = ofType(client.frames, FrameType.HEADERS, 1) as [Frame];
      expect(fieldsOf(payload)).toEqual({ ...failed, ...more });
    }
  });
});

describe('the deadline of a call', () => {
  it.each([
    ['3H', 10_800_000],
    ['12M', 720_000],
    ['45S', 45_000],
    ['99999999m', 99_999_999],
    ['2000u', 2],
    ['3000000n', 3],
  ])('is as many milliseconds away as its grpc-timeout says: %s, %i', async (timeout, milliseconds) => {
    let now = performance.now();
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    const client = sending(
      await start(),
      hello(),
      callFrames(1, 'Hold', 'x', ['grpc-timeout', timeout]),
      callFrames(3, 'Hold', 'x', ['grpc-timeout', `${milliseconds - 1}m`]),
    );
    await settled(client);
    now += milliseconds - 0.5;
    expect(await statusOf(client, 3)).toBe(DEADLINE_EXCEEDED);
    expect(ofType(client.frames, FrameType.HEADERS, 1)).toEqual([]);
    now += 0.5;
    expect(await statusOf(client, 1)).toBe(DEADLINE_EXCEEDED);
  });

  it('prevents its handler from running when it has passed before the call is scheduled', async () => {
    const server = await start();
    const late = callFrames(1, 'Echo', 'late', ['grpc-timeout', '0n']);
    const client = sending(server, hello(), late, callFrames(3, 'Echo', 'in time', ['grpc-timeout', '1H']));

    expect([await statusOf(client, 1), await statusOf(client, 3)]).toEqual([DEADLINE_EXCEEDED, GrpcStatus.OK]);
    expect(server.seen.messages).toEqual(['in time']);
  });

  it('ends the call with DEADLINE_EXCEEDED and cancels it in its handler once, also when its stream is open', async () => {
    const server = await start();
    const { seen } = server;
    const timeout: [string, string] = ['grpc-timeout', '1H'];
    const talk = Buffer.concat([callHeaders(3, 'Talk', timeout), data(3, prefixed('a'))]);
    const client = sending(server, hello(), callFrames(1, 'Hold', 'x', timeout), talk);
    await client.until('a message', () => client.frames.some(({ type }) => type === FrameType.DATA));
    passTime(2 * HOUR);

    expect([await statusOf(client, 1), await statusOf(client, 3)]).toEqual([DEADLINE_EXCEEDED, DEADLINE_EXCEEDED]);
    expect(seen.cancelled).toEqual(['deadline_exceeded', 'deadline_exceeded']);
    seen.held[0]!.reply(Buffer.from('too late'));
    seen.held[0]!.fail(GrpcStatus.INTERNAL, 'too late');
    await settled(client);
    expect(ofType(client.frames, FrameType.HEADERS, 1)).toHaveLength(1);
  });

  it('is 30 seconds away for an incomplete request without a grpc-timeout', async () => {
    const server = await start();
    const client = sending(server, hello(), callHeaders(1, 'Echo'));
    await settled(client);
    passTime(30_100);

    expect(await statusOf(client, 1)).toBe(DEADLINE_EXCEEDED);
    expect(server.seen.rejected).toEqual(['request_timeout']);
  });
});

describe('a cancelled call', () => {
  it.each([
    ['its caller resets the stream', (client: RawClient) => void client.send(rstStream(1))],
    // One that is only closed could still read: half of it is open for thirty seconds.
    ['its connection is reset', (client: RawClient) => void client.socket.resetAndDestroy()],
  ])('is cancelled in its handler once when %s, also if its handler says later how', async (_title, end) => {
    const server = await start();
    const { seen } = server;
    const client = sending(server, hello(), callFrames(1, 'Hold'), callFrames(3, 'Count', '-1'));
    await until('both calls have begun', () => seen.held.length === 1 && seen.opened.length === 1);
    client.send(rstStream(3));
    await settled(client);
    end(client);
    await until('the call is cancelled', () => seen.cancelled.length > 0);
    seen.held[0]!.reply(Buffer.from('too late'));
    expect([seen.cancelled, seen.internalErrors]).toEqual([['cancelled'], []]);
    await until('the stream is over', () => server.grpcServer.openStreams === 0);
    seen.opened[0]!.onCancel({ cancel: (cause) => seen.cancelled.push(`${cause} later`) });
    expect(seen.cancelled).toEqual(['cancelled', 'cancelled later']);
  });

  it('is handled only if it is a report, once its message has been read, when it is cancelled or late before', async () => {
    const server = await start({ limits: { maxConcurrentStreams: 10 } });
    const { seen } = server;
    const calls = ['Hold', 'Report'].flatMap((method, at) => [
      callFrames(1 + 4 * at, method, `${method} reset`),
      rstStream(1 + 4 * at),
      callFrames(3 + 4 * at, method, `${method} late`, ['grpc-timeout', '0m']),
    ]);
    const unread = [callHeaders(9, 'Report'), data(9, prefixed('unread').subarray(0, 7)), rstStream(9)];
    // In one chunk, so that no call has run before it is reset.
    const client = sending(server, Buffer.concat([hello(), ...calls, ...unread]));
    expect(await statusOf(client, 3)).toBe(DEADLINE_EXCEEDED);
    await until('both reports are cancelled', () => seen.cancelled.length === 2);
    expect(seen.messages).toEqual(['Report reset', 'Report late']);
    expect([seen.cancelled, seen.internalErrors]).toEqual([['cancelled', 'deadline_exceeded'], []]);
    expect(server.grpcServer.heldBytes).toBe(0);
    await until('no slot is taken', () => server.grpcServer.openStreams === 0);
  });

  it('frees its slot only when its handler can be cancelled', async () => {
    const server = await start({ limits: { maxConcurrentStreams: 2 } });
    const { seen } = server;
    const client = sending(server, hello());
    for (let at = 0; at < 12; at += 1) {
      client.send(callFrames(streamOf(at), at < 10 ? 'Hold' : 'Busy'));
      await until('the call has begun', () => seen.held.length === at + 1);
      client.send(rstStream(streamOf(at)));
    }
    await until('all are cancelled', () => seen.cancelled.length === 10);
    expect(resetsOf(client.frames)).toEqual([]);
    await client.send(callFrames(101, 'Hold')).until('a rejection', () => resetsOf(client.frames).length > 0);
    expect(resetsOf(client.frames)).toEqual([[101, ErrorCode.REFUSED_STREAM]]);
  });
});

it('the calls of a connection that has reached its age go on until the grace is over, a Watch too, and then end with UNAVAILABLE and are cancelled', async () => {
  const seen = new Seen();
  const health$ = new BehaviorSubject({ healthy: true });
  const watch = healthService(health$).streaming.get('/grpc.health.v1.Health/Watch')!;
  const limits = { maxAgeMs: HOUR, maxAgeGraceMs: HOUR };
  const server = await start({ limits, streaming: new Map([['/test.Service/Watch', watch]]) }, seen);
  const client = sending(server, hello(), callFrames(1, 'Hold'), callFrames(3, 'Hold'));
  client.send(callHeaders(5, 'Watch'), data(5, prefixed(''), true));
  function watched(): number {
    return bodiesOf(client.frames, 5).length;
  }
  await client.until('the first status', () => watched() === 1);
  passTime(2 * HOUR);
  await client.until('GOAWAY', () => goawaysOf(client.frames).length === 1);
  client.send(ping(ofType(client.frames, FrameType.PING).at(-1)!.payload.toString('latin1'), Flag.ACK));
  await client.until('the final GOAWAY', () => goawaysOf(client.frames).length === 2);
  health$.next({ healthy: false });
  seen.held[0]!.reply(Buffer.from('answered'));
  await client.until('the second status', () => watched() === 2);
  expect(await statusOf(client, 1)).toBe(GrpcStatus.OK);
  expect([health$.observed, seen.cancelled]).toEqual([true, []]);
  passTime(HOUR);

  expect([await statusOf(client, 3), await statusOf(client, 5)]).toEqual([UNAVAILABLE, UNAVAILABLE]);
  await client.until('the end', () => client.isEnded);
  expect(resetsOf(client.frames)).toEqual([]);
  expect([health$.observed, seen.cancelled]).toEqual([false, ['cancelled']]);
});

it('drain lets unary calls finish and ends streams with UNAVAILABLE', async () => {
  const server = await start();
  const client = clientOf(server);
  await call(client, 'Echo', 'first');
  const held = call(client, 'Hold', 'x');
  await until('the call has begun', () => server.seen.held.length === 1);
  const talk = client.makeBidiStreamRequest('/test.Service/Talk', pass, pass);
  const ended = new Promise((resolve) => talk.on('error', resolve));
  await new Promise((resolve) => talk.once('data', resolve).write(Buffer.from('a')));
  const drained = server.grpcServer.drain(HOUR);
  server.seen.held[0]!.reply(Buffer.from('answered'));

  expect(await held).toBe('answered');
  expect(await ended).toMatchObject({ code: status.UNAVAILABLE });
  await drained;
});
