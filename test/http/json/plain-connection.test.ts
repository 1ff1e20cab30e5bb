import { once } from 'node:events';
import { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { DecisionError } from '../../../src/limiter/decision-error';
import type { Decide } from '../../../src/streams/ports/decide';
import fc from '../../support/data/properties';
import { until } from '../../support/waiting/until';
import { concurrently } from '../../attacks/peers';
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
  rawConnection,
  startServer,
} from '../http-client';

const LENGTH = `Content-Length: ${REQUEST.length}\r\n`;
const MIB = 1024 * 1024;
const ANSWER = /HTTP\/1\.1 200 OK[^]*\}\]\}$/;

/** A listener whose decisions are made by each test. */
let server: TestHttpServer;
let decide: Decide;
beforeAll(async () => {
  server = await startServer({
    decide: (decided, observer) => decide(decided, observer),
    // Connections are checked each 250 ms.
    timeouts: { headers: 1_000, request: 1_000 },
  });
});
beforeEach(() => (decide = always(OK)));
afterEach(() => jest.restoreAllMocks());
afterAll(closeAll);

function request(headers: string, { line = 'POST /json HTTP/1.1', body = REQUEST } = {}): string {
  return `${line}\r\n${headers}\r\n${body}`;
}

/** How many connections Node's server has been given from now on. */
function handedOver(): () => number {
  const emit = jest.spyOn(Server.prototype, 'emit');
  const events: readonly (readonly unknown[])[] = emit.mock.calls;
  return () => events.filter(([event]) => event === 'connection').length;
}

/** A response as Node writes it, with the time left out. */
function withoutDate(text: string): string {
  return text.replaceAll(/Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g, 'Date: now');
}

it.each([
  ['as weir-client sends it', POST_BYTES],
  ['with other spellings of its names', request(`hOST:  x:1\r\ncontent-LENGTH:\t${REQUEST.length}\r\n`)],
  ['with Connection: keep-alive', request(`Host: x\r\nConnection: Keep-Alive\r\n${LENGTH}`)],
  ['with values of other bytes than ASCII', request(`Host: x\r\nA: é ÿ\r\nB:\r\n${LENGTH}`)],
  ['with 100 headers', request(`Host: [::1]:80\r\n${'a: b\r\n'.repeat(98)}${LENGTH}`)],
])('a request %s is answered without Node’s server, byte for byte as by it', async (_title, bytes) => {
  const count = handedOver();
  const plain = rawConnection(server.port, Buffer.from(bytes, 'latin1').toString('latin1'));
  await plain.until(ANSWER);
  plain.send(bytes);
  const answers = await plain.until(/\}\]\}[^]*\}\]\}$/);
  expect(count()).toBe(0);
  const node = rawConnection(server.port, HEALTH_BYTES);
  const health = await node.until(/OK$/);
  node.send(bytes);
  const answer = withoutDate((await node.until(ANSWER)).slice(health.length));
  expect(count()).toBe(1);
  expect(withoutDate(answers)).toBe(answer + answer);
});

it.each([
  ['another method', request(`Host: x\r\n${LENGTH}`, { line: 'PUT /json HTTP/1.1' }), 405],
  ['a query', request(`Host: x\r\n${LENGTH}`, { line: 'POST /json?a HTTP/1.1' }), 200],
  ['HTTP/1.0', request(`Host: x\r\n${LENGTH}`, { line: 'POST /json HTTP/1.0' }), 200],
  ['Connection: close', request(`Host: x\r\nConnection: close\r\n${LENGTH}`), 200],
  ['a proxy’s Connection', request(`Host: x\r\nProxy-Connection: keep-alive\r\n${LENGTH}`), 200],
  ['a body in chunks', request('Host: x\r\nTransfer-Encoding: chunked\r\n', { body: '1\r\n[\r\n0\r\n\r\n' }), 400],
  ['an upgrade', request(`Host: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n${LENGTH}`), 200],
  ['two lengths', request(`Host: x\r\n${LENGTH}${LENGTH}`), 400],
  ['no length', request('Host: x\r\n', { body: '' }), 400],
  ['more than 100 headers', request(`Host: x\r\n${'a: b\r\n'.repeat(99)}${LENGTH}`), 431],
  ['two hosts', request(`Host: x\r\nHost: x\r\n${LENGTH}`), 400],
  ['a name that is none', request(`Host: x\r\nA B: c\r\n${LENGTH}`), 400],
  ['a value with a control character', request(`Host: x\r\nA: \u0001\r\n${LENGTH}`), 400],
])('a request with %s is read by Node’s server', async (_title, bytes, status) => {
  const count = handedOver();
  const caller = rawConnection(server.port, POST_BYTES);
  await caller.until(ANSWER);
  expect(count()).toBe(0);
  caller.send(bytes);
  expect(await caller.until(/HTTP[^]*HTTP[^]*\}$/)).toContain(`HTTP/1.1 ${status} `);
  expect(count()).toBe(1);
});

