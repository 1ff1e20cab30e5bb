import { request as httpRequest } from 'node:http';
import { Server, type Socket } from 'node:net';
import { writeVerdict } from '../../src/http/json/json-handler';
import { unavailableHttp } from '../../src/http/serve-http';
import { DecisionError, type DecisionErrorCode } from '../../src/counting/decision-error';
import type { RateLimitRequest } from '../../src/limiter/request';
import type { Verdict } from '../../src/limiter/verdict';
import type { Check } from '../../src/streams/readiness';
import type { Decide } from '../../src/streams/ports/decide';
import type { CallTrace, Tracer } from '../../src/streams/ports/tracer';
import { RecordedLog } from '../support/data/recorded-log';
import { until } from '../support/waiting/until';
import {
  HEALTH_BYTES,
  OK,
  OVER_LIMIT,
  POST_BYTES,
  REQUEST,
  type TestHttpServer,
  always,
  closeAll,
  pendingDecisions,
  post,
  rawConnection,
  startServer,
} from './http-client';

const MIB = 1024 * 1024;
const PASSING: readonly Check[] = (['configuration', 'store'] as const).map((name) => ({ name, failure: undefined }));
const FAILING: readonly Check[] = [PASSING[0]!, { name: 'store', failure: 'no connection' }];
const FAILED_LIST = '[+]configuration ok\n[-]store failed: no connection\nreadyz check failed\n';

/** One listener for all tests that need no other settings; what it serves is set by each test. */
let server: TestHttpServer;
let decide: Decide;
let unhealthy: readonly string[];
let checks: readonly Check[];
const requests: RateLimitRequest[] = [];
const log = new RecordedLog();

beforeAll(async () => {
  server = await startServer({
    log,
    decide: (request, observer) => {
      requests.push(request);
      return decide(request, observer);
    },
    readiness: {
      get health() {
        return { healthy: unhealthy.length === 0, unhealthy: [...unhealthy] };
      },
      get checks() {
        return checks;
      },
    },
  });
});
beforeEach(() => {
  decide = always(OK);
  unhealthy = [];
  checks = PASSING;
  requests.splice(0);
  log.lines.splice(0);
});
afterAll(closeAll);

/** The status, the first word of the type, and the text of an answer. */
async function answerOf(path: string, init?: RequestInit): Promise<readonly unknown[]> {
  const response = await fetch(server.url + path, init);
  return [response.status, response.headers.get('content-type')?.split(';')[0], await response.text()];
}

