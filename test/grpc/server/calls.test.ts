import { Client, Metadata, type ServiceError, credentials, status } from '@grpc/grpc-js';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { GrpcStatus } from '../../../src/grpc/method';
import { encodeStatusMessage } from '../../../src/grpc/server/headers/status-message';
import { ErrorCode, FrameType } from '../../../src/grpc/http2/frames/protocol';
import { newAuthority } from '../../support/data/certificates';
import { collectGarbage } from '../../support/processes/collect-garbage';
import { data, fieldsOf, headers, hello, ping, request, resetsOf, rstStream } from '../http2/frames';
import { type RawClient, connectPlain, eventually } from '../http2/raw-client';
import { callRaw, prefixed } from './raw-call';
import { type TestServer, methods, Seen, startServer } from './servers';

/** A timeout that passes when the call is with its handler, also on a busy machine. */
const REACHES_HANDLER = '5S';

const disposables: (() => unknown)[] = [];
afterEach(async () => {
  for (const dispose of disposables.splice(0).toReversed()) await dispose();
});

async function start(
  options: Parameters<typeof startServer>[0] = {},
): Promise<Awaited<ReturnType<typeof startServer>>> {
  const server = await startServer(options);
  disposables.push(() => server.close());
  return server;
}

function clientOf(
  { address }: Pick<TestServer, 'address'>,
  channel = credentials.createInsecure(),
  options = {},
): Client {
  const client = new Client(
    typeof address === 'string' ? `unix:${address as string}` : `127.0.0.1:${address.port}`,
    channel,
    options,
  );
  disposables.push(() => client.close());
  return client;
}

function pass(bytes: Buffer): Buffer {
  return bytes;
}
function path(name: string): string {
  return `/test.Service/${name}`;
}
function call(client: Client, name: string, message: Buffer | string, options = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      path(name),
      pass,
      pass,
      Buffer.from(message as string),
      new Metadata(),
      options,
      (error, response) => (error === null ? resolve(response!.toString()) : reject(error)),
    );
  });
}

const GRPC = [
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
] as const;
function rawClientOf({ address }: TestServer): RawClient {
  const client = connectPlain(address).send(hello());
  disposables.push(() => client.close());
  return client;
}
function callFrames(stream: number, name: string, message = 'x', ...more: [string, string][]): Buffer {
  return Buffer.concat([headers(stream, request(path(name), ...GRPC, ...more)), data(stream, prefixed(message), true)]);
}

describe('a grpc-js client', () => {
  it('calls in cleartext and over TLS', async () => {
    expect(await call(clientOf(await start()), 'Echo', 'hello')).toBe('hello');
    const authority = newAuthority();
    disposables.push(() => authority.dispose());
    const secure = await start({ tls: authority.issue('localhost') });
    const options = { 'grpc.ssl_target_name_override': 'localhost' };
    const client = clientOf(secure, credentials.createSsl(Buffer.from(authority.ca)), options);

    expect(await call(client, 'Echo', 'hello')).toBe('hello');
  });

  it('calls over a Unix socket', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-grpc-'));
    disposables.push(() => rmSync(folder, { recursive: true }));

    expect(await call(clientOf(await start({ listen: { path: join(folder, 'socket') } })), 'Echo', 'hello')).toBe(
      'hello',
    );
  });

  it('sends and receives messages of up to 4 MiB', async () => {
    const client = clientOf(await start(), undefined, { 'grpc.max_receive_message_length': -1 });
    const large = Buffer.alloc(4 * 2 ** 20, 'x');

    expect(await call(client, 'Echo', large)).toHaveLength(large.length);
    await expect(call(client, 'Echo', Buffer.alloc(large.length + 1))).rejects.toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
    });
  });

  it('sends messages compressed with gzip', async () => {
    const client = clientOf(await start(), undefined, { 'grpc.default_compression_algorithm': 2 });
    const message = 'hello '.repeat(100_000);

    expect(await call(client, 'Echo', message)).toBe(message);
  });

  it('makes many concurrent calls with deadlines', async () => {
    const client = clientOf(await start());
    const responses = await Promise.all(
      Array.from({ length: 3_000 }, (_, at) =>
        call(client, 'Echo', `message ${at}`, { deadline: Date.now() + 100_000 + at }),
      ),
    );

    expect(responses).toEqual(Array.from({ length: 3_000 }, (_, at) => `message ${at}`));
  });

  it.each([
    ['3 plain', 'plain'],
    ['14 ünïcode 100% 漢字 \u{1f600}', 'ünïcode 100% 漢字 \u{1f600}'],
    ['9 two\nlines\r\tand\0more', 'two\nlines\r\tand\0more'],
    ['13  outer spaces ', ' outer spaces '],
  ])('receives the status message of a failed call: %j', async (input, text) => {
    const error = (await call(clientOf(await start()), 'Fail', input).catch((it: unknown) => it)) as ServiceError;

    expect(error.code).toBe(Number.parseInt(input, 10));
    expect(error.details).toBe(text);
  });
});

