import { Agent, request as httpRequest } from 'node:http';
import { Server } from 'node:net';
import { writeVerdict } from '../../src/http/json/write-verdict';
import { DecisionError, type DecisionErrorCode } from '../../src/limiter/decision-error';
import type { RateLimitRequest } from '../../src/limiter/request';
import type { DecisionObserver, CancelCause, Decide } from '../../src/streams/ports/decide';
import type { CallTrace, Tracer } from '../../src/streams/ports/tracer';
import { until as eventually } from '../support/waiting/until';
import {
  OK,
  OVER_LIMIT,
  REQUEST,
  always,
  closeAll,
  post,
  rawConnection,
  recordingLog,
  startServer,
} from './http-client';

afterEach(closeAll);

/** A `Decide` whose requests stay pending until the test answers their observers. */
function pendingDecisions() {
  const requested: { request: RateLimitRequest; observer: DecisionObserver }[] = [];
  const cancelled: CancelCause[] = [];
  const waiting: (() => void)[] = [];
  function changed() {
    for (const resolve of waiting.splice(0)) resolve();
  }
  const decide: Decide = (request, observer) => {
    requested.push({ request, observer });
    changed();
    return {
      cancel: (cause) => {
        cancelled.push(cause);
        changed();
      },
    };
  };
  async function until(condition: () => boolean) {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
      });
    }
  }
  return { decide, requested, cancelled, until };
}

function failing(error: DecisionError): Decide {
  return (_request, observer) => {
    observer.error(error);
    return { cancel: () => {} };
  };
}

