import type { Socket } from 'node:net';
import type { HttpRejection } from '../../src/http/server/rejections';
import type { Verdict } from '../../src/limiter/verdict';
import type { DecisionObserver } from '../../src/streams/ports/decide';
import { OK, REQUEST, type RawConnection, always, closeAll, post, rawConnection, startServer } from './http-client';

afterEach(closeAll);

const KIB = 1024;

/** Records what a server rejects. */
function rejections() {
  const kinds: HttpRejection[] = [];
  return { kinds, onRejected: (kind: HttpRejection, _caller: Socket, _reason: string) => void kinds.push(kind) };
}

/** A `Decide` that leaves its requests pending. */
function pendingDecisions() {
  const observers: DecisionObserver[] = [];
  return {
    observers,
    decide: (_request: unknown, observer: DecisionObserver) => {
      observers.push(observer);
      return { cancel: () => {} };
    },
  };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** The body as JSON of the last response on a closed connection. */
function errorIn(response: string): unknown {
  return JSON.parse(response.slice(response.lastIndexOf('\r\n\r\n') + 4));
}

const CHUNKED = 'POST /json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';

function chunks(text: string, size: number): string {
  let written = '';
  for (let at = 0; at < text.length; at += size) {
    const piece = text.slice(at, at + size);
    written += `${piece.length.toString(16)}\r\n${piece}\r\n`;
  }
  return written;
}

describe('a body in chunks of one byte', () => {
  it('is accepted if it is short, again and again on one connection', async () => {
    const { kinds, onRejected } = rejections();
    const server = await startServer({ onRejected });
    const caller = rawConnection(server.port);
    const request = `${CHUNKED}${chunks(REQUEST.padEnd(400), 1)}0\r\n\r\n`;
    for (let round = 1; round <= 5; round += 1) {
      caller.send(request);
      await until(() => caller.received().split('"code":"OK"').length > round);
    }
    expect(caller.received().match(/HTTP\/1\.1 200 OK/g)).toHaveLength(5);
    expect(kinds).toEqual([]);
  });

  it('is rejected with 400 if it is long, and its connection is closed', async () => {
    const { kinds, onRejected } = rejections();
    const server = await startServer({ onRejected });
    const caller = rawConnection(server.port);
    caller.send(CHUNKED + chunks(' '.repeat(20_000), 1));
    const response = await caller.ended;
    expect(response).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nConnection: close\r\n/);
    expect(errorIn(response)).toEqual({
      error: { code: 'body_in_small_pieces', message: 'the request body arrives in too many small pieces' },
    });
    expect(kinds).toEqual(['data_dribble']);
    expect((await post(server, REQUEST)).status).toBe(200);
  });
});

describe('a body in pieces', () => {
  it.each([257, 4096, 50_000])('of %i bytes is received up to the limit of 1 MiB', async (size) => {
    const texts: string[] = [];
    const server = await startServer({
      decide: (request, observer) => {
        texts.push(request.domain);
        return always(OK)(request, observer);
      },
    });
    const domain = Array.from({ length: 100_000 }, (_, at) => `domain-${at % 10}`).join('');
    const caller = rawConnection(server.port);
    caller.send(`${CHUNKED}${chunks(JSON.stringify({ domain }).padEnd(KIB * KIB), size)}0\r\n\r\n`);
    expect(await caller.until(/"code":"OK"\}\]\}/)).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(texts).toEqual([domain]);
  });
});

describe('unfinished bodies that use all of the memory for them', () => {
  const limits = { maxUnfinishedBytes: 256 * KIB };
  function begin(port: number, bytes: number): RawConnection {
    const caller = rawConnection(port);
    caller.send(`POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${KIB * KIB}\r\n\r\n${' '.repeat(bytes)}`);
    return caller;
  }

  it('are rejected with 503 and Retry-After, and those that are small are received', async () => {
    const { kinds, onRejected } = rejections();
    const server = await startServer({ onRejected, limits });
    const small = rawConnection(server.port);
    small.send(`POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${REQUEST.length}\r\n\r\n${REQUEST.slice(0, -1)}`);
    const large = Array.from({ length: 20 }, () => begin(server.port, 100 * KIB));
    const rejected = large.map(async (caller) => {
      const response = await caller.until(/\}\}$/);
      expect(response).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n/);
      expect(errorIn(response)).toEqual({
        error: { code: 'out_of_memory', message: 'the unfinished bodies of all requests take too much memory' },
      });
    });
    // At most two of them fit into the memory.
    await until(() => kinds.length >= 18);
    expect(new Set(kinds)).toEqual(new Set(['request_memory']));
    expect((await post(server, REQUEST)).status).toBe(200);
    small.send(REQUEST.slice(-1));
    expect(await small.until(/"code":"OK"\}\]\}/)).toMatch(/^HTTP\/1\.1 200 OK/);
    await Promise.race(rejected);
  });

  it('release it when their callers disconnect', async () => {
    const { kinds, onRejected } = rejections();
    const server = await startServer({ onRejected, limits });
    for (let round = 0; round < 20; round += 1) {
      const caller = begin(server.port, 100 * KIB);
      await until(() => caller.socket.bytesWritten > 100 * KIB && caller.socket.writableLength === 0);
      caller.socket.end();
      await caller.ended;
    }
    expect(kinds).toEqual([]);
  });
});