describe('a status message', () => {
  it('is encoded as visible ASCII without outer spaces, at most 1 KiB long', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 600 }), (message) => {
        const encoded = encodeStatusMessage(message);
        expect(encoded).toMatch(/^([!-~]([ -~]*[!-~])?)?$/);
        expect(encoded.length).toBeLessThanOrEqual(1_024);
        expect(Buffer.from(message).toString().startsWith(decodeURIComponent(encoded))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('does not end with the spaces after which it was truncated', () => {
    expect(encodeStatusMessage(`${'a'.repeat(1_022)}   b`)).toBe('a'.repeat(1_022));
  });

  it('is encoded with U+FFFD for a lone surrogate', () => {
    expect(encodeStatusMessage('\ud800')).toBe('%EF%BF%BD');
  });

  it('is left out when it exceeds the SETTINGS_MAX_HEADER_LIST_SIZE of the client', async () => {
    const server = await start();
    const client = connectPlain(server.address).send(hello([6, 200]), callFrames(1, 'Fail', `5 ${'x'.repeat(300)}`));
    disposables.push(() => client.close());
    await client.until('a response', () => client.frames.some(({ type }) => type === FrameType.HEADERS));
    const { payload } = client.frames.find(({ type }) => type === FrameType.HEADERS)!;

    expect(fieldsOf(payload)).toEqual({ ':status': '200', 'content-type': 'application/grpc', 'grpc-status': '5' });
  });
});

describe('a call with a deadline', () => {
  it('does not run its handler when the deadline has passed before it is scheduled', async () => {
    const server = await start();
    const client = rawClientOf(server).send(
      callFrames(1, 'Echo', 'late', ['grpc-timeout', '0n']),
      callFrames(3, 'Echo', 'in time', ['grpc-timeout', '10S']),
    );
    await client.until(
      'both responses',
      () => client.frames.filter(({ type }) => type === FrameType.HEADERS).length === 3,
    );

    expect(server.seen.messages).toEqual(['in time']);
  });

  it('is cancelled in its handler once when the deadline passes later', async () => {
    const server = await start();
    const client = clientOf(server);
    // Connects, so that the deadline does not include it.
    await call(client, 'Echo', 'first');
    await expect(call(client, 'Hold', 'x', { deadline: Date.now() + 3_000 })).rejects.toMatchObject({
      code: status.DEADLINE_EXCEEDED,
    });
    await eventually('the cancellation', () => server.seen.cancelled.length > 0);
    const [held] = server.seen.held;
    held!.reply(Buffer.from('too late'));
    held!.fail(GrpcStatus.INTERNAL, 'too late');

    expect(server.seen.cancelled).toHaveLength(1);
    expect(await call(clientOf(server), 'Echo', 'hello')).toBe('hello');
  });

  it('is cancelled in its handler with the cause deadline_exceeded', async () => {
    const server = await start();
    await callRaw(server.address, { fields: { ':path': path('Hold'), 'grpc-timeout': REACHES_HANDLER } });

    expect(server.seen.cancelled).toEqual(['deadline_exceeded']);
  });

  it('ends with DEADLINE_EXCEEDED when its stream is still open', async () => {
    const server = await start();
    const response = await callRaw(server.address, {
      fields: { ':path': path('Talk'), 'grpc-timeout': REACHES_HANDLER },
      body: [prefixed('a')],
      isOpen: true,
    });

    expect(response).toMatchObject({ messages: ['A'], status: '4' });
    expect(server.seen.cancelled).toEqual(['deadline_exceeded']);
  });
});

describe('a cancelled call', () => {
  it.each([
    ['its caller resets the stream', (client: RawClient) => void client.send(rstStream(1))],
    ['its connection is closed', (client: RawClient) => client.close()],
  ])('is cancelled in its handler once when %s', async (_title, end) => {
    const server = await start();
    const client = rawClientOf(server).send(callFrames(1, 'Hold'));
    await eventually('the call', () => server.seen.held.length === 1);
    end(client);
    await eventually('the cancellation', () => server.seen.cancelled.length > 0);
    server.seen.held[0]!.reply(Buffer.from('too late'));

    expect(server.seen.cancelled).toEqual(['cancelled']);
    expect(server.seen.internalErrors).toEqual([]);
  });

  it('frees its slot when its handler can be cancelled', async () => {
    const server = await start({ limits: { maxConcurrentStreams: 2 } });
    const client = rawClientOf(server);
    for (let at = 0; at < 20; at += 1) {
      client.send(callFrames(2 * at + 1, 'Hold'));
      await eventually('the call', () => server.seen.held.length === at + 1);
      client.send(rstStream(2 * at + 1));
    }
    await eventually('all cancellations', () => server.seen.cancelled.length === 20);

    expect(resetsOf(client.frames)).toEqual([]);
  });

  it('keeps its slot while a handler that cannot be cancelled works', async () => {
    const seen = new Seen();
    const withoutCancel = { ...methods(seen), unary: new Map([[path('Hold'), () => seen.messages.push('begun')]]) };
    const server = await start({ ...(withoutCancel as never as object), limits: { maxConcurrentStreams: 2 } });
    const client = rawClientOf(server);
    for (let at = 0; at < 2; at += 1) {
      client.send(callFrames(2 * at + 1, 'Hold'));
      await eventually('the call', () => seen.messages.length === at + 1);
      client.send(rstStream(2 * at + 1));
    }
    client.send(callFrames(5, 'Hold'));
    await client.until('a rejection', () => resetsOf(client.frames).length > 0);

    expect(resetsOf(client.frames)).toEqual([[5, ErrorCode.REFUSED_STREAM]]);
  });

  it('never runs when it is reset in the turn in which it arrived', async () => {
    const server = await start();
    const client = rawClientOf(server).send(callFrames(1, 'Echo'), rstStream(1), ping('settled.'));
    await client.until('the end of the turn', () => client.isAcknowledged('settled.'));

    expect(server.seen.messages).toEqual([]);
  });
});

describe('a handler that throws', () => {
  it('is reported once, fails its call with INTERNAL and without details, and leaves the connection usable', async () => {
    const server = await start();
    const client = clientOf(server);
    await expect(call(client, 'Throw', 'x')).rejects.toMatchObject({
      code: status.INTERNAL,
      details: 'internal error',
    });
    const talk = await callRaw(server.address, {
      fields: { ':path': path('Talk') },
      body: [prefixed('a'), prefixed('throw'), prefixed('b')],
    });

    expect(talk).toMatchObject({ messages: ['A'], status: '13', message: 'internal error' });
    expect(server.seen.internalErrors).toEqual([
      new Error('the password is swordfish'),
      new Error('the password is swordfish'),
    ]);
    expect(await call(client, 'Echo', 'hello')).toBe('hello');
  });
});

describe('incomplete requests', () => {
  it('are rejected when they use too much memory on one connection', async () => {
    const server = await start({ limits: { maxHeldBytesPerConnection: 100_000 } });
    const client = rawClientOf(server);
    for (const stream of [1, 3]) {
      client.send(
        headers(stream, request(path('Echo'), ...GRPC)),
        data(stream, Buffer.concat([Buffer.from([0, 0, 1, 0, 0]), Buffer.alloc(16_000)])),
      );
      for (let at = 0; at < 3; at += 1) client.send(data(stream, Buffer.alloc(16_000)));
    }
    await client.until('a rejection', () => client.frames.some(({ type }) => type === FrameType.HEADERS));
    const { stream, payload } = client.frames.find(({ type }) => type === FrameType.HEADERS)!;

    expect([stream, fieldsOf(payload)['grpc-status']]).toEqual([3, '8']);
    expect(server.seen.rejected).toEqual(['request_memory']);
  });

  it('use no memory for bytes that are only announced', async () => {
    const server = await start();
    const client = rawClientOf(server);
    const before = process.memoryUsage().rss;
    for (let at = 0; at < 1_000; at += 1) {
      client.send(
        headers(2 * at + 1, request(path('Echo'), ...GRPC)),
        data(2 * at + 1, Buffer.from([0, 0, 0x40, 0, 0])),
      );
    }
    client.send(ping('settled.'));
    await client.until('the PING ACK', () => client.isAcknowledged('settled.'));

    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 2 ** 20);
  });

  it('do not keep the input chunks in memory', async () => {
    const server = await start();
    const client = rawClientOf(server);
    const calls = 200;
    collectGarbage();
    const before = process.memoryUsage().arrayBuffers;
    for (let at = 0; at < calls; at += 1) {
      // A rejected call that fills most of a chunk, then one byte of an incomplete message.
      const [filler, unfinished] = [4 * at + 1, 4 * at + 3];
      client.send(
        headers(filler, request(path('Nothing'), ...GRPC)),
        ...Array.from({ length: 4 }, () => data(filler, Buffer.alloc(15_000))),
        headers(unfinished, request(path('Echo'), ...GRPC)),
        data(unfinished, Buffer.from([0, 0, 0, 0, 9, 1])),
      );
    }
    client.send(ping('settled.'));
    await client.until('the PING ACK', () => client.isAcknowledged('settled.'));
    function kept(): number {
      collectGarbage();
      return process.memoryUsage().arrayBuffers - before;
    }
    // Garbage collection may free buffers with a delay.
    await eventually('the release of the chunks', () => kept() < (calls * 60_000) / 4);

    expect(server.seen.messages).toEqual([]);
  });
});