describe('/healthcheck', () => {
  it('answers 200 OK while the service is healthy', async () => {
    const server = await startServer();
    const response = await fetch(`${server.url}/healthcheck`);
    expect([response.status, await response.text()]).toEqual([200, 'OK']);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  });

  it('answers 500 with the components that are unhealthy at that moment', async () => {
    let unhealthy: string[] = [];
    const server = await startServer({ health: () => ({ healthy: unhealthy.length === 0, unhealthy }) });
    unhealthy = ['store', 'termination'];
    const response = await fetch(`${server.url}/healthcheck`);
    expect([response.status, await response.text()]).toEqual([500, 'unhealthy: store, termination']);
  });

  it.each([
    [true, 200],
    [false, 500],
  ])('answers HEAD without a body; healthy: %s, status: %i', async (healthy, status) => {
    const server = await startServer({ health: () => ({ healthy, unhealthy: healthy ? [] : ['store'] }) });
    const response = await fetch(`${server.url}/healthcheck`, { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([status, '']);
  });
});

describe('POST /json', () => {
  it('decides the request in the body and answers 200 with the verdict as JSON', async () => {
    const requests: RateLimitRequest[] = [];
    const server = await startServer({
      decide: (request, observer) => {
        requests.push(request);
        return always(OK)(request, observer);
      },
    });
    const response = await post(server, REQUEST);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.text()).toBe('{"overallCode":"OK","statuses":[{"code":"OK"}]}');
    expect(requests).toMatchObject([{ domain: 'd', descriptors: [{ entries: [{ key: 'a', value: 'b' }] }] }]);
  });

  it('answers 429 when the verdict is OVER_LIMIT', async () => {
    const server = await startServer({ decide: always(OVER_LIMIT) });
    const response = await post(server, REQUEST);
    expect([response.status, await response.json()]).toEqual([
      429,
      { overallCode: 'OVER_LIMIT', statuses: [{ code: 'OK' }] },
    ]);
  });

  it.each(['application/x-www-form-urlencoded', 'text/xml; charset=latin1', ''])(
    'ignores the Content-Type "%s"',
    async (type) => {
      const server = await startServer();
      expect((await post(server, REQUEST, { 'Content-Type': type })).status).toBe(200);
    },
  );

  it('answers when the decision is made later', async () => {
    const { decide, requested, until, cancelled } = pendingDecisions();
    const server = await startServer({ decide });
    const response = post(server, REQUEST);
    await until(() => requested.length === 1);
    requested[0]!.observer.verdict(OVER_LIMIT);
    expect((await response).status).toBe(429);
    expect(cancelled).toEqual([]);
  });

  it('accepts ten thousand descriptors', async () => {
    const verdict = { ...OK, statuses: Array.from({ length: 10_000 }, () => OK.statuses[0]!) };
    let count = 0;
    const server = await startServer({
      decide: (request, observer) => {
        count = request.descriptors.length;
        return always(verdict)(request, observer);
      },
    });
    const descriptors = Array.from({ length: 10_000 }, (_, i) => ({ entries: [{ key: 'user', value: String(i) }] }));
    const response = await post(server, JSON.stringify({ domain: 'd', descriptors }));
    expect([response.status, count]).toEqual([200, 10_000]);
    expect(await response.text()).toBe(writeVerdict(verdict));
  });

  it('accepts a body that arrives in pieces, split inside a character', async () => {
    const requests: RateLimitRequest[] = [];
    const server = await startServer({
      decide: (request, observer) => {
        requests.push(request);
        return always(OK)(request, observer);
      },
    });
    const body = Buffer.from('{"domain":"é"}');
    const cut = body.indexOf(0xc3) + 1;
    const sent = httpRequest({
      port: server.port,
      method: 'POST',
      path: '/json',
      headers: { 'Content-Length': body.length },
    });
    const status = new Promise((resolve) => {
      sent.once('response', (response) => resolve(response.resume().statusCode));
    });
    sent.write(body.subarray(0, cut), () => setImmediate(() => sent.end(body.subarray(cut))));
    expect(await status).toBe(200);
    expect(requests[0]!.domain).toBe('é');
  });

  it('answers a request with Expect: 100-continue', async () => {
    const server = await startServer();
    const caller = rawConnection(server.port);
    caller.send(`POST /json HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${REQUEST.length}\r\n\r\n`);
    expect(await caller.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 100 Continue/);
    caller.send(REQUEST);
    expect(await caller.until(/overallCode/)).toMatch(/HTTP\/1\.1 200 OK/);
  });

  it.each([
    ['invalid JSON', '{"domain":"d"', '$.domain: expected "," or "}", got the end of the body (line 1, column 14)'],
    ['no body', '', '$: expected a RateLimitRequest (an object), got the end of the body (line 1, column 1)'],
    ['an unknown field', '{"name":1}', '$.name: unknown field; allowed fields: domain, descriptors, hitsAddend'],
    ['a form', 'domain=d', '$: expected a RateLimitRequest (an object), got domain=d (line 1, column 1)'],
  ])('answers 400 with the reason for %s', async (_title, body, message) => {
    const server = await startServer();
    const response = await post(server, body);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect([response.status, await response.json()]).toEqual([400, { error: { code: 'invalid_request', message } }]);
  });

  it.each([
    ['a byte that UTF-8 does not use', [0xff]],
    ['half a character', [0xc3]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['an overlong form', [0xc0, 0xaf]],
  ])('answers 400 for %s, which is not valid UTF-8', async (_title, bytes) => {
    const server = await startServer();
    const body = Buffer.concat([Buffer.from('{"domain":"'), Buffer.from(bytes), Buffer.from('"}')]);
    const response = await post(server, new Uint8Array(body));
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: { code: 'invalid_request', message: '$: the body is not valid UTF-8' } },
    ]);
  });

  const STATUSES: readonly [DecisionErrorCode, number][] = [
    ['invalid_request', 400],
    ['no_configuration', 503],
    ['too_much_work', 413],
    ['store_failed', 503],
    ['store_timeout', 503],
    ['store_pool_empty', 503],
    ['shutting_down', 503],
  ];
  it.each(STATUSES)('answers %s with %i', async (code, status) => {
    const server = await startServer({
      decide: failing(new DecisionError(code, 'the reason', { cause: new Error('secret') })),
    });
    const response = await post(server, REQUEST);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect([response.status, await response.json()]).toEqual([status, { error: { code, message: 'the reason' } }]);
  });

  it('answers under other spellings of its target as it does under the usual one', async () => {
    const server = await startServer();
    const caller = rawConnection(server.port);
    const rest = ` HTTP/1.1\r\nHost: x\r\nContent-Length: ${REQUEST.length}\r\n\r\n${REQUEST}`;
    for (const target of ['/json', '/json?a=1', 'http://x/json']) caller.send(`POST ${target}${rest}`);
    const answer =
      'HTTP/1\\.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: \\d+\\r\\nDate: [^\\r]+\\r\\n' +
      'Connection: keep-alive\\r\\nKeep-Alive: timeout=75\\r\\n\\r\\n\\{"overallCode":"OK"[^\\r]*\\}';
    expect(await caller.until(new RegExp(`(${answer}){3}$`))).toMatch(/^HTTP/);
  });

  it('answers 500 on an internal error, logs the reason, and continues', async () => {
    const log = recordingLog();
    const server = await startServer({
      log,
      decide: () => {
        throw new TypeError('x is not a function');
      },
    });
    const response = await post(server, REQUEST);
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain('function');
    expect(log.lines).toContain('error internal error in an HTTP request; answered with status 500');
    expect((await fetch(`${server.url}/healthcheck`)).status).toBe(200);
  });
});