it('a connection is ended when it is idle for too long, and not during a decision', async () => {
  const { decide: pending, requested } = pendingDecisions();
  const impatient = await startServer({ decide: pending, timeouts: { keepAlive: 100, headers: 100 } });
  const idle = rawConnection(impatient.port, POST_BYTES);
  const deciding = rawConnection(impatient.port, POST_BYTES);
  await until('both requests', () => requested.length === 2);
  requested[0]!.observer.verdict(OK);
  expect(await idle.ended).toMatch(/Keep-Alive: timeout=0\r\n\r\n\{.*\}$/);
  requested[1]!.observer.error(new DecisionError('store_failed', 'the store has failed'));
  expect(await deciding.until(/\}\}$/)).toMatch(/^HTTP\/1\.1 503 Service Unavailable/);
});

it('a connection with the beginning of a request is ended by Node’s server, and one with requests in pieces is not', async () => {
  const impatient = await startServer({ timeouts: { headers: 200, request: 200 } });
  const slow = rawConnection(impatient.port, POST_BYTES);
  await slow.until(ANSWER);
  const count = handedOver();
  const steady = rawConnection(server.port);
  steady.socket.setNoDelay();
  for (let index = 0; index < 5; index += 1) {
    for (const at of [0, 20, 40]) {
      steady.send(POST_BYTES.slice(at, at === 40 ? undefined : at + 20));
      await delay(5);
    }
    await steady.until(new RegExp(`(HTTP[^]*\\}\\]\\}){${index + 1}}`));
  }
  expect(count()).toBe(0);
  slow.send(POST_BYTES.slice(0, 20));
  expect(await slow.ended).toContain('HTTP/1.1 408 Request Timeout');
  expect(count()).toBe(1);
});

it('of a caller that does not wait for its responses, or does not read them, little is read', async () => {
  const { decide: pending, requested } = pendingDecisions();
  decide = pending;
  const hasty = rawConnection(server.port, POST_BYTES);
  await until('the first request', () => requested.length === 1);
  hasty.send('x'.repeat(32 * MIB));
  const large = { ...OK, responseHeaders: [{ key: 'x', value: 'y'.repeat(MIB) }] };
  let decisions = 0;
  decide = (asked, observer) => {
    decisions += 1;
    return always(large)(asked, observer);
  };
  const deaf = rawConnection(server.port);
  deaf.socket.setNoDelay().pause();
  for (let sent = 0; sent < 50; sent += 1) {
    deaf.send(POST_BYTES);
    await delay(2);
  }
  expect(hasty.socket.writableLength).toBeGreaterThan(16 * MIB);
  expect(decisions).toBeLessThan(25);
});

it('after close, a connection ends with the response that was due', async () => {
  const { decide: pending, requested } = pendingDecisions();
  const closing = await startServer({ decide: pending, timeouts: { grace: 60_000 } });
  const caller = rawConnection(closing.port, POST_BYTES);
  await until('the request', () => requested.length === 1);
  const closed = closing.close();
  requested[0]!.observer.verdict(OK);
  expect(await caller.ended).toMatch(/\r\nConnection: close\r\n\r\n\{.*\}$/);
  await closed;
});

it('requests that arrive during a decision are answered in their order', async () => {
  const { decide: pending, requested } = pendingDecisions();
  decide = pending;
  const caller = rawConnection(server.port, POST_BYTES);
  await until('the first request', () => requested.length === 1);
  caller.send(HEALTH_BYTES);
  caller.send(POST_BYTES);
  await delay(20);
  expect(requested).toHaveLength(1);
  requested[0]!.observer.verdict(OVER_LIMIT);
  await until('the last request', () => requested.length === 2);
  requested[1]!.observer.verdict(OK);
  expect((await caller.until(/HTTP[^]*HTTP[^]*HTTP[^]*\}$/)).match(/HTTP\/1\.1 \d+/g)).toEqual([
    'HTTP/1.1 429',
    'HTTP/1.1 200',
    'HTTP/1.1 200',
  ]);
});

it('the headers of a request can be read by their names, as from Node', async () => {
  const values: unknown[] = [];
  decide = (_request, observer) => {
    values.push(['x-request-id', 'a', 'b', 'c', 'content-length'].map((name) => observer.caller?.metadata?.(name)));
    observer.verdict(OK);
    return { cancel: () => undefined };
  };
  const bytes = request(`Host: x\r\nX-REQUEST-ID: 1 \r\na:2\r\nA: \t3\r\nb:\r\n${LENGTH}`);
  const caller = rawConnection(server.port, bytes);
  await caller.until(ANSWER);
  caller.send(HEALTH_BYTES);
  await caller.until(/OK$/);
  caller.send(bytes);
  await until('both requests', () => values.length === 2);
  expect(values[0]).toEqual(['1', '2, 3', undefined, undefined, '68']);
  expect(values[1]).toEqual(values[0]);
});