describe('a caller that does not read the responses', () => {
  it('gets no WINDOW_UPDATE and must stop sending', async () => {
    const server = await start({ limits: { pingStrikes: 1_000 } });
    // An initial window of 0: no response can be sent.
    const client = connectPlain(server.address).send(hello([4, 0]), headers(1, request(path('Talk'), ...GRPC)));
    disposables.push(() => client.close());
    const message = prefixed('x'.repeat(8_000));
    let sent = 0;
    let idleRounds = 0;
    function granted(): number {
      return client.frames
        .filter(({ type, stream }) => type === FrameType.WINDOW_UPDATE && stream === 1)
        .reduce((sum, { payload }) => sum + payload.readUInt32BE(), 65_535);
    }
    for (let round = 0; sent < 1_000_000 && idleRounds < 5; round += 1) {
      const before = sent;
      for (; sent + message.length <= granted(); sent += message.length) client.send(data(1, message));
      // One turn reads the messages, the next handles some of them.
      for (const opaque of [`read${round}`, `done${round}`].map((it) => it.padEnd(8))) {
        client.send(ping(opaque));
        await client.until('the end of the turn', () => client.isAcknowledged(opaque));
      }
      idleRounds = sent === before ? idleRounds + 1 : 0;
    }

    expect(sent).toBeGreaterThan(65_535);
    expect(sent).toBeLessThan(300_000);
    expect(resetsOf(client.frames)).toEqual([]);
  });
});