describe('a body over 1 MiB', () => {
  const LIMIT = 1024 * 1024;
  function bodyOf(bytes: number) {
    return REQUEST + ' '.repeat(bytes - REQUEST.length);
  }
  const TOO_LARGE = { error: { code: 'body_too_large', message: 'the request body is larger than 1 MiB' } };

  it('is rejected with 413 from one byte above the limit', async () => {
    const server = await startServer();
    expect((await post(server, bodyOf(LIMIT))).status).toBe(200);
    const response = await post(server, bodyOf(LIMIT + 1));
    expect(response.headers.get('connection')).toBe('close');
    expect([response.status, await response.json()]).toEqual([413, TOO_LARGE]);
  });

  it('is rejected without 100 Continue', async () => {
    const server = await startServer();
    const caller = rawConnection(server.port);
    caller.send(`POST /json HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${2 * LIMIT}\r\n\r\n`);
    expect(await caller.until(/\}\}$/)).toMatch(/^HTTP\/1\.1 413 /);
  });

  it.each([
    ['with a Content-Length', true],
    ['with chunked encoding', false],
  ])('is rejected while it is being sent, and the caller receives the response: %s', async (_title, announced) => {
    const server = await startServer();
    const caller = rawConnection(server.port);
    const length = announced ? `Content-Length: ${4 * LIMIT}` : 'Transfer-Encoding: chunked';
    caller.send(`POST /json HTTP/1.1\r\nHost: x\r\n${length}\r\n\r\n`);
    const piece = ' '.repeat(LIMIT / 4);
    function send() {
      return caller.send(announced ? piece : `${piece.length.toString(16)}\r\n${piece}\r\n`);
    }
    for (let i = 0; i < 8; i += 1) send();
    expect(await caller.until(/\}\}$/)).toMatch(/^HTTP\/1\.1 413 /);
    // The rest of the body is discarded, then the connection closes without a reset.
    for (let i = 0; i < 8; i += 1) send();
    if (!announced) caller.send('0\r\n\r\n');
    expect(await caller.ended).toMatch(/\}\}$/);
    expect(caller.errors).toEqual([]);
  });

  it('is answered so that a caller that reads only after sending everything receives the response', async () => {
    const server = await startServer();
    const answers = await Promise.all(
      Array.from({ length: 8 }, async () => (await post(server, bodyOf(2 * LIMIT))).status),
    );
    expect(answers).toEqual(Array(8).fill(413));
  });
});

