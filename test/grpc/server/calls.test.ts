import { Client, Metadata, type ServiceError, credentials, status } from '@grpc/grpc-js';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { GrpcStatus } from '../../../src/grpc/method';
import { encodeStatusMessage } from '../../../src/grpc/server/heads/status-message';
import { ErrorCode, FrameType } from '../../../src/grpc/http2/frames/protocol';
import { newAuthority } from '../../support/data/certificates';
import { data, fieldsOf, headers, hello, ping, request, resetsOf, rstStream } from '../http2/frames';
import { type RawClient, connectPlain, eventually } from '../http2/raw-client';
import { type TestServer, methods, Seen, startDoor } from './servers';
import { callOnWire, prefixed } from './wire-call';

jest.setTimeout(30_000);

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const disposables: (() => unknown)[] = [];
afterEach(async () => {
  for (const dispose of disposables.splice(0).toReversed()) await dispose();
});

async function start(options: Parameters<typeof startDoor>[0] = {}): Promise<Awaited<ReturnType<typeof startDoor>>> {
  const server = await startDoor(options);
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
      (error, answer) => (error === null ? resolve(answer!.toString()) : reject(error)),
    );
  });
}

const GRPC = [
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
] as const;
function raw({ address }: TestServer): RawClient {
  const client = connectPlain(address).send(hello());
  disposables.push(() => client.close());
  return client;
}
function callFrames(stream: number, name: string, message = 'x', ...more: [string, string][]): Buffer {
  return Buffer.concat([headers(stream, request(path(name), ...GRPC, ...more)), data(stream, prefixed(message), true)]);
}

describe('a grpc-js client', () => {
  it('calls, in cleartext and over TLS', async () => {
    expect(await call(clientOf(await start()), 'Echo', 'hello')).toBe('hello');
    const authority = newAuthority();
    disposables.push(() => authority.dispose());
    const secure = await start({ tls: authority.issue('localhost') });
    const options = { 'grpc.ssl_target_name_override': 'localhost' };
    const client = clientOf(secure, credentials.createSsl(Buffer.from(authority.ca)), options);

    expect(await call(client, 'Echo', 'hello')).toBe('hello');
  });

  it('calls over a Unix socket', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-door-'));
    disposables.push(() => rmSync(folder, { recursive: true }));

    expect(await call(clientOf(await start({ listen: { path: join(folder, 'socket') } })), 'Echo', 'hello')).toBe(
      'hello',
    );
  });

  it('sends up to 4 MiB and gets it back', async () => {
    const client = clientOf(await start(), undefined, { 'grpc.max_receive_message_length': -1 });
    const large = Buffer.alloc(4 * 2 ** 20, 'x');

    expect(await call(client, 'Echo', large)).toHaveLength(large.length);
    await expect(call(client, 'Echo', Buffer.alloc(large.length + 1))).rejects.toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
    });
  });

  it('compresses with gzip and is understood', async () => {
    const client = clientOf(await start(), undefined, { 'grpc.default_compression_algorithm': 2 });
    const message = 'hello '.repeat(100_000);

    expect(await call(client, 'Echo', message)).toBe(message);
  });

  it('makes many calls at once, with deadlines', async () => {
    const client = clientOf(await start());
    const answers = await Promise.all(
      Array.from({ length: 3_000 }, (_, at) =>
        call(client, 'Echo', `message ${at}`, { deadline: Date.now() + 20_000 + at }),
      ),
    );

    expect(answers).toEqual(Array.from({ length: 3_000 }, (_, at) => `message ${at}`));
  });

  it.each([
    ['3 plain', 'plain'],
    ['14 ünïcode 100% 漢字 \u{1f600}', 'ünïcode 100% 漢字 \u{1f600}'],
    ['9 two\nlines\r\tand\0more', 'two\nlines\r\tand\0more'],
    ['13  outer spaces ', ' outer spaces '],
  ])('reads the text of a failure: %j', async (asked, text) => {
    const error = (await call(clientOf(await start()), 'Fail', asked).catch((it: unknown) => it)) as ServiceError;

    expect(error.code).toBe(Number.parseInt(asked, 10));
    expect(error.details).toBe(text);
  });
});

