import { Authorization } from '../../src/http/operators/authorization';
import { operatorsApi } from '../../src/http/operators/operators-api';
import { serveMetrics } from '../../src/http/serve-metrics';
import type { OnHttpRejected } from '../../src/http/limits';
import { OpenFiles } from '../../src/net/open-files';
import type { Verdict } from '../../src/limiter/verdict';
import type { Log } from '../../src/log/log';
import type { Reservations, Reserved } from '../../src/streams/ports/reservations';
import { RecordedLog } from '../support/data/recorded-log';
import { until } from '../support/waiting/until';
import {
  HEALTH_BYTES,
  OK,
  POST_BYTES,
  REQUEST,
  type RawConnection,
  type TestHttpServer,
  always,
  closeAll,
  jsonIn,
  pendingDecisions,
  post,
  rawConnection,
  rejections,
  startDebugServer,
  startServer,
  unreadResponse,
  untilStill,
} from './http-client';

const KIB = 1024;
const MIB = KIB * KIB;
const LENGTH = `Content-Length: ${REQUEST.length}\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const CHUNKED_POST = `POST /json HTTP/1.1\r\nHost: x\r\n${CHUNKED}\r\n`;
const CHUNKS = chunks(REQUEST, REQUEST.length);

/** A listener with the usual limits, and what it has rejected and decided. */
let server: TestHttpServer;
const { kinds, onRejected } = rejections();
const domains: string[] = [];
beforeAll(async () => {
  server = await startServer({
    onRejected,
    decide: (decided, observer) => {
      domains.push(decided.domain);
      return always(OK)(decided, observer);
    },
  });
});
beforeEach(() => {
  kinds.splice(0);
  domains.splice(0);
});
afterAll(closeAll);

function chunks(text: string, size: number): string {
  let written = '';
  for (let at = 0; at < text.length; at += size) {
    const piece = text.slice(at, at + size);
    written += `${piece.length.toString(16)}\r\n${piece}\r\n`;
  }
  return `${written}0\r\n\r\n`;
}

function request(headers: string, rest = REQUEST, line = 'POST /json HTTP/1.1'): string {
  return `${line}\r\n${headers}\r\n${rest}`;
}

const LONG_DOMAIN = Array.from({ length: 100_000 }, (_, at) => `domain-${at % 10}`).join('');
const LONG = JSON.stringify({ domain: LONG_DOMAIN }).padEnd(MIB);

/** Requests that servers read in different ways, and the status that they get. */
const REJECTED: readonly (readonly [title: string, bytes: string, status: number])[] = [
  ['no Host', request(LENGTH), 400],
  ['two different Host headers', request(`Host: x\r\nhost: y\r\n${LENGTH}`), 400],
  ['two Host headers in HTTP/1.0', request(`Host: x\r\nHost: y\r\n${LENGTH}`, REQUEST, 'POST /json HTTP/1.0'), 400],
  ['a second Host header after 99 others', request(`Host: x\r\n${'a: b\r\n'.repeat(99)}Host: y\r\n${LENGTH}`), 431],
  ['a Host with a list', request(`Host: x, y\r\n${LENGTH}`), 400],
  ['a Host with a user', request(`Host: user@x\r\n${LENGTH}`), 400],
  ['a target with another host', request(`Host: x\r\n${LENGTH}`, REQUEST, 'POST http://y/json HTTP/1.1'), 400],
  ['a target with another port', request(`Host: x\r\n${LENGTH}`, REQUEST, 'POST http://x:81/json HTTP/1.1'), 400],
  ['a target with a host, and no Host', request(LENGTH, REQUEST, 'POST http://x/json HTTP/1.1'), 400],
  ['Content-Length and Transfer-Encoding', request(`Host: x\r\n${LENGTH}${CHUNKED}`, CHUNKS + HEALTH_BYTES), 400],
  ['two different Content-Lengths', request(`Host: x\r\n${LENGTH}Content-Length: 3\r\n`), 400],
  ['a header on two lines', request(`Host: x\r\nA: b\r\n c\r\n${LENGTH}`), 400],
  ['a space before the colon', request(`Host: x\r\nTransfer-Encoding : chunked\r\n`, CHUNKS), 400],
  ['a line that ends in LF', request(`Host: x\nA: b\r\n${LENGTH}`), 400],
  ['a chunk size that ends in LF', request(`Host: x\r\n${CHUNKED}`, '2\n{}\r\n0\r\n\r\n'), 400],
  ['a chunk that is longer than its size', request(`Host: x\r\n${CHUNKED}`, '1\r\n{}\r\n0\r\n\r\n'), 400],
  ['an unknown Transfer-Encoding', request('Host: x\r\nTransfer-Encoding: xchunked\r\n', CHUNKS), 501],
  ['Transfer-Encoding in HTTP/1.0', request(`Host: x\r\n${CHUNKED}`, CHUNKS, 'POST /json HTTP/1.0'), 400],
  ['an unknown Expect', request(`Host: x\r\nExpect: x\r\n${LENGTH}`), 417],
  ['HTTP/2.0', request(`Host: x\r\n${LENGTH}`, REQUEST, 'POST /json HTTP/2.0'), 505],
  ['HTTP/0.9', request(`Host: x\r\n${LENGTH}`, REQUEST, 'POST /json HTTP/0.9'), 505],
  ['no version', request(`Host: x\r\n${LENGTH}`, REQUEST, 'POST /json'), 505],
  ['another protocol than HTTP', request(`Host: x\r\n${LENGTH}`, REQUEST, 'POST /json RTSP/1.0'), 400],
  ['two spaces before its target', request(`Host: x\r\n${LENGTH}`, REQUEST, 'POST  /json HTTP/1.1'), 400],
  ['two spaces after its target', request(`Host: x\r\n${LENGTH}`, REQUEST, 'POST /json  HTTP/1.1'), 400],
  ['a name that is none', request(`Host: x\r\nA B: c\r\n${LENGTH}`), 400],
  ['a value with a control character', request(`Host: x\r\nA: \u0001\r\n${LENGTH}`), 400],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  ['more than 100 headers', `GET /healthcheck HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(101)}\r\n`, 431],
  ['headers of more than 16 KiB', `GET /healthcheck HTTP/1.1\r\nHost: x\r\na: ${'b'.repeat(20_000)}\r\n\r\n`, 431],
  ['a trailer of more than 16 KiB', `${CHUNKED_POST}1\r\n{\r\n0\r\n${'name: value\r\n'.repeat(4_000)}\r\n`, 431],
];

describe('a request with', () => {
  it.each(REJECTED)('%s is rejected, without a decision, and ends its connection', async (_title, bytes, status) => {
    const response = await rawConnection(server.port, bytes).ended;
    expect(response.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
    expect(response).toMatch(/^Connection: close\r$/m);
    const message: unknown =
      status === 431 ? 'a request may have at most 100 headers, of 16 KiB in all' : expect.any(String);
    expect(jsonIn(response)).toEqual({ error: { code: expect.stringMatching(/^[a-z_]+$/), message } });
    expect([kinds, domains]).toEqual([[status === 431 ? 'header_list' : 'malformed'], []]);
  });

  it.each([
    ['an empty Host', request(`Host:\r\n${LENGTH}`)],
    ['an IPv6 address as Host', request(`Host: [::1]:8080\r\n${LENGTH}`)],
    ['a target with the same host', request(`Host: X:80\r\n${LENGTH}`, REQUEST, 'POST http://x/json HTTP/1.1')],
    ['no Host in HTTP/1.0', request(LENGTH, REQUEST, 'POST /json HTTP/1.0')],
    ['a host with an underscore', request(`Host: weir_http.default:8080\r\n${LENGTH}`)],
    ['100 headers', request(`Host: x\r\n${'a: b\r\n'.repeat(98)}${LENGTH}`)],
    ...[257, 4096, 50_000].map((size) => [
      `a body of 1 MiB in chunks of ${size} bytes`,
      CHUNKED_POST + chunks(LONG, size),
    ]),
  ])('%s is accepted', async (_title, bytes) => {
    expect(await rawConnection(server.port, bytes).until(/"code":"OK"\}\]\}/)).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(domains).toEqual([bytes.length > MIB ? LONG_DOMAIN : 'd']);
  });
});

describe('good requests in one segment with', () => {
  const HALF = POST_BYTES.slice(0, -1);
  it.each([
    ['what is not HTTP', 'this is not HTTP\r\n\r\n', 400],
    ['a request of HTTP/2.0', POST_BYTES.replace('1.1', '2.0'), 505],
    ['two spaces in a request line', HEALTH_BYTES.replace(' ', '  '), 400],
    ['a chunk that is longer than its size', `${CHUNKED_POST}1\r\n{}\r\n`, 400],
    ['a request that does not end in time', HALF, 408],
  ])('%s behind them are answered, whenever they are decided, and then it', async (_title, bytes, status) => {
    const { requested, decide } = pendingDecisions();
    const { port, rejected } = await startRecorded({ decide, timeouts: { headers: 200, request: 200 } });
    const caller = rawConnection(port, POST_BYTES + POST_BYTES + bytes);
    await until('the rejection', () => rejected.length > 0 && requested.length === 2);
    for (const { observer } of requested.toReversed()) observer.verdict(OK);
    const answers = await caller.ended;
    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual([200, 200, status].map((each) => `HTTP/1.1 ${each}`));
    expect(rejected).toEqual([status === 408 ? 'request_timeout' : 'malformed']);
  });

  it('a request behind them whose body was rejected already, and is malformed, are answered', async () => {
    const { requested, decide } = pendingDecisions();
    const { port } = await startRecorded({ decide });
    const large = `${CHUNKED_POST}${(2 * MIB).toString(16)}\r\n${' '.repeat(2 * MIB)}no end of a chunk`;
    const caller = rawConnection(port, POST_BYTES + large);
    await until('the first request', () => requested.length === 1);
    requested[0]!.observer.verdict(OK);
    expect((await caller.ended).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 413']);
  });

  it('the end of the connection inside of a further one are answered', async () => {
    const { requested, decide } = pendingDecisions();
    const { port, rejected } = await startRecorded({ decide });
    const caller = rawConnection(port);
    caller.socket.end(POST_BYTES + HALF);
    await until('the first request', () => requested.length === 1);
    // The end has arrived too, when another caller is answered.
    await rawConnection(port, HEALTH_BYTES).until(/OK$/);
    requested[0]!.observer.verdict(OK);
    expect((await caller.ended).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
    expect(rejected).toEqual([]);
  });
});

describe('half of a connection', () => {
  it('a caller that ends its half of the connection is answered to all of its requests, whenever they are decided', async () => {
    const { requested, cancelled, decide } = pendingDecisions();
    const reserved: ((value: Reserved) => void)[] = [];
    const reservations = { reserve: () => new Promise<Reserved>((resolve) => reserved.push(resolve)) };
    const listener = await startRecorded({ decide, reservations: reservations as unknown as Reservations });
    const estimate = `{"ttl":"60s",${REQUEST.slice(1)}`;
    const reservation = `POST /v1/reservations HTTP/1.1\r\nHost: x\r\nContent-Length: ${estimate.length}\r\n\r\n${estimate}`;
    const callers = [POST_BYTES, HEALTH_BYTES + POST_BYTES + POST_BYTES, POST_BYTES + reservation].map((bytes) => {
      const caller = rawConnection(listener.port);
      caller.socket.end(bytes);
      return caller;
    });
    await until('all requests', () => requested.length === 4 && reserved.length === 1);
    // The ends have arrived too, when another caller is answered.
    await rawConnection(listener.port, HEALTH_BYTES).until(/OK$/);
    for (const { observer } of requested.toReversed()) observer.verdict(OK);
    reserved[0]!({ id: 'r', verdict: OK, expiresAt: 0 });
    const statuses = (await Promise.all(callers.map(({ ended }) => ended))).map((text) =>
      text.match(/(?<=HTTP\S+ )\d+/g),
    );
    expect(statuses).toEqual([['200'], ['200', '200', '200'], ['200', '201']]);
    await until('no connection to be left', () => listener.connectionCount <= 1);
    expect([listener.rejected, cancelled]).toEqual([[], []]);
  });

  it('and then the other half, ended by a caller before its decision, leaves no connection', async () => {
    const { requested, decide } = pendingDecisions();
    const listener = await startRecorded({ decide });
    const caller = rawConnection(listener.port);
    caller.socket.end(POST_BYTES);
    await until('the request', () => requested.length === 1);
    caller.socket.destroy();
    expect(await caller.ended).toBe('');
    requested[0]!.observer.verdict(OK);
    await until('the connection to be closed', () => listener.connectionCount === 0);
  });

  it('ended by a caller without a request, or after its response, ends the other one', async () => {
    const listener = await startServer();
    const idle = await idleConnection(listener.port);
    idle.socket.end();
    const silent = rawConnection(listener.port);
    silent.socket.end();
    expect([await idle.ended, await silent.ended]).toEqual([idle.received(), '']);
    await until('no connection to be left', () => listener.connectionCount === 0);
  });

  it('is closed when nothing happens on it for too long', async () => {
    const { requested, cancelled, decide } = pendingDecisions();
    const listener = await startServer({ decide, timeouts: { inactive: 100 } });
    const caller = rawConnection(listener.port);
    caller.socket.end(POST_BYTES);
    expect([await caller.ended, requested.length]).toEqual(['', 1]);
    await until('the decision to be cancelled', () => cancelled.length === 1);
  });
});

interface Observed {
  readonly onRejected: OnHttpRejected;
  readonly log: Log;
}

/** A server, and the kinds of what it rejects. */
async function startRecorded(options: Parameters<typeof startServer>[0]) {
  const { kinds: rejected, onRejected: reject } = rejections();
  return Object.assign(await startServer({ ...options, onRejected: reject }), { rejected });
}

const LISTENERS: Readonly<
  Record<string, (observed: Observed) => Promise<{ address: { port: number }; close(): Promise<void> }>>
> = {
  HTTP: startServer,
  debug: ({ onRejected: rejected, log }) => {
    const authorization = new Authorization(() => undefined, log);
    const api = operatorsApi({ operator: {} as never, authorization, log });
    return startDebugServer({ onRejected: rejected, log, operatorsApi: api.middleware });
  },
  metrics: ({ onRejected: rejected, log }) =>
    serveMetrics({
      host: '127.0.0.1',
      port: 0,
      path: '/metrics',
      page: async function* () {},
      onRejected: rejected,
      log,
    }),
};

it('the metrics listener makes no more of a page than fits into buffers while the scraper does not read', async () => {
  const pieces = 4_000;
  let made = 0;
  const listener = await serveMetrics({
    host: '127.0.0.1',
    port: 0,
    path: '/metrics',
    page: async function* () {
      for (const piece = 'x'.repeat(32 * KIB); made < pieces; made += 1) yield await Promise.resolve(piece);
    },
    onRejected: () => undefined,
    log: new RecordedLog(),
  });
  try {
    const { rest } = await unreadResponse(`http://127.0.0.1:${listener.address.port}/metrics`);
    await untilStill(() => made);
    expect(made).toBeLessThan(pieces / 2);
    expect(await rest()).toBe(pieces * 32 * KIB);
  } finally {
    await listener.close();
  }
});