const NAMES = ['Host', 'content-length', 'Content-Length', 'Connection', 'Transfer-Encoding', 'Expect', 'A', 'a b', ''];
const VALUES = ['x', 'x, y', 'close', 'keep-alive', 'chunked', '100-continue', '2', '0', '+2', '', ' ', 'é', '\u0007'];
const LINES = ['POST /json HTTP/1.1', 'POST /json HTTP/1.0', 'post /json HTTP/1.1', 'POST http://x/json HTTP/1.1', ''];
const header = fc.tuple(
  fc.constantFrom(...NAMES),
  fc.constantFrom(': ', ':', ' :', ':\t'),
  fc.constantFrom(...VALUES),
  fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r', ' \r\n'),
);
const CHUNKED = request('Host: x\r\nTransfer-Encoding: chunked\r\n', { body: '2\r\n{}\r\n0\r\n\r\n' });
const valid = fc.constantFrom(POST_BYTES, POST_BYTES, POST_BYTES, HEALTH_BYTES, CHUNKED);
const mutated = fc.oneof(
  { weight: 2, arbitrary: valid },
  fc
    .tuple(fc.constantFrom(...LINES), fc.array(header, { maxLength: 2 }), fc.constantFrom(`Host: x\r\n${LENGTH}`, ''))
    .map(([line, headers, usual]) => request(usual + headers.map((parts) => parts.join('')).join(''), { line })),
  fc.tuple(fc.nat(POST_BYTES.length), fc.constantFrom('\r\n', '\0', 'x')).map(([at, text]) => {
    return POST_BYTES.slice(0, at) + text + POST_BYTES.slice(at);
  }),
);
/** Texts to be sent, each after the answer to the one before. */
const singly = fc.array(mutated, { minLength: 1, maxLength: 3 });
const pipelined = fc.array(valid, { minLength: 2, maxLength: 10 }).map((all) => [all.join('')]);
const LAST = 'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

/** Sends texts, each in pieces, when the one before is answered or hardly will be. Returns all responses, and the port of the caller. */
async function exchange(texts: readonly string[], cuts: readonly number[]): Promise<readonly [string, number]> {
  const caller = rawConnection(server.port);
  await once(caller.socket.setNoDelay(), 'connect');
  const { localPort } = caller.socket;
  for (const text of texts) {
    const before = caller.received();
    const ends = [...cuts.map((cut) => cut % text.length).toSorted((one, other) => one - other), text.length];
    for (const [index, end] of ends.entries()) {
      if (!caller.socket.destroyed) caller.socket.write(text.slice(ends[index - 1] ?? 0, end), 'latin1');
      await delay(1);
    }
    // The text may be the beginning of a request, which is answered with what follows.
    await Promise.race([caller.until(new RegExp(`^[^]{${before.length + 1}}`)), delay(1_000)]);
    // The service learns a little later than the caller that an answer is sent.
    await delay(10);
  }
  return [withoutDate(await caller.ended), localPort!];
}

it('any bytes, in any pieces, are answered as they are by Node’s server', async () => {
  const decided = new Map<number, number>();
  decide = (_request, observer) => {
    const { remotePort } = observer.caller!.peer as Socket;
    const count = (decided.get(remotePort!) ?? 0) + 1;
    decided.set(remotePort!, count);
    // Some at once, some later.
    if (count % 2 === 0) setImmediate(() => observer.verdict(OVER_LIMIT));
    else observer.verdict(OVER_LIMIT);
    return { cancel: () => undefined };
  };
  const cases = fc.sample(fc.tuple(fc.oneof(singly, pipelined), fc.array(fc.nat(1_000), { maxLength: 3 })), 300);
  const [health] = await exchange([LAST], []);
  const first = health.replace('Connection: close', 'Connection: keep-alive\r\nKeep-Alive: timeout=75').length;
  let total = 0;
  /** The system may give the port to a later caller. */
  function takeDecided(port: number): number {
    const count = decided.get(port) ?? 0;
    decided.delete(port);
    total += count;
    return count;
  }
  async function played(at: number): Promise<readonly unknown[]> {
    const [texts, cuts] = cases[at]!;
    const [plain, port] = await exchange([...texts, LAST], cuts);
    const [node, other] = await exchange([HEALTH_BYTES, ...texts, LAST], cuts);
    const answers = [plain, takeDecided(port)];
    return [
      { texts, cuts, answers },
      { texts, cuts, answers: [node.slice(first), takeDecided(other)] },
    ];
  }
  const different: number[] = [];
  await concurrently(cases.length, 20, async (at) => {
    const [plain, node] = await played(at);
    if (!isDeepStrictEqual(plain, node)) different.push(at);
  });
  // An answer is lost when its caller sends more than is read before the connection is closed: not always at the same place.
  for (const at of different) {
    let pair = await played(at);
    for (let again = 0; again < 3 && !isDeepStrictEqual(pair[0], pair[1]); again += 1) pair = await played(at);
    expect(pair[0]).toEqual(pair[1]);
  }
  expect(total).toBeGreaterThan(cases.length);
}, 30_000);