describe('/healthcheck, /readyz and /livez', () => {
  it('answer what the health and the checks are at that moment', async () => {
    const verbose = '[+]configuration ok\n[+]store ok\nreadyz check passed\n';
    expect(await answerOf('/healthcheck?probe=1')).toEqual([200, 'text/plain', 'OK']);
    expect(await answerOf('/readyz')).toEqual([200, 'text/plain', 'ok']);
    expect(await answerOf('/readyz?verbose')).toEqual([200, 'text/plain', verbose]);
    unhealthy = ['store', 'termination'];
    checks = FAILING;
    expect(await answerOf('/healthcheck')).toEqual([500, 'text/plain', 'unhealthy: store, termination']);
    expect(await answerOf('/readyz')).toEqual([503, 'text/plain', FAILED_LIST]);
    expect(await answerOf('/readyz?verbose=1')).toEqual([503, 'text/plain', FAILED_LIST]);
    expect(await answerOf('/livez')).toEqual([200, 'text/plain', 'ok']);
  });

  it('answer HEAD without a body, and other methods with 405', async () => {
    for (const path of ['/healthcheck', '/readyz', '/livez']) {
      expect((await answerOf(path, { method: 'HEAD' }))[2]).toBe('');
      const rejected = await fetch(server.url + path, { method: 'POST' });
      expect([rejected.status, rejected.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    }
    unhealthy = ['store'];
    expect(await answerOf('/healthcheck', { method: 'HEAD' })).toEqual([500, 'text/plain', '']);
  });
});

describe('POST /json', () => {
  function send(body: string | Uint8Array<ArrayBuffer>, headers = {}) {
    return answerOf('/json', { method: 'POST', body, headers });
  }

  it('decides the request in the body, and answers 200 or 429 with the verdict as JSON, whatever the Content-Type', async () => {
    expect(await send(REQUEST)).toEqual([200, 'application/json', '{"overallCode":"OK","statuses":[{"code":"OK"}]}']);
    expect(requests).toMatchObject([{ domain: 'd', descriptors: [{ entries: [{ key: 'a', value: 'b' }] }] }]);
    decide = always(OVER_LIMIT);
    for (const type of ['application/x-www-form-urlencoded', 'text/xml; charset=latin1', '']) {
      expect(await send(REQUEST, { 'Content-Type': type })).toEqual([
        429,
        'application/json',
        writeVerdict(OVER_LIMIT),
      ]);
    }
  });

  it('accepts a body that arrives in pieces, split inside a character', async () => {
    const body = Buffer.from('{"domain":"é"}');
    const cut = body.indexOf(0xc3) + 1;
    const headers = { 'Content-Length': body.length };
    const sent = httpRequest({ port: server.port, method: 'POST', path: '/json', headers });
    const status = new Promise((resolve) => {
      sent.once('response', (response) => resolve(response.resume().statusCode));
    });
    sent.write(body.subarray(0, cut), () => setImmediate(() => sent.end(body.subarray(cut))));
    expect(await status).toBe(200);
    expect(requests[0]!.domain).toBe('é');
  });

  it('answers a request with Expect: 100-continue, unless its body is too long', async () => {
    const head = 'POST /json HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ';
    const caller = rawConnection(server.port, `${head}${REQUEST.length}\r\n\r\n`);
    expect(await caller.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 100 Continue/);
    caller.send(REQUEST);
    expect(await caller.until(/overallCode/)).toMatch(/HTTP\/1\.1 200 OK/);
    expect(await rawConnection(server.port, `${head}${2 * MIB}\r\n\r\n`).until(/\}\}$/)).toMatch(/^HTTP\/1\.1 413 /);
  });

  const NO_UTF_8 = '$: the body is not valid UTF-8';
  it.each<readonly [body: string | readonly number[], message: string]>([
    ['{"domain":"d"', '$.domain: expected "," or "}", got the end of the body (line 1, column 14)'],
    ['', '$: expected a RateLimitRequest (an object), got the end of the body (line 1, column 1)'],
    [[0xff], NO_UTF_8],
    [[0xed, 0xa0, 0x80], NO_UTF_8],
  ])('answers 400 with the reason for the body %j', async (body, message) => {
    const bytes = typeof body === 'string' ? Buffer.from(body) : Buffer.from([0x22, ...body, 0x22]);
    const error = JSON.stringify({ error: { code: 'invalid_request', message } });
    expect(await send(new Uint8Array(bytes))).toEqual([400, 'application/json', error]);
  });

  it.each<[DecisionErrorCode, number]>([
    ['invalid_request', 400],
    ['no_configuration', 503],
    ['too_much_work', 413],
    ['store_failed', 503],
    ['store_timeout', 503],
    ['store_pool_empty', 503],
    ['shutting_down', 503],
  ])('answers %s with %i', async (code, status) => {
    decide = (_request, observer) => {
      observer.error(new DecisionError(code, 'the reason', { cause: new Error('secret') }));
      return { cancel: () => {} };
    };
    const error = JSON.stringify({ error: { code, message: 'the reason' } });
    expect(await send(REQUEST)).toEqual([status, 'application/json', error]);
  });

  it('answers under other spellings of its target as it does under the usual one', async () => {
    const caller = rawConnection(server.port);
    for (const target of ['/json', '/json?a=1', 'http://x/json']) caller.send(POST_BYTES.replace('/json', target));
    const answer =
      'HTTP/1\\.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: \\d+\\r\\nDate: [^\\r]+\\r\\n' +
      'Connection: keep-alive\\r\\nKeep-Alive: timeout=75\\r\\n\\r\\n\\{"overallCode":"OK"[^\\r]*\\}';
    expect(await caller.until(new RegExp(`(${answer}){3}$`))).toMatch(/^HTTP/);
  });

  it('passes on the headers by their names in lower case, several of one name as a list', async () => {
    const names = ['x-request-id', 'a', 'b', 'c', 'content-length'];
    let values: unknown;
    decide = (request, observer) => {
      values = names.map((name) => observer.caller?.metadata?.(name));
      return always(OK)(request, observer);
    };
    const headers = 'Host: x\r\nX-REQUEST-ID: 1 \r\na:2\r\nA: \t3\r\nb:\r\n';
    await rawConnection(server.port, POST_BYTES.replace('Host: x\r\n', headers)).until(/\}\]\}$/);
    expect(values).toEqual(['1', '2, 3', undefined, undefined, '68']);
  });

  it.each<[when: string, Decide]>([
    [
      'when it is decided',
      () => {
        throw new TypeError('x is not a function');
      },
    ],
    [
      'when its answer is written',
      (_request, observer) => {
        observer.verdict({ overallCode: 1 } as Verdict);
        return { cancel: () => {} };
      },
    ],
  ])('answers 500 on an internal error %s, logs the reason, and continues', async (_, failing) => {
    decide = failing;
    const [status, , text] = await send(REQUEST);
    expect([status, text]).toEqual([500, expect.not.stringContaining('function')]);
    expect(log.short).toEqual(['error internal error in an HTTP request; answered with status 500']);
    expect((await answerOf('/healthcheck'))[0]).toBe(200);
  });
});