describe.each(Object.entries(LISTENERS))('the %s listener', (name, start) => {
  it('rejects targets that cannot be parsed, and answers others by their path, without a log line', async () => {
    const log = new RecordedLog();
    const { kinds: rejected, onRejected: reject } = rejections();
    const listener = await start({ onRejected: reject, log });
    const unreadable = [
      'GET http://%zz@h/ HTTP/1.0\r\n\r\n',
      'GET http://[::1/ HTTP/1.0\r\n\r\n',
      'GET //%zz@h/# HTTP/1.1\r\nHost: x\r\n\r\n',
      'POST //a@[/# HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}',
      'GET foo://host HTTP/1.1\r\nHost: host\r\nConnection: close\r\n\r\n',
      'GET foo://host?x HTTP/1.0\r\n\r\n',
      'GET *x HTTP/1.0\r\n\r\n',
    ];
    const error = { code: 'malformed_request', message: 'the request target is not a valid URL' };
    for (const bytes of unreadable) {
      const response = await rawConnection(listener.address.port, bytes).ended;
      expect([bytes, response.slice(0, 13), jsonIn(response)]).toEqual([bytes, 'HTTP/1.1 400 ', { error }]);
    }
    expect(rejected).toEqual(unreadable.map(() => 'malformed'));
    const readable = ['/%zz?%zz', '/#//%zz@h', '//user@h/', 'http://h/?a#b', 'http://h?a', 'foo://host/?x'];
    for (const line of [...readable.map((target) => `GET ${target}`), 'OPTIONS *']) {
      const response = await rawConnection(listener.address.port, `${line} HTTP/1.0\r\n\r\n`).ended;
      expect([line, response]).toEqual([line, expect.stringMatching(/^HTTP\/1\.1 (?:200|404|405) /)]);
    }
    expect([rejected.length, log.short]).toEqual([unreadable.length, []]);
    await listener.close();
  });

  it('answers a caller that ends its half of the connection with its requests', async () => {
    const listener = await start({ onRejected, log: new RecordedLog() });
    const path = { HTTP: '/readyz', debug: '/stats', metrics: '/metrics' }[name];
    const caller = rawConnection(listener.address.port);
    caller.socket.end(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(3));
    expect((await caller.ended).match(/HTTP\/1\.1 200 /g)).toHaveLength(3);
    await listener.close();
  });
});

