import { createServer } from 'node:net';
import { Agent, request as httpRequest } from 'node:http';
import { writeVerdict } from '../../src/http/json/write-verdict';
import { DecisionError, type DecisionErrorCode } from '../../src/limiter/decision-error';
import type { RateLimitRequest } from '../../src/limiter/request';
import type { DecisionObserver, CancelCause, Decide } from '../../src/streams/ports/decide';
import { ASK, OK, OVER_LIMIT, always, closeAll, openDoor, post, recordingLog, wire } from './http-client';

afterEach(closeAll);

/** A decision that waits until the test makes it. */
function pending() {
  const asked: { request: RateLimitRequest; asker: DecisionObserver }[] = [];
  const cancelled: CancelCause[] = [];
  let told = () => {};
  const decide: Decide = (request, asker) => {
    asked.push({ request, asker });
    told();
    return {
      cancel: (cause) => {
        cancelled.push(cause);
        told();
      },
    };
  };
  async function until(condition: () => boolean) {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        told = resolve;
      });
    }
  }
  return { decide, asked, cancelled, until };
}

function failing(error: DecisionError): Decide {
  return (_request, asker) => {
    asker.error(error);
    return { cancel: () => {} };
  };
}

describe('/healthcheck', () => {
  it('answers 200 OK while the service is healthy', async () => {
    const door = await openDoor();
    const response = await fetch(`${door.url}/healthcheck`);
    expect([response.status, await response.text()]).toEqual([200, 'OK']);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  });

  it('answers 500 and names what is not healthy, as it is at that moment', async () => {
    let unhealthy: string[] = [];
    const door = await openDoor({ health: () => ({ healthy: unhealthy.length === 0, unhealthy }) });
    unhealthy = ['store', 'termination'];
    const response = await fetch(`${door.url}/healthcheck`);
    expect([response.status, await response.text()]).toEqual([500, 'unhealthy: store, termination']);
  });

  it.each([
    [true, 200],
    [false, 500],
  ])('answers HEAD without a body; healthy %s is %i', async (healthy, status) => {
    const door = await openDoor({ health: () => ({ healthy, unhealthy: healthy ? [] : ['store'] }) });
    const response = await fetch(`${door.url}/healthcheck`, { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([status, '']);
  });
});

describe('POST /json', () => {
  it('asks what the body says and answers 200 with the verdict as JSON', async () => {
    const requests: RateLimitRequest[] = [];
    const door = await openDoor({
      decide: (request, asker) => {
        requests.push(request);
        return always(OK)(request, asker);
      },
    });
    const response = await post(door, ASK);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.text()).toBe('{"overallCode":"OK","statuses":[{"code":"OK"}]}');
    expect(requests).toMatchObject([{ domain: 'd', descriptors: [{ entries: [{ key: 'a', value: 'b' }] }] }]);
  });

  it('answers 429 when the verdict is OVER_LIMIT', async () => {
    const door = await openDoor({ decide: always(OVER_LIMIT) });
    const response = await post(door, ASK);
    expect([response.status, await response.json()]).toEqual([
      429,
      { overallCode: 'OVER_LIMIT', statuses: [{ code: 'OK' }] },
    ]);
  });

  it.each(['application/x-www-form-urlencoded', 'text/xml; charset=latin1', ''])(
    'does not look at the Content-Type: "%s"',
    async (type) => {
      const door = await openDoor();
      expect((await post(door, ASK, { 'Content-Type': type })).status).toBe(200);
    },
  );

  it('answers a decision that comes later', async () => {
    const { decide, asked, until, cancelled } = pending();
    const door = await openDoor({ decide });
    const response = post(door, ASK);
    await until(() => asked.length === 1);
    asked[0]!.asker.verdict(OVER_LIMIT);
    expect((await response).status).toBe(429);
    expect(cancelled).toEqual([]);
  });

  it('takes ten thousand descriptors', async () => {
    const verdict = { ...OK, statuses: Array.from({ length: 10_000 }, () => OK.statuses[0]!) };
    let count = 0;
    const door = await openDoor({
      decide: (request, asker) => {
        count = request.descriptors.length;
        return always(verdict)(request, asker);
      },
    });
    const descriptors = Array.from({ length: 10_000 }, (_, i) => ({ entries: [{ key: 'user', value: String(i) }] }));
    const response = await post(door, JSON.stringify({ domain: 'd', descriptors }));
    expect([response.status, count]).toEqual([200, 10_000]);
    expect(await response.text()).toBe(writeVerdict(verdict));
  });

  it('takes a body that arrives in pieces, cut inside a character', async () => {
    const requests: RateLimitRequest[] = [];
    const door = await openDoor({
      decide: (request, asker) => {
        requests.push(request);
        return always(OK)(request, asker);
      },
    });
    const body = Buffer.from('{"domain":"é"}');
    const cut = body.indexOf(0xc3) + 1;
    const sent = httpRequest({
      port: door.port,
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

  it('answers a request that asks before it sends its body', async () => {
    const door = await openDoor();
    const caller = wire(door.port);
    caller.send(`POST /json HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${ASK.length}\r\n\r\n`);
    expect(await caller.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 100 Continue/);
    caller.send(ASK);
    expect(await caller.until(/overallCode/)).toMatch(/HTTP\/1\.1 200 OK/);
  });

  it.each([
    ['broken JSON', '{"domain":"d"', '$.domain: "," or "}" expected, got the end of the body (line 1, column 14)'],
    ['no body', '', '$: a RateLimitRequest (an object) expected, got the end of the body (line 1, column 1)'],
    ['an unknown field', '{"name":1}', '$.name: unknown field; known here are domain, descriptors, hitsAddend'],
    ['a form', 'domain=d', '$: a RateLimitRequest (an object) expected, got domain=d (line 1, column 1)'],
  ])('answers 400 and says why for %s', async (_title, body, message) => {
    const door = await openDoor();
    const response = await post(door, body);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect([response.status, await response.json()]).toEqual([400, { error: { code: 'invalid_request', message } }]);
  });

  it.each([
    ['a byte that UTF-8 does not have', [0xff]],
    ['half a character', [0xc3]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['an overlong form', [0xc0, 0xaf]],
  ])('answers 400 for a body with %s', async (_title, bytes) => {
    const door = await openDoor();
    const body = Buffer.concat([Buffer.from('{"domain":"'), Buffer.from(bytes), Buffer.from('"}')]);
    const response = await post(door, new Uint8Array(body));
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: { code: 'invalid_request', message: '$: the body is not UTF-8' } },
    ]);
  });

  const STATUSES: readonly [DecisionErrorCode, number][] = [
    ['invalid_request', 400],
    ['no_configuration', 503],
    ['store_failed', 503],
    ['store_timeout', 503],
    ['store_pool_empty', 503],
    ['shutting_down', 503],
  ];
  it.each(STATUSES)('answers %s with %i', async (code, status) => {
    const door = await openDoor({
      decide: failing(new DecisionError(code, 'so it is', { cause: new Error('secret') })),
    });
    const response = await post(door, ASK);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect([response.status, await response.json()]).toEqual([status, { error: { code, message: 'so it is' } }]);
  });

  it('answers 500, keeps the reason to the log and lives on, when the service has a defect', async () => {
    const log = recordingLog();
    const door = await openDoor({
      log,
      decide: () => {
        throw new TypeError('x is not a function');
      },
    });
    const response = await post(door, ASK);
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain('function');
    expect(log.lines).toContain('error an HTTP request failed');
    expect((await fetch(`${door.url}/healthcheck`)).status).toBe(200);
  });
});

describe('a body over 1 MiB', () => {
  const LIMIT = 1024 * 1024;
  function bodyOf(bytes: number) {
    return ASK + ' '.repeat(bytes - ASK.length);
  }
  const TOO_LARGE = { error: { code: 'body_too_large', message: 'a request body may have up to 1 MiB' } };

  it('is refused with 413, one byte above the limit, and one of exactly the limit is not', async () => {
    const door = await openDoor();
    expect((await post(door, bodyOf(LIMIT))).status).toBe(200);
    const response = await post(door, bodyOf(LIMIT + 1));
    expect(response.headers.get('connection')).toBe('close');
    expect([response.status, await response.json()]).toEqual([413, TOO_LARGE]);
  });

  it('is refused without being asked for, when the caller asks first', async () => {
    const door = await openDoor();
    const caller = wire(door.port);
    caller.send(`POST /json HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${2 * LIMIT}\r\n\r\n`);
    expect(await caller.until(/\}\}$/)).toMatch(/^HTTP\/1\.1 413 /);
  });

  it.each([
    ['with its length announced', true],
    ['in chunks of unknown number', false],
  ])('is refused while it is still being sent, and the caller can read the answer: %s', async (_title, announced) => {
    const door = await openDoor();
    const caller = wire(door.port);
    const length = announced ? `Content-Length: ${4 * LIMIT}` : 'Transfer-Encoding: chunked';
    caller.send(`POST /json HTTP/1.1\r\nHost: x\r\n${length}\r\n\r\n`);
    const piece = ' '.repeat(LIMIT / 4);
    function send() {
      return caller.send(announced ? piece : `${piece.length.toString(16)}\r\n${piece}\r\n`);
    }
    for (let i = 0; i < 8; i += 1) send();
    expect(await caller.until(/\}\}$/)).toMatch(/^HTTP\/1\.1 413 /);
    // The connection still takes what is under way, then closes in order.
    for (let i = 0; i < 8; i += 1) send();
    if (!announced) caller.send('0\r\n\r\n');
    expect(await caller.ended).toMatch(/\}\}$/);
    expect(caller.errors).toEqual([]);
  });

  it('reaches a caller that reads only after it has sent everything', async () => {
    const door = await openDoor();
    const answers = await Promise.all(
      Array.from({ length: 8 }, async () => (await post(door, bodyOf(2 * LIMIT))).status),
    );
    expect(answers).toEqual(Array(8).fill(413));
  });
});

