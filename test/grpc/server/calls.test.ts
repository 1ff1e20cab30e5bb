import { Client, credentials, status } from '@grpc/grpc-js';
import { BehaviorSubject } from 'rxjs';
import { ErrorCode, Flag, FrameType } from '../../../src/grpc/http2/protocol';
import { GrpcStatus } from '../../../src/grpc/method';
import { MethodObserver } from '../../../src/grpc/method-observer';
import { healthService } from '../../../src/grpc/server/health-service';
import { encodeStatusMessage } from '../../../src/grpc/server/responses';
import { parseTimeout } from '../../../src/grpc/server/requests';
import { grpcGauges } from '../../../src/main/servers';
import { Statistics } from '../../../src/statistics/statistics';
import { prefixed } from '../../support/clients/http2-connection';
import fc from '../../support/data/properties';
import { collectGarbage } from '../../support/processes/collect-garbage';
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
  sumOf,
  updatesOf,
  windowUpdate,
} from '../http2/frames';
import { type RawClient, connectPlain } from '../http2/raw-client';
import { callFrames, callHeaders, callRaw } from './raw-call';
import { Seen, type TestServer, pass, startServer, unaryCall } from './servers';

const MIB = 2 ** 20;
const HOUR = 3_600_000;
const { RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED, UNAVAILABLE } = GrpcStatus;

const disposables: (() => unknown)[] = [];
afterEach(async () => {
  for (const dispose of disposables.splice(0).toReversed()) await dispose();
  jest.restoreAllMocks();
  passed = 0;
});

async function start(...options: Parameters<typeof startServer>): Promise<TestServer> {
  const server = await startServer(...options);
  disposables.push(() => server.close());
  return server;
}

function clientOf({ address }: TestServer, options = {}): Client {
  const client = new Client(`127.0.0.1:${address.port}`, credentials.createInsecure(), options);
  disposables.push(() => client.close());
  return client;
}
async function call(client: Client, method: string, message: Buffer | string, options = {}): Promise<string> {
  return (await unaryCall(client, `/test.Service/${method}`, Buffer.from(message as string), options)).toString();
}

/** An initial window of 0, with which no response can be sent. */
const closed = hello([4, 0]);
/** A client that has sent these bytes. */
function sending({ address }: Pick<TestServer, 'address'>, ...bytes: Buffer[]): RawClient {
  const client = connectPlain(address).send(...bytes);
  disposables.push(() => client.close());
  return client;
}
/** The gRPC status of a stream, once it has one. */
async function statusOf(client: RawClient, stream: number): Promise<number> {
  function last(): string | undefined {
    const frame = ofType(client.frames, FrameType.HEADERS, stream).at(-1);
    return frame && fieldsOf(frame.payload)['grpc-status'];
  }
  await client.until(`the status of stream ${stream}`, () => last() !== undefined);
  return Number(last());
}
async function settled(client: RawClient): Promise<void> {
  const opaque = String(client.frames.length).padStart(8, '-');
  client.send(ping(opaque));
  await client.until('the end of the turn', () => client.isAcknowledged(opaque));
}
const realNow = performance.now.bind(performance);
let passed = 0;
/** Lets the server believe that time has passed. */
function passTime(ms: number): void {
  passed += ms;
  jest.spyOn(performance, 'now').mockImplementation(() => realNow() + passed);
}

describe('a grpc-js client', () => {
  it('sends messages of up to 4 MiB, with a deadline', async () => {
    const client = clientOf(await start(), { 'grpc.max_receive_message_length': -1 });

    const deadline = Date.now() + HOUR;
    expect(await call(client, 'Echo', Buffer.alloc(4 * MIB, 'x'), { deadline })).toHaveLength(4 * MIB);
    const tooLarge = call(client, 'Echo', Buffer.alloc(4 * MIB + 1));
    await expect(tooLarge).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  });
});

describe('a status message', () => {
  it('is encoded as visible ASCII without outer spaces, at most 1 KiB long', () => {
    const character = fc.oneof(fc.nat(0x7f), fc.nat(0x10ffff)).map((point) => String.fromCodePoint(point));
    fc.assert(
      fc.property(fc.string({ unit: character, maxLength: 600 }), (message) => {
        const encoded = encodeStatusMessage(message);
        expect(encoded).toMatch(/^([!-~]([ -~]*[!-~])?)?$/);
        expect(encoded.length).toBeLessThanOrEqual(1_024);
        expect(Buffer.from(message).toString().startsWith(decodeURIComponent(encoded))).toBe(true);
      }),
      { numRuns: 300 },
    );
    expect(encodeStatusMessage(`${'a'.repeat(1_022)}   b`)).toBe('a'.repeat(1_022));
    expect(encodeStatusMessage('\ud800')).toBe('%EF%BF%BD');
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
  it('is as many milliseconds away as its grpc-timeout says', () => {
    const timeouts = ['3H', '12M', '45S', '99999999m', '2000u', '3000000n'];
    expect(timeouts.map(parseTimeout)).toEqual([10_800_000, 720_000, 45_000, 99_999_999, 2, 3]);
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
    ['its connection is closed', (client: RawClient) => client.close()],
  ])('is cancelled in its handler once when %s, also if its handler says later how', async (_title, end) => {
    const server = await start();
    const { seen } = server;
    const client = sending(server, hello(), callFrames(1, 'Hold'), callFrames(3, 'Count', '-1'));
    await until('both calls have begun', () => seen.held.length === 1 && seen.opened.length === 1);
    client.send(rstStream(3));
    end(client);
    await until('the call is cancelled', () => seen.cancelled.length > 0);
    seen.held[0]!.reply(Buffer.from('too late'));
    expect([seen.cancelled, seen.internalErrors]).toEqual([['cancelled'], []]);
    await until('the stream is over', () => server.grpcServer.openStreams === 0);
    seen.opened[0]!.onCancel({ cancel: (cause) => seen.cancelled.push(`${cause} later`) });
    expect(seen.cancelled).toEqual(['cancelled', 'cancelled later']);
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

describe('a server with more work than time', () => {
  it('counts and accounts for the calls that wait, whatever becomes of them', async () => {
    // Its process never waits for events, as it sees it, and then handles one call at a time.
    const busy = { idle: 0, active: 0, utilization: 1 };
    jest.spyOn(performance, 'eventLoopUtilization').mockReturnValue(busy);
    const seen = new Seen();
    const statistics = new Statistics(0);
    const options = { statistics, now: () => performance.now() };
    const limits = { pacedStreams: 1, maxHeldBytesPerConnection: 30_000, pingStrikes: Infinity };
    const { grpcServer, ...server } = await start(
      { observe: (path) => new MethodObserver(path, options), limits },
      seen,
    );
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
});

describe('the calls of a connection that has reached its age', () => {
  it('go on until the grace is over, a Watch too, and then end with UNAVAILABLE and are cancelled', async () => {
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
});

describe('drain', () => {
  it('lets unary calls finish and ends streams with UNAVAILABLE', async () => {
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
});