describe('a body', () => {
  it('in chunks of one byte is accepted if it is short, again and again on one connection', async () => {
    const caller = rawConnection(server.port);
    for (let round = 1; round <= 5; round += 1) {
      caller.send(CHUNKED_POST + chunks(REQUEST.padEnd(400), 1));
      await until('an answer', () => caller.received().split('"code":"OK"').length > round);
    }
    expect([caller.received().match(/HTTP\/1\.1 200 OK/g)?.length, kinds]).toEqual([5, []]);
  });

  it.each(['/json', '/v1/reservations'])(
    'in chunks of one byte to %s is rejected with 400 if it is long',
    async (path) => {
      const head = CHUNKED_POST.replace('/json', path);
      const response = await rawConnection(server.port, head + chunks(' '.repeat(20_000), 1)).ended;
      expect(response).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nConnection: close\r\n/);
      const message = 'the request body arrives in too many small pieces';
      expect(jsonIn(response)).toEqual({ error: { code: 'body_in_small_pieces', message } });
      expect(kinds).toEqual(['data_dribble']);
    },
  );

  it('in small chunks is rejected as soon as it falls short by more than the limit, not at it', async () => {
    const { port } = await startServer({ limits: { smallPieceBytes: 9, maxShortfallBytes: 8 * REQUEST.length } });
    const accepted = rawConnection(port, CHUNKED_POST + chunks(REQUEST, 1));
    expect(await accepted.until(/"code":"OK"\}\]\}/)).toMatch(/^HTTP\/1\.1 200 OK/);
    const rejected = rawConnection(port, CHUNKED_POST + chunks(`${REQUEST} `, 1));
    expect(await rejected.ended).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('unfinished bodies that use all of the memory for them', () => {
  const limits = { maxUnfinishedBytes: 256 * KIB };
  const BEGUN = `POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${MIB}\r\n\r\n${' '.repeat(100 * KIB)}`;

  it('are rejected with 503 and Retry-After, and those that are small are received', async () => {
    const { rejected, ...limited } = await startRecorded({ limits });
    const { port } = limited;
    const large = Array.from({ length: 20 }, () => rawConnection(port, BEGUN));
    // At most two of them fit into the memory.
    await until('the others to be rejected', () => {
      const isSent = large.every(
        ({ socket }) => socket.destroyed || socket.bytesWritten - socket.writableLength > 100 * KIB,
      );
      return isSent && rejected.length >= 18;
    });
    const count = rejected.length;
    const small = rawConnection(port, POST_BYTES.slice(0, -1));
    large.push(rawConnection(port, BEGUN));
    await until('another one to be rejected', () => rejected.length > count);
    expect(new Set(rejected)).toEqual(new Set(['request_memory']));
    const response = await Promise.race(large.map((caller) => caller.until(/\}\}$/)));
    expect(response).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n/);
    const message = 'the unfinished bodies of all requests take too much memory';
    expect(jsonIn(response)).toEqual({ error: { code: 'out_of_memory', message } });
    expect((await post(limited, REQUEST)).status).toBe(200);
    small.send(POST_BYTES.slice(-1));
    expect(await small.until(/"code":"OK"\}\]\}/)).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  it('release it when their callers disconnect', async () => {
    const { port, rejected } = await startRecorded({ limits });
    for (let round = 0; round < 20; round += 1) {
      const { socket, ended } = rawConnection(port, BEGUN);
      await until('all is sent', () => socket.bytesWritten > 100 * KIB && socket.writableLength === 0);
      socket.end();
      await ended;
    }
    expect(rejected).toEqual([]);
  });
});