describe('what is not there', () => {
  it.each([
    ['GET', '/'],
    ['POST', '/json/'],
    ['POST', '/JSON'],
    ['GET', '/healthcheck/x'],
    ['POST', '/%'],
    ['GET', '//json'],
    ['OPTIONS', '/'],
  ])('%s %s is 404 as JSON', async (method, path) => {
    const door = await openDoor();
    const response = await fetch(`${door.url}${path}`, { method });
    expect([response.status, await response.json()]).toMatchObject([404, { error: { code: 'not_found' } }]);
  });

  it.each([
    ['GET', '/json', 'POST'],
    ['PUT', '/json', 'POST'],
    ['OPTIONS', '/json', 'POST'],
    ['POST', '/healthcheck', 'GET, HEAD'],
    ['DELETE', '/healthcheck', 'GET, HEAD'],
  ])('%s %s is 405 and says that %s is allowed', async (method, path, allow) => {
    const door = await openDoor();
    const response = await fetch(`${door.url}${path}`, { method });
    expect([response.status, response.headers.get('allow'), await response.json()]).toEqual([
      405,
      allow,
      { error: { code: 'method_not_allowed', message: `${method} is not allowed here; allowed: ${allow}` } },
    ]);
  });

  it('HEAD /json is 405 without a body', async () => {
    const door = await openDoor();
    const response = await fetch(`${door.url}/json`, { method: 'HEAD' });
    expect([response.status, response.headers.get('allow'), await response.text()]).toEqual([405, 'POST', '']);
  });

  it('does not mind a query', async () => {
    const door = await openDoor();
    expect((await fetch(`${door.url}/healthcheck?probe=1`)).status).toBe(200);
  });
});