describe('an unknown path or method', () => {
  it.each([
    ['GET', '/'],
    ['POST', '/json/'],
    ['POST', '/JSON'],
    ['GET', '/healthcheck/x'],
    ['POST', '/%'],
    ['GET', '//json'],
    ['OPTIONS', '/'],
  ])('answers %s %s with 404 as JSON', async (method, path) => {
    const server = await startServer();
    const response = await fetch(`${server.url}${path}`, { method });
    expect([response.status, await response.json()]).toMatchObject([404, { error: { code: 'not_found' } }]);
  });

  it.each([
    ['GET', '/json', 'POST'],
    ['PUT', '/json', 'POST'],
    ['OPTIONS', '/json', 'POST'],
    ['POST', '/healthcheck', 'GET, HEAD'],
    ['DELETE', '/healthcheck', 'GET, HEAD'],
  ])('answers %s %s with 405 and allows %s', async (method, path, allow) => {
    const server = await startServer();
    const response = await fetch(`${server.url}${path}`, { method });
    expect([response.status, response.headers.get('allow'), await response.json()]).toEqual([
      405,
      allow,
      { error: { code: 'method_not_allowed', message: `${method} is not allowed here; allowed: ${allow}` } },
    ]);
  });

  it('answers HEAD /json with 405 and without a body', async () => {
    const server = await startServer();
    const response = await fetch(`${server.url}/json`, { method: 'HEAD' });
    expect([response.status, response.headers.get('allow'), await response.text()]).toEqual([405, 'POST', '']);
  });

  it('ignores a query string', async () => {
    const server = await startServer();
    expect((await fetch(`${server.url}/healthcheck?probe=1`)).status).toBe(200);
  });
});

describe('a connection that the system cannot accept', () => {
  it('is logged, and further ones are served', async () => {
    const log = recordingLog();
    const servers: Server[] = [];
    const listen = jest.spyOn(Server.prototype, 'listen').mockImplementation(function listening(this: Server, ...args) {
      servers.push(this);
      listen.mockRestore();
      return this.listen(...args);
    });
    const server = await startServer({ log });
    servers[0]!.emit('error', Object.assign(new Error('accept ENFILE'), { code: 'ENFILE' }));
    expect(log.lines).toEqual(['error a listener has failed']);
    expect((await fetch(`${server.url}/healthcheck`)).status).toBe(200);
  });
});

describe('a caller that disconnects', () => {
  it('cancels its request', async () => {
    const { decide, requested, cancelled, until } = pendingDecisions();
    const server = await startServer({ decide });
    const caller = new AbortController();
    const response = fetch(`${server.url}/json`, { method: 'POST', body: REQUEST, signal: caller.signal });
    await until(() => requested.length === 1);
    caller.abort();
    await expect(response).rejects.toThrow('abort');
    await until(() => cancelled.length > 0);
    expect(cancelled).toEqual(['cancelled']);
  });

  it('ends the span of its request, without a status', async () => {
    const { decide, requested, until } = pendingDecisions();
    const ended: unknown[] = [];
    const trace: CallTrace = { traceId: '0', ended: (...values) => void ended.push(values) };
    const tracer = { fields: [], begin: () => trace } as unknown as Tracer;
    const server = await startServer({ decide, tracer });
    const caller = rawConnection(server.port);
    caller.send(`POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${REQUEST.length}\r\n\r\n${REQUEST}`);
    await until(() => requested.length === 1);
    caller.socket.destroy();
    await eventually('the span to end', () => ended.length > 0);
    expect(ended).toEqual([[{}, false]]);
  });

  it('inside its body causes no decision and no log line above debug', async () => {
    const { decide, requested } = pendingDecisions();
    const log = recordingLog();
    const server = await startServer({ decide, log });
    const caller = rawConnection(server.port);
    caller.send('POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"domain"');
    caller.socket.end();
    await caller.ended;
    expect((await fetch(`${server.url}/healthcheck`)).status).toBe(200);
    expect(requested).toEqual([]);
    expect(log.lines.filter((line) => !line.startsWith('debug'))).toEqual([]);
  });

  it('after the response cancels nothing', async () => {
    const { decide, requested, cancelled, until } = pendingDecisions();
    const server = await startServer({ decide });
    const caller = rawConnection(server.port);
    caller.send(`POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${REQUEST.length}\r\n\r\n${REQUEST}`);
    await until(() => requested.length === 1);
    requested[0]!.observer.verdict(OK);
    await caller.until(/\}\]\}$/);
    caller.socket.destroy();
    await caller.ended;
    expect(cancelled).toEqual([]);
  });
});