/** A connection on which a request has been answered. */
async function idleConnection(port: number): Promise<RawConnection> {
  const caller = rawConnection(port, HEALTH_BYTES);
  expect(await caller.until(/OK$/)).toContain('200 OK');
  return caller;
}

describe('connections over the limit', () => {
  it('replace those without a request, the longest idle first', async () => {
    const { port, rejected } = await startRecorded({ limits: { maxConnections: 3 } });
    const idle = [await idleConnection(port), await idleConnection(port), await idleConnection(port)] as const;
    idle[0].send(HEALTH_BYTES);
    await idle[0].until(/OK[^]*OK$/);
    await idleConnection(port);
    await idle[1].ended;
    expect(rejected).toEqual(['connections']);
    for (const used of [idle[0], idle[2]]) {
      used.send(HEALTH_BYTES);
      expect(await used.until(/OK[^]*OK$/)).toContain('200 OK');
    }
  });

  it('replace those whose request is incomplete, but are closed while all others await their decision', async () => {
    const { requested, decide } = pendingDecisions();
    const { rejected, ...limited } = await startRecorded({ decide, limits: { maxConnections: 2 } });
    const stuck = rawConnection(limited.port, 'POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{');
    const first = post(limited, REQUEST);
    await until('the first request', () => requested.length === 1);
    const second = post(limited, REQUEST);
    await stuck.ended;
    await until('the second request', () => requested.length === 2);
    expect(await rawConnection(limited.port).ended).toBe('');
    for (const { observer } of requested) observer.verdict(OK);
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
    expect(rejected).toEqual(['connections', 'connections']);
  });

  it('that leave too few file descriptors replace idle ones, too', async () => {
    let others = 0;
    const files = new OpenFiles(100, () => others);
    const { port, rejected } = await startRecorded({ files });
    // Of 100, a quarter is for other files, and a quarter of that for operators.
    others = 68;
    const idle = await idleConnection(port);
    await idleConnection(port);
    await idle.ended;
    expect(rejected).toEqual(['connections']);
  });
});