describe('a body over 1 MiB', () => {
  it('is rejected with 413 from one byte above the limit, also for callers that read only after sending', async () => {
    expect((await post(server, REQUEST.padEnd(MIB))).status).toBe(200);
    for (const response of await Promise.all(
      [MIB + 1, ...Array(8).fill(2 * MIB)].map((n) => post(server, ' '.repeat(n))),
    )) {
      expect(response.headers.get('connection')).toBe('close');
      const error = { code: 'body_too_large', message: 'the request body is larger than 1 MiB' };
      expect([response.status, await response.json()]).toEqual([413, { error }]);
    }
  });

  it.each([
    ['with a Content-Length', true],
    ['with chunked encoding', false],
  ])('is rejected while it is being sent, and the caller receives the response: %s', async (_title, announced) => {
    const length = announced ? `Content-Length: ${4 * MIB}` : 'Transfer-Encoding: chunked';
    const caller = rawConnection(server.port, `POST /json HTTP/1.1\r\nHost: x\r\n${length}\r\n\r\n`);
    const piece = ' '.repeat(MIB / 4);
    const sent = announced ? piece : `${piece.length.toString(16)}\r\n${piece}\r\n`;
    caller.send(sent.repeat(8));
    expect(await caller.until(/\}\}$/)).toMatch(/^HTTP\/1\.1 413 /);
    // The rest of the body is discarded, then the connection closes without a reset.
    caller.send(sent.repeat(8) + (announced ? '' : '0\r\n\r\n'));
    expect(await caller.ended).toMatch(/\}\}$/);
    expect(caller.errors).toEqual([]);
  });
});