describe('a slow caller', () => {
  it('is disconnected with 408 when its headers take too long', async () => {
    const server = await startServer({ timeouts: { headers: 100, request: 100 } });
    const caller = rawConnection(server.port);
    caller.send('POST /json HTTP/1.1\r\nHost:');
    expect(await caller.ended).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('is disconnected without a decision when its body takes too long', async () => {
    const { decide, requested } = pendingDecisions();
    const server = await startServer({ decide, timeouts: { headers: 100, request: 100 } });
    const caller = rawConnection(server.port);
    caller.send('POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{');
    await caller.ended;
    expect(requested).toEqual([]);
  });

  it('is disconnected when it sends nothing', async () => {
    const server = await startServer({ timeouts: { inactive: 100 } });
    expect(await rawConnection(server.port).ended).toBe('');
  });
});

describe('close', () => {
  it('finishes requests in flight with Connection: close and accepts no new connection', async () => {
    const { decide, requested, until } = pendingDecisions();
    const server = await startServer({ decide, timeouts: { grace: 60_000 } });
    const response = post(server, REQUEST);
    await until(() => requested.length === 1);
    let closed = false;
    const closing = server.close().then(() => {
      closed = true;
    });
    await expect(fetch(`${server.url}/healthcheck`)).rejects.toThrow('fetch failed');
    expect(closed).toBe(false);
    requested[0]!.observer.verdict(OK);
    expect((await response).headers.get('connection')).toBe('close');
    await closing;
  });

  it('closes idle connections and those without a complete request immediately', async () => {
    const server = await startServer({ timeouts: { grace: 60_000 } });
    const agent = new Agent({ keepAlive: true });
    const used = await Promise.all(
      Array.from(
        { length: 50 },
        () =>
          new Promise<number | undefined>((resolve, reject) => {
            httpRequest({ port: server.port, path: '/healthcheck', agent }, (response) => {
              response.resume().once('end', () => resolve(response.statusCode));
            })
              .once('error', reject)
              .end();
          }),
      ),
    );
    expect(new Set(used)).toEqual(new Set([200]));
    const unused = rawConnection(server.port);
    const begun = rawConnection(server.port);
    begun.send('POST /json HTTP/1.1\r\nHost: x\r\n');
    await fetch(`${server.url}/healthcheck`);
    await server.close();
    await Promise.all([unused.ended, begun.ended]);
    agent.destroy();
  });

  it('aborts requests that take longer than the grace period', async () => {
    const { decide, requested, until } = pendingDecisions();
    const server = await startServer({ decide, timeouts: { grace: 50 } });
    const failure = post(server, REQUEST).catch(String);
    await until(() => requested.length === 1);
    await server.close();
    expect(await failure).toContain('fetch failed');
  });

  it('can be called twice', async () => {
    const server = await startServer();
    await expect(Promise.all([server.close(), server.close()])).resolves.toBeDefined();
  });
});

describe('a connection', () => {
  it('carries many requests, sequential and pipelined', async () => {
    const server = await startServer();
    const caller = rawConnection(server.port);
    const request = `POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${REQUEST.length}\r\n\r\n${REQUEST}`;
    caller.send(request);
    await caller.until(/\}\]\}$/);
    caller.send(request.repeat(20));
    const answers = await caller.until(
      /(HTTP\/1\.1 200 OK[^{]*\{"overallCode":"OK","statuses":\[\{"code":"OK"\}\]\}){21}/,
    );
    expect(answers.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(21);
  });

  it('stays open after a rejected request', async () => {
    const server = await startServer();
    const caller = rawConnection(server.port);
    caller.send('POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx');
    await caller.until(/400 Bad Request[^]*\}\}$/);
    caller.send('GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await caller.until(/OK$/)).toContain('200 OK');
  });
});