describe('the text of a status', () => {
  it('is visible ASCII without outer spaces, at most 1 KiB, whatever it was', () => {
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

  it('has U+FFFD for a lone surrogate', () => {
    expect(encodeStatusMessage('\ud800')).toBe('%EF%BF%BD');
  });

  it('is left out where the client takes no such list', async () => {
    const server = await start();
    const client = connectPlain(server.address).send(hello([6, 200]), callFrames(1, 'Fail', `5 ${'x'.repeat(300)}`));
    disposables.push(() => client.close());
    await client.until('an answer', () => client.frames.some(({ type }) => type === FrameType.HEADERS));
    const { payload } = client.frames.find(({ type }) => type === FrameType.HEADERS)!;

    expect(fieldsOf(payload)).toEqual({ ':status': '200', 'content-type': 'application/grpc', 'grpc-status': '5' });
  });
});

describe('a deadline', () => {
  it('that has passed when its turn comes keeps the handler from running', async () => {
    const server = await start();
    const client = raw(server).send(
      callFrames(1, 'Echo', 'late', ['grpc-timeout', '0n']),
      callFrames(3, 'Echo', 'in time', ['grpc-timeout', '10S']),
    );
    await client.until(
      'both answers',
      () => client.frames.filter(({ type }) => type === FrameType.HEADERS).length === 3,
    );

    expect(server.seen.messages).toEqual(['in time']);
  });

  it('that passes later cancels the handler, once', async () => {
    const server = await start();
    await expect(call(clientOf(server), 'Hold', 'x', { deadline: Date.now() + 1_000 })).rejects.toMatchObject({
      code: status.DEADLINE_EXCEEDED,
    });
    await eventually('the cancellation', () => server.seen.cancelled.length > 0);
    const [held] = server.seen.held;
    held!.reply(Buffer.from('too late'));
    held!.fail(GrpcStatus.INTERNAL, 'too late');

    expect(server.seen.cancelled).toHaveLength(1);
    expect(await call(clientOf(server), 'Echo', 'hello')).toBe('hello');
  });

  it('tells the handler why', async () => {
    const server = await start();
    await callOnWire(server.address, { fields: { ':path': path('Hold'), 'grpc-timeout': '10m' } });

    expect(server.seen.cancelled).toEqual(['deadline_exceeded']);
  });

  it('passes for a stream that is open, too', async () => {
    const server = await start();
    const answer = await callOnWire(server.address, {
      fields: { ':path': path('Talk'), 'grpc-timeout': '200m' },
      body: [prefixed('a')],
      isOpen: true,
    });

    expect(answer).toMatchObject({ messages: ['A'], status: '4' });
    expect(server.seen.cancelled).toEqual(['deadline_exceeded']);
  });
});

describe('a cancelled call', () => {
  it.each([
    ['reset by its caller', (client: RawClient) => void client.send(rstStream(1))],
    ['whose connection is lost', (client: RawClient) => client.close()],
  ])('%s is cancelled in its handler, once', async (_title, end) => {
    const server = await start();
    const client = raw(server).send(callFrames(1, 'Hold'));
    await eventually('the call', () => server.seen.held.length === 1);
    end(client);
    await eventually('the cancellation', () => server.seen.cancelled.length > 0);
    server.seen.held[0]!.reply(Buffer.from('too late'));

    expect(server.seen.cancelled).toEqual(['cancelled']);
    expect(server.seen.threw).toEqual([]);
  });

  it('takes no place any more: its handler has been told', async () => {
    const server = await start({ limits: { maxConcurrentStreams: 2 } });
    const client = raw(server);
    for (let at = 0; at < 20; at += 1) {
      client.send(callFrames(2 * at + 1, 'Hold'));
      await eventually('the call', () => server.seen.held.length === at + 1);
      client.send(rstStream(2 * at + 1));
    }
    await eventually('all cancellations', () => server.seen.cancelled.length === 20);

    expect(resetsOf(client.frames)).toEqual([]);
  });

  it('keeps its place while a handler works that does not listen', async () => {
    const seen = new Seen();
    const deaf = { ...methods(seen), unary: new Map([[path('Hold'), () => seen.messages.push('begun')]]) };
    const server = await start({ ...(deaf as never as object), limits: { maxConcurrentStreams: 2 } });
    const client = raw(server);
    for (let at = 0; at < 2; at += 1) {
      client.send(callFrames(2 * at + 1, 'Hold'));
      await eventually('the call', () => seen.messages.length === at + 1);
      client.send(rstStream(2 * at + 1));
    }
    client.send(callFrames(5, 'Hold'));
    await client.until('refusal', () => resetsOf(client.frames).length > 0);

    expect(resetsOf(client.frames)).toEqual([[5, ErrorCode.REFUSED_STREAM]]);
  });

  it('in the turn it came in never runs', async () => {
    const server = await start();
    const client = raw(server).send(callFrames(1, 'Echo'), rstStream(1), ping('settled.'));
    await client.until('the end of the turn', () => client.heard('settled.'));

    expect(server.seen.messages).toEqual([]);
  });
});

describe('a handler that throws', () => {
  it('is told of once, and neither caller nor connection learns more than INTERNAL', async () => {
    const server = await start();
    const client = clientOf(server);
    await expect(call(client, 'Throw', 'x')).rejects.toMatchObject({
      code: status.INTERNAL,
      details: 'internal error',
    });
    const talk = await callOnWire(server.address, {
      fields: { ':path': path('Talk') },
      body: [prefixed('a'), prefixed('throw'), prefixed('b')],
    });

    expect(talk).toMatchObject({ messages: ['A'], status: '13', message: 'internal error' });
    expect(server.seen.threw).toEqual([new Error('the password is swordfish'), new Error('the password is swordfish')]);
    expect(await call(client, 'Echo', 'hello')).toBe('hello');
  });
});

describe('requests that are not whole', () => {
  it('are refused when a connection keeps too much of them', async () => {
    const server = await start({ limits: { maxHeldBytesPerConnection: 100_000 } });
    const client = raw(server);
    for (const stream of [1, 3]) {
      client.send(
        headers(stream, request(path('Echo'), ...GRPC)),
        data(stream, Buffer.concat([Buffer.from([0, 0, 1, 0, 0]), Buffer.alloc(16_000)])),
      );
      for (let at = 0; at < 3; at += 1) client.send(data(stream, Buffer.alloc(16_000)));
    }
    await client.until('a refusal', () => client.frames.some(({ type }) => type === FrameType.HEADERS));
    const { stream, payload } = client.frames.find(({ type }) => type === FrameType.HEADERS)!;

    expect([stream, fieldsOf(payload)['grpc-status']]).toEqual([3, '8']);
    expect(server.seen.refused).toEqual(['request_memory']);
  });

  it('cost nothing for what they only announce', async () => {
    const server = await start();
    const client = raw(server);
    const before = process.memoryUsage().rss;
    for (let at = 0; at < 1_000; at += 1) {
      client.send(
        headers(2 * at + 1, request(path('Echo'), ...GRPC)),
        data(2 * at + 1, Buffer.from([0, 0, 0x40, 0, 0])),
      );
    }
    client.send(ping('settled.'));
    await client.until('the end of it', () => client.heard('settled.'));

    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 2 ** 20);
  });

  it('do not keep the chunks they came in', async () => {
    const server = await start();
    const client = raw(server);
    const calls = 200;
    collectGarbage();
    const before = process.memoryUsage().arrayBuffers;
    for (let at = 0; at < calls; at += 1) {
      // A refused call that fills most of a chunk, then one byte of a message that is not whole.
      const [filler, unfinished] = [4 * at + 1, 4 * at + 3];
      client.send(
        headers(filler, request(path('Nothing'), ...GRPC)),
        ...Array.from({ length: 4 }, () => data(filler, Buffer.alloc(15_000))),
        headers(unfinished, request(path('Echo'), ...GRPC)),
        data(unfinished, Buffer.from([0, 0, 0, 0, 9, 1])),
      );
    }
    client.send(ping('settled.'));
    await client.until('the end of it', () => client.heard('settled.'));
    function kept(): number {
      collectGarbage();
      return process.memoryUsage().arrayBuffers - before;
    }
    // What is free is not always given back at once.
    await eventually('what is not needed is free', () => kept() < (calls * 60_000) / 4);

    expect(server.seen.messages).toEqual([]);
  });
});

describe('a caller that talks and does not listen', () => {
  it('gets no new window, and has to stop', async () => {
    const server = await start({ limits: { pingStrikes: 1_000 } });
    // No window for answers.
    const client = connectPlain(server.address).send(hello([4, 0]), headers(1, request(path('Talk'), ...GRPC)));
    disposables.push(() => client.close());
    const message = prefixed('x'.repeat(8_000));
    let sent = 0;
    function granted(): number {
      return client.frames
        .filter(({ type, stream }) => type === FrameType.WINDOW_UPDATE && stream === 1)
        .reduce((sum, { payload }) => sum + payload.readUInt32BE(), 65_535);
    }
    for (let round = 0; sent < 1_000_000; round += 1) {
      const before = sent;
      for (; sent + message.length <= granted(); sent += message.length) client.send(data(1, message));
      // Once for the messages to be read, once for the turn in which they are handled.
      for (const opaque of [`read${round}`, `done${round}`].map((it) => it.padEnd(8))) {
        client.send(ping(opaque));
        await client.until('the end of the turn', () => client.heard(opaque));
      }
      if (sent === before) break;
    }

    expect(sent).toBeGreaterThan(65_535);
    expect(sent).toBeLessThan(300_000);
    expect(resetsOf(client.frames)).toEqual([]);
  });
});

describe('a conversation', () => {
  it('may fail in the middle: what comes after is not heard', async () => {
    const server = await start();
    const body = [prefixed('a'), prefixed('fail'), prefixed('b')];
    const answer = await callOnWire(server.address, { fields: { ':path': path('Talk') }, body });

    expect(answer).toMatchObject({ http: '200', status: '5', message: 'as you wish', messages: ['A'] });
  });
});

describe('messages that come in pieces', () => {
  it('count as kept only until they are whole', async () => {
    const server = await start({ limits: { maxHeldBytesPerConnection: 70_000 } });
    const message = prefixed('x'.repeat(1_000));
    const body = Array.from({ length: 60 }, () => [message.subarray(0, 500), message.subarray(500)]).flat();
    const answer = await callOnWire(server.address, { fields: { ':path': path('Talk') }, body });

    expect(answer).toMatchObject({ status: '0' });
    expect(answer.messages).toHaveLength(60);
  });
});

describe('metadata', () => {
  it('is there for the handler where the door was told to keep it', async () => {
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
    const client = raw(server).send(
      callFrames(1, 'Echo', 'x', ['traceparent', '00-1-2-3'], ['x-list', 'a'], ['x-other', 'c'], ['x-list', 'b']),
    );
    await client.until('an answer', () => client.frames.some(({ type }) => type === FrameType.DATA));

    expect(values).toEqual(['00-1-2-3', 'a,b', undefined]);
  });
});

describe('draining', () => {
  it('fails no call of a client that goes on calling meanwhile, and ends streams with UNAVAILABLE', async () => {
    const server = await start();
    const next = await start();
    const client = clientOf(server);
    await call(client, 'Echo', 'first');
    const held = call(client, 'Hold', 'x');
    await eventually('the call', () => server.seen.held.length === 1);
    const talk = client.makeBidiStreamRequest(path('Talk'), pass, pass);
    const ended = new Promise<ServiceError>((resolve) => talk.on('error', (error) => resolve(error as ServiceError)));
    await new Promise((resolve) => talk.once('data', resolve).write(Buffer.from('a')));
    const drained = server.door.drain(10_000);
    server.seen.held[0]!.reply(Buffer.from('answered'));

    expect(await held).toBe('answered');
    expect((await ended).code).toBe(status.UNAVAILABLE);
    await drained;
    expect(await call(clientOf(next), 'Echo', 'hello')).toBe('hello');
  });

  it('at its age a connection is replaced under load without a failed call', async () => {
    const server = await start({ limits: { maxAgeMs: 150, maxAgeGraceMs: 5_000 } });
    const client = clientOf(server);
    const ends = Date.now() + 2_000;
    let calls = 0;
    async function worker(): Promise<void> {
      while (Date.now() < ends) {
        expect(await call(client, 'Echo', 'hello')).toBe('hello');
        calls += 1;
      }
    }
    await Promise.all(Array.from({ length: 16 }, worker));

    expect(calls).toBeGreaterThan(100);
    expect(server.seen.refused).toEqual([]);
  });
});

describe('h2load', () => {
  it('with 1,024 streams at once sees every call succeed', async () => {
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
    expect(server.seen.refused).toEqual([]);
  });
});