describe('a caller that goes away', () => {
  it('takes its question back', async () => {
    const { decide, asked, cancelled, until } = pending();
    const door = await openDoor({ decide });
    const caller = new AbortController();
    const response = fetch(`${door.url}/json`, { method: 'POST', body: ASK, signal: caller.signal });
    await until(() => asked.length === 1);
    caller.abort();
    await expect(response).rejects.toThrow('abort');
    await until(() => cancelled.length > 0);
    expect(cancelled).toEqual(['cancelled']);
  });

  it('in the middle of its body asks nothing', async () => {
    const { decide, asked } = pending();
    const log = recordingLog();
    const door = await openDoor({ decide, log });
    const caller = wire(door.port);
    caller.send('POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"domain"');
    caller.socket.end();
    await caller.ended;
    expect((await fetch(`${door.url}/healthcheck`)).status).toBe(200);
    expect(asked).toEqual([]);
    expect(log.lines.filter((line) => !line.startsWith('debug'))).toEqual([]);
  });

  it('after its answer has taken nothing back', async () => {
    const { decide, asked, cancelled, until } = pending();
    const door = await openDoor({ decide });
    const caller = wire(door.port);
    caller.send(`POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${ASK.length}\r\n\r\n${ASK}`);
    await until(() => asked.length === 1);
    asked[0]!.asker.verdict(OK);
    await caller.until(/\}\]\}$/);
    caller.socket.destroy();
    await caller.ended;
    expect(cancelled).toEqual([]);
  });
});