describe('a bidirectional call', () => {
  it('ignores messages after it has failed', async () => {
    const server = await start();
    const body = [prefixed('a'), prefixed('fail'), prefixed('b')];
    const response = await callRaw(server.address, { fields: { ':path': path('Talk') }, body });

    expect(response).toMatchObject({ http: '200', status: '5', message: 'failed on request', messages: ['A'] });
  });
});

describe('empty messages that wait to be handled', () => {
  it('count towards the memory limit with the objects that they take', async () => {
    const server = await start({ limits: { maxHeldBytesPerConnection: 80_000 } });
    const body = [Buffer.concat(Array.from({ length: 2_000 }, () => prefixed('')))];
    const response = await callRaw(server.address, { fields: { ':path': path('Talk') }, body });

    expect(response).toMatchObject({ status: String(GrpcStatus.RESOURCE_EXHAUSTED) });
  });
});

describe('messages split over DATA frames', () => {
  it('count towards the memory limit only until they are complete', async () => {
    const server = await start({ limits: { maxHeldBytesPerConnection: 80_000 } });
    const message = prefixed('x'.repeat(1_000));
    const body = Array.from({ length: 60 }, () => [message.subarray(0, 500), message.subarray(500)]).flat();
    const response = await callRaw(server.address, { fields: { ':path': path('Talk') }, body });

    expect(response).toMatchObject({ status: '0' });
    expect(response.messages).toHaveLength(60);
  });
});