describe('a caller that does not wait for its responses is disconnected', () => {
  /** More bytes than the kernel takes for a connection. */
  const LARGE_BYTES = 32 * MIB;
  const LARGE: Verdict = { ...OK, responseHeaders: [{ key: 'x', value: 'y'.repeat(LARGE_BYTES) }] };

  it('when too many of its requests are in flight', async () => {
    const { requested, decide } = pendingDecisions();
    const { port, rejected } = await startRecorded({ decide });
    await rawConnection(port, POST_BYTES.repeat(1_000)).ended;
    expect(rejected).toEqual(['pipelining']);
    expect(requested.length).toBeLessThanOrEqual(64);
    await idleConnection(port);
  });

  it('when it does not read a response in time', async () => {
    const { port, rejected } = await startRecorded({ decide: always(LARGE), timeouts: { response: 200 } });
    const caller = rawConnection(port, POST_BYTES);
    caller.socket.pause();
    await until('it is disconnected', () => rejected.length > 0);
    caller.socket.resume();
    expect((await caller.ended).length).toBeLessThan(LARGE_BYTES);
    expect(rejected).toEqual(['slow_reader']);
  });

  it('when the unread responses of all callers take too much memory, the largest first', async () => {
    let verdict = LARGE;
    const { rejected, ...limited } = await startRecorded({
      decide: (descriptors, observer) => always(verdict)(descriptors, observer),
      limits: { maxUnreadBytes: MIB },
    });
    rawConnection(limited.port, POST_BYTES).socket.pause();
    await until('it is disconnected', () => rejected.length > 0);
    verdict = OK;
    expect((await post(limited, REQUEST)).status).toBe(200);
    expect(rejected).toEqual(['slow_reader']);
  });
});