describe('an unknown path or method', () => {
  it('is answered with 404 as JSON', async () => {
    for (const line of ['GET /', 'POST /json/', 'POST /JSON', 'POST /%', 'GET //json', 'OPTIONS /']) {
      const [method, path] = line.split(' ') as [string, string];
      const [status, type, text] = await answerOf(path, { method });
      expect([line, status, type]).toEqual([line, 404, 'application/json']);
      expect(text).toMatch(/^\{"error":\{"code":"not_found",/);
    }
  });

  it('is answered with 405 and what is allowed', async () => {
    for (const [method, path, allow] of [
      ['GET', '/json', 'POST'],
      ['PUT', '/json', 'POST'],
      ['OPTIONS', '/json', 'POST'],
      ['DELETE', '/healthcheck', 'GET, HEAD'],
    ] as const) {
      const response = await fetch(`${server.url}${path}`, { method });
      const error = { code: 'method_not_allowed', message: `${method} is not allowed here; allowed: ${allow}` };
      expect([response.status, response.headers.get('allow'), await response.json()]).toEqual([405, allow, { error }]);
    }
    expect(await answerOf('/json', { method: 'HEAD' })).toEqual([405, 'application/json', '']);
  });
});

it('while no worker is ready, every request is answered with 503 and its connection closed, except /livez', async () => {
  unhealthy = ['waiting for the first valid rules'];
  const listener = unavailableHttp({
    // Healthy in itself: there is nothing that could decide.
    readiness: { health: { healthy: true, unhealthy }, checks: FAILING },
    onRejected: () => undefined,
    log,
  });
  await using _ = { [Symbol.asyncDispose]: () => listener.close() };
  await listener.listen({ host: '127.0.0.1', port: 0 });
  const error = { code: 'unavailable', message: 'no worker of this instance is ready; try again later' };
  const json = JSON.stringify({ error });
  async function answer(path: string, init?: RequestInit): Promise<unknown[]> {
    const response = await fetch(`http://127.0.0.1:${listener.address.port}${path}`, init);
    return [response.status, response.headers.get('connection'), await response.text()];
  }
  for (const path of ['/json', '/json?a=b', '/nowhere']) {
    for (const init of [{ method: 'POST', body: REQUEST }, { method: 'GET' }, { method: 'DELETE' }]) {
      expect([path, init.method, ...(await answer(path, init))]).toEqual([path, init.method, 503, 'close', json]);
    }
  }
  expect(await answer('/healthcheck', { method: 'POST' })).toEqual([503, 'close', json]);
  expect(await answer('/healthcheck')).toEqual([503, 'close', 'unhealthy: waiting for the first valid rules']);
  expect(await answer('/readyz')).toEqual([503, 'close', FAILED_LIST]);
  expect(await answer('/livez')).toEqual([200, 'close', 'ok']);
});

describe('a caller that disconnects', () => {
  it('cancels its request, and ends the span of it without a status', async () => {
    const { decide: pending, requested, cancelled } = pendingDecisions();
    const ended: unknown[] = [];
    const trace: CallTrace = { traceId: '0', ended: (...values) => void ended.push(values) };
    const traced = await startServer({
      decide: pending,
      tracer: { fields: [], begin: () => trace } as unknown as Tracer,
    });
    const caller = rawConnection(traced.port, POST_BYTES);
    await until('the request', () => requested.length === 1);
    // Only so does the service learn at once that the response has no reader.
    caller.socket.resetAndDestroy();
    await until('the span to end', () => ended.length > 0);
    expect([cancelled, ended]).toEqual([['cancelled'], [[{}, false]]]);
  });

  it('inside its body causes no decision and no log line above debug', async () => {
    const caller = rawConnection(server.port, 'POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"domain"');
    caller.socket.end();
    await caller.ended;
    expect((await answerOf('/healthcheck'))[0]).toBe(200);
    expect([requests, log.short.filter((line) => !line.startsWith('debug'))]).toEqual([[], []]);
  });

  it('after the response cancels nothing', async () => {
    const pending = pendingDecisions();
    decide = pending.decide;
    const caller = rawConnection(server.port, POST_BYTES);
    await until('the request', () => pending.requested.length === 1);
    pending.requested[0]!.observer.verdict(OK);
    await caller.until(/\}\]\}$/);
    caller.socket.destroy();
    await caller.ended;
    expect(pending.cancelled).toEqual([]);
  });
});

it('a caller that is slow with its headers or its body, or sends nothing, is disconnected', async () => {
  const { decide: pending, requested } = pendingDecisions();
  const impatient = await startServer({ decide: pending, timeouts: { headers: 100, request: 100 } });
  const head = rawConnection(impatient.port, 'POST /json HTTP/1.1\r\nHost:');
  const body = rawConnection(impatient.port, 'POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{');
  const silent = rawConnection((await startServer({ timeouts: { inactive: 100 } })).port);
  expect(await head.ended).toMatch(/^HTTP\/1\.1 408 /);
  await body.ended;
  expect([await silent.ended, requested]).toEqual(['', []]);
});