describe('slow callers', () => {
  it('lose their connection with 408 when the headers take too long', async () => {
    const door = await openDoor({ timeouts: { headers: 100, request: 100 } });
    const caller = wire(door.port);
    caller.send('POST /json HTTP/1.1\r\nHost:');
    expect(await caller.ended).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('lose their connection when the body takes too long, and ask nothing', async () => {
    const { decide, asked } = pending();
    const door = await openDoor({ decide, timeouts: { headers: 100, request: 100 } });
    const caller = wire(door.port);
    caller.send('POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{');
    await caller.ended;
    expect(asked).toEqual([]);
  });

  it('lose a connection that they never use', async () => {
    const door = await openDoor({ timeouts: { inactive: 100 } });
    expect(await wire(door.port).ended).toBe('');
  });
});

describe('closing', () => {
  it('answers what is being asked first, tells the caller to close, and takes nothing new', async () => {
    const { decide, asked, until } = pending();
    const door = await openDoor({ decide, timeouts: { grace: 60_000 } });
    const response = post(door, ASK);
    await until(() => asked.length === 1);
    let closed = false;
    const closing = door.close().then(() => {
      closed = true;
    });
    await expect(fetch(`${door.url}/healthcheck`)).rejects.toThrow('fetch failed');
    expect(closed).toBe(false);
    asked[0]!.asker.verdict(OK);
    expect((await response).headers.get('connection')).toBe('close');
    await closing;
  });

  it('ends many idle connections, unused and half-begun ones at once', async () => {
    const door = await openDoor({ timeouts: { grace: 60_000 } });
    const agent = new Agent({ keepAlive: true });
    const used = await Promise.all(
      Array.from(
        { length: 50 },
        () =>
          new Promise<number | undefined>((resolve, reject) => {
            httpRequest({ port: door.port, path: '/healthcheck', agent }, (response) => {
              response.resume().once('end', () => resolve(response.statusCode));
            })
              .once('error', reject)
              .end();
          }),
      ),
    );
    expect(new Set(used)).toEqual(new Set([200]));
    const unused = wire(door.port);
    const begun = wire(door.port);
    begun.send('POST /json HTTP/1.1\r\nHost: x\r\n');
    await fetch(`${door.url}/healthcheck`);
    await door.close();
    await Promise.all([unused.ended, begun.ended]);
    agent.destroy();
  });

  it('cuts off what takes longer than the grace period', async () => {
    const { decide, asked, until } = pending();
    const door = await openDoor({ decide, timeouts: { grace: 50 } });
    const response = post(door, ASK);
    await until(() => asked.length === 1);
    await door.close();
    await expect(response).rejects.toThrow('fetch failed');
  });

  it('may be asked for twice', async () => {
    const door = await openDoor();
    await expect(Promise.all([door.close(), door.close()])).resolves.toBeDefined();
  });
});

describe('one connection', () => {
  it('carries many requests, one after the other and pipelined', async () => {
    const door = await openDoor();
    const caller = wire(door.port);
    const ask = `POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${ASK.length}\r\n\r\n${ASK}`;
    caller.send(ask);
    await caller.until(/\}\]\}$/);
    caller.send(ask.repeat(20));
    const answers = await caller.until(
      /(HTTP\/1\.1 200 OK[^{]*\{"overallCode":"OK","statuses":\[\{"code":"OK"\}\]\}){21}/,
    );
    expect(answers.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(21);
  });

  it('survives a refused request', async () => {
    const door = await openDoor();
    const caller = wire(door.port);
    caller.send('POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx');
    await caller.until(/400 Bad Request[^]*\}\}$/);
    caller.send('GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await caller.until(/OK$/)).toContain('200 OK');
  });
});

describe('listening', () => {
  it.each(['0.0.0.0', ''])('on "%s" reaches IPv4 and, where the machine has it, IPv6', async (host) => {
    const door = await openDoor({ host });
    expect((await fetch(`http://127.0.0.1:${door.port}/healthcheck`)).status).toBe(200);
    const loopback = await new Promise<boolean>((resolve) => {
      const probe = createServer();
      probe.once('error', () => resolve(false));
      probe.listen({ host: '::1', port: 0 }, () => probe.close(() => resolve(true)));
    });
    const reached = await fetch(`http://[::1]:${door.port}/healthcheck`).then(
      ({ status }) => status === 200,
      () => false,
    );
    expect(reached).toBe(loopback);
  });

  it('says what is wrong when the port is taken', async () => {
    const { port } = await openDoor();
    await expect(openDoor({ port })).rejects.toThrow(
      `cannot listen on 127.0.0.1:${port}: another process listens there already`,
    );
    await expect(openDoor({ host: '0.0.0.0', port })).rejects.toThrow(
      `cannot listen on 0.0.0.0:${port}: another process listens there already`,
    );
  });

  it('says what is wrong when the machine has no such address', async () => {
    await expect(openDoor({ host: '192.0.2.1' })).rejects.toThrow(
      'cannot listen on 192.0.2.1:0: this machine has no such address',
    );
  });
});