describe('metadata', () => {
  it('is available to the handler for the fields that the server keeps', async () => {
    const values: (string | undefined)[] = [];
    const server = await start({
      unary: new Map([
        [
          path('Echo'),
          (message, unary) => {
            values.push(unary.metadata?.('traceparent'), unary.metadata?.('x-list'), unary.metadata?.('x-other'));
            unary.reply(message);
          },
        ],
      ]),
      keepMetadata: ['traceparent', 'x-list'],
    });
    const client = rawClientOf(server).send(
      callFrames(1, 'Echo', 'x', ['traceparent', '00-1-2-3'], ['x-list', 'a'], ['x-other', 'c'], ['x-list', 'b']),
    );
    await client.until('a response', () => client.frames.some(({ type }) => type === FrameType.DATA));

    expect(values).toEqual(['00-1-2-3', 'a,b', undefined]);
  });
});

describe('drain', () => {
  it('lets unary calls finish and ends streams with UNAVAILABLE', async () => {
    const server = await start();
    const next = await start();
    const client = clientOf(server);
    await call(client, 'Echo', 'first');
    const held = call(client, 'Hold', 'x');
    await eventually('the call', () => server.seen.held.length === 1);
    const talk = client.makeBidiStreamRequest(path('Talk'), pass, pass);
    const ended = new Promise<ServiceError>((resolve) => talk.on('error', (error) => resolve(error as ServiceError)));
    await new Promise((resolve) => talk.once('data', resolve).write(Buffer.from('a')));
    const drained = server.grpcServer.drain(10_000);
    server.seen.held[0]!.reply(Buffer.from('answered'));

    expect(await held).toBe('answered');
    expect((await ended).code).toBe(status.UNAVAILABLE);
    await drained;
    expect(await call(clientOf(next), 'Echo', 'hello')).toBe('hello');
  });

  it('fails no call when connections reach their maximum age under load', async () => {
    const server = await start({ limits: { maxAgeMs: 150, maxAgeGraceMs: 60_000 } });
    const client = clientOf(server);
    const ends = Date.now() + 2_000;
    let calls = 0;
    async function worker(): Promise<void> {
      while (Date.now() < ends || calls <= 100) {
        expect(await call(client, 'Echo', 'hello')).toBe('hello');
        calls += 1;
      }
    }
    await Promise.all(Array.from({ length: 16 }, worker));

    expect(calls).toBeGreaterThan(100);
    expect(server.seen.rejected).toEqual([]);
  });
});

describe('h2load', () => {
  it('succeeds with every call on 1,024 concurrent streams', async () => {
    const server = await start();
    const folder = mkdtempSync(join(tmpdir(), 'weir-h2load-'));
    disposables.push(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'body'), prefixed('x'.repeat(100)));
    const url = `http://127.0.0.1:${server.address.port}${path('Echo')}`;
    const args = [
      '-n',
      '20000',
      '-c',
      '4',
      '-m',
      '1024',
      '-d',
      join(folder, 'body'),
      '-H',
      'content-type: application/grpc',
      '-H',
      'te: trailers',
      url,
    ];
    const { stdout } = await promisify(execFile)('h2load', args);

    expect(stdout).toContain('20000 done, 20000 succeeded, 0 failed, 0 errored, 0 timeout');
    expect(server.seen.rejected).toEqual([]);
  });
});