describe('connections over the limit', () => {
  it('replace those without a request, the longest idle first', async () => {
    const { kinds, onRejected } = rejections();
    const server = await startServer({ onRejected, limits: { maxConnections: 3 } });
    const idle: RawConnection[] = [];
    for (let at = 0; at < 3; at += 1) {
      const caller = rawConnection(server.port);
      caller.send('GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n');
      await caller.until(/OK$/);
      idle.push(caller);
    }
    idle[0]!.send('GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n');
    await idle[0]!.until(/OK[^]*OK$/);
    const another = rawConnection(server.port);
    another.send('GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await another.until(/OK$/)).toContain('200 OK');
    await idle[1]!.ended;
    expect(kinds).toEqual(['connections']);
    for (const used of [idle[0]!, idle[2]!]) {
      used.send('GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(await used.until(/OK[^]*OK$/)).toContain('200 OK');
    }
  });

  it('replace those whose request is incomplete, but are closed while all others await their decision', async () => {
    const { kinds, onRejected } = rejections();
    const { observers, decide } = pendingDecisions();
    const server = await startServer({ onRejected, decide, limits: { maxConnections: 2 } });
    const stuck = rawConnection(server.port);
    stuck.send('POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{');
    const first = post(server, REQUEST);
    await until(() => observers.length === 1);
    const second = post(server, REQUEST);
    await stuck.ended;
    await until(() => observers.length === 2);
    const third = rawConnection(server.port);
    expect(await third.ended).toBe('');
    for (const observer of observers) observer.verdict(OK);
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
    expect(kinds).toEqual(['connections', 'connections']);
  });
});

it('a connection that leaves too few file descriptors replaces an idle one, or is closed', async () => {
  const { kinds, onRejected } = rejections();
  let isFree = true;
  const server = await startServer({ onRejected, leavesFilesFree: () => isFree });
  const idle = rawConnection(server.port);
  idle.send('GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n');
  await idle.until(/OK$/);
  isFree = false;
  const another = rawConnection(server.port);
  another.send('GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(await another.until(/OK$/)).toContain('200 OK');
  await idle.ended;
  expect(kinds).toEqual(['connections']);
});

describe('a caller that does not wait for its responses', () => {
  it('is disconnected when too many of its requests are in flight', async () => {
    const { kinds, onRejected } = rejections();
    const { observers, decide } = pendingDecisions();
    const server = await startServer({ onRejected, decide });
    const caller = rawConnection(server.port);
    const request = `POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${REQUEST.length}\r\n\r\n${REQUEST}`;
    caller.send(request.repeat(1_000));
    await caller.ended;
    expect(kinds).toEqual(['pipelining']);
    expect(observers.length).toBeLessThanOrEqual(64);
    expect((await fetch(`${server.url}/healthcheck`)).status).toBe(200);
  });

  /** More bytes than the kernel takes for a connection. */
  const LARGE_BYTES = 32 * KIB * KIB;
  const LARGE: Verdict = { ...OK, responseHeaders: [{ key: 'x', value: 'y'.repeat(LARGE_BYTES) }] };
  const request = `POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${REQUEST.length}\r\n\r\n${REQUEST}`;

  it('is disconnected when it does not read a response in time', async () => {
    const { kinds, onRejected } = rejections();
    const server = await startServer({ onRejected, decide: always(LARGE), timeouts: { response: 200 } });
    const caller = rawConnection(server.port);
    caller.socket.pause();
    caller.send(request);
    await until(() => kinds.length > 0);
    caller.socket.resume();
    expect((await caller.ended).length).toBeLessThan(LARGE_BYTES);
    expect(kinds).toEqual(['slow_reader']);
  });

  it('is disconnected when the unread responses of all callers take too much memory, the largest first', async () => {
    const { kinds, onRejected } = rejections();
    let verdict: Verdict = LARGE;
    const server = await startServer({
      onRejected,
      decide: (descriptors, observer) => always(verdict)(descriptors, observer),
      limits: { maxUnreadBytes: KIB * KIB },
    });
    const caller = rawConnection(server.port);
    caller.socket.pause();
    caller.send(request);
    await until(() => kinds.length > 0);
    verdict = OK;
    expect((await post(server, REQUEST)).status).toBe(200);
    expect(kinds).toEqual(['slow_reader']);
  });
});

describe('headers', () => {
  it.each([
    ['more than 100 fields', 'a: b\r\n'.repeat(101)],
    ['more than 16 KiB', `a: ${'b'.repeat(20_000)}\r\n`],
  ])('with %s are rejected with 431', async (_title, headers) => {
    const message = 'a request may have at most 100 headers, of 16 KiB in all';
    const { kinds, onRejected } = rejections();
    const server = await startServer({ onRejected });
    const caller = rawConnection(server.port);
    caller.send(`GET /healthcheck HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
    const response = await caller.ended;
    expect(response).toMatch(/^HTTP\/1\.1 431 /);
    expect(errorIn(response)).toEqual({ error: { code: 'headers_too_large', message } });
    expect(kinds).toEqual(['header_list']);
  });

  it('in a trailer of more than 16 KiB end the connection without a decision', async () => {
    const { observers, decide } = pendingDecisions();
    const server = await startServer({ decide });
    const caller = rawConnection(server.port);
    caller.send(`${CHUNKED}1\r\n{\r\n0\r\n${'name: value\r\n'.repeat(4_000)}\r\n`);
    expect(await caller.ended).toMatch(/^HTTP\/1\.1 431 /);
    expect(observers).toEqual([]);
  });
});