it('a connection is ended when it is idle for too long, and not during a decision', async () => {
  const { decide: pending, requested } = pendingDecisions();
  const impatient = await startServer({ decide: pending, timeouts: { keepAlive: 100 } });
  const idle = rawConnection(impatient.port, POST_BYTES);
  const deciding = rawConnection(impatient.port, POST_BYTES);
  await until('both requests', () => requested.length === 2);
  requested[0]!.observer.verdict(OK);
  expect(await idle.ended).toMatch(/Keep-Alive: timeout=0\r\n\r\n\{.*\}$/);
  requested[1]!.observer.error(new DecisionError('store_failed', 'the store has failed'));
  expect(await deciding.until(/\}\}$/)).toMatch(/^HTTP\/1\.1 503 Service Unavailable/);
});

describe('close', () => {
  it('finishes requests in flight with Connection: close, accepts no new connection, and resolves for each caller', async () => {
    const { decide: pending, requested } = pendingDecisions();
    const closing = await startServer({ decide: pending, timeouts: { grace: 60_000 } });
    const response = post(closing, REQUEST);
    await until('the request', () => requested.length === 1);
    let closed = false;
    const ended = Promise.all([closing.close(), closing.close()]).then(() => (closed = true));
    await expect(fetch(`${closing.url}/healthcheck`)).rejects.toThrow('fetch failed');
    expect(closed).toBe(false);
    requested[0]!.observer.verdict(OK);
    expect((await response).headers.get('connection')).toBe('close');
    await ended;
    await closing.close();
  });

  it('closes idle connections and those without a complete request immediately', async () => {
    const closing = await startServer({ timeouts: { grace: 60_000 } });
    const idle = Array.from({ length: 20 }, () => rawConnection(closing.port, HEALTH_BYTES));
    await Promise.all(idle.map((caller) => caller.until(/OK$/)));
    const incomplete = ['', 'POST /json HTTP/1.1\r\nHost: x\r\n'].map((bytes) => rawConnection(closing.port, bytes));
    await fetch(`${closing.url}/healthcheck`);
    await closing.close();
    expect(
      await Promise.all([...idle, ...incomplete].map(({ errors, ended }) => ended.then(() => errors))),
    ).toHaveLength(22);
  });

  it('aborts requests that take longer than the grace period', async () => {
    const { decide: pending, requested } = pendingDecisions();
    const closing = await startServer({ decide: pending, timeouts: { grace: 50 } });
    const failure = post(closing, REQUEST).catch(String);
    await until('the request', () => requested.length === 1);
    await closing.close();
    expect(await failure).toContain('fetch failed');
  });
});

describe('a connection', () => {
  it('carries many requests, sequential and pipelined, also after a rejected one', async () => {
    const caller = rawConnection(server.port, 'POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx');
    await caller.until(/400 Bad Request[^]*\}\}$/);
    caller.send(POST_BYTES.repeat(20));
    expect(await caller.until(/(HTTP\/1\.1 200 OK[^{]*\{"overallCode":"OK","statuses":\[[^\]]*\]\}){20}$/)).toMatch(
      /^HTTP/,
    );
  });

  it('gets the answers of one turn of the event loop together, if it is still there', async () => {
    const writtenBefore: number[] = [];
    let leaves = true;
    decide = (request, observer) => {
      const peer = observer.caller!.peer as Socket;
      writtenBefore.push(peer.bytesWritten);
      const pending = always(OK)(request, observer);
      if (leaves) peer.destroy();
      return pending;
    };
    expect(await rawConnection(server.port, POST_BYTES).ended).toBe('');
    leaves = false;
    const caller = rawConnection(server.port, POST_BYTES.repeat(3));
    await caller.until(/(HTTP\/1\.1 200 OK[^{]*\{"overallCode":"OK","statuses":\[[^\]]*\]\}){3}$/);
    expect(writtenBefore).toEqual([0, 0, 0, 0]);
  });

  it('that the system cannot accept is logged, and further ones are served', async () => {
    const servers: Server[] = [];
    const listen = jest.spyOn(Server.prototype, 'listen').mockImplementation(function listening(this: Server, ...args) {
      servers.push(this);
      listen.mockRestore();
      return this.listen(...args);
    });
    const other = new RecordedLog();
    const failing = await startServer({ log: other });
    servers[0]!.emit('error', Object.assign(new Error('accept ENFILE'), { code: 'ENFILE' }));
    expect(other.short).toEqual(['error a listener has failed']);
    expect((await fetch(`${failing.url}/healthcheck`)).status).toBe(200);
  });
});
