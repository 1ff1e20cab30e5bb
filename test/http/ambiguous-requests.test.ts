import type { Socket } from 'node:net';
import type { HttpRejection } from '../../src/http/server/rejections';
import { REQUEST, closeAll, post, rawConnection, startServer } from './http-client';

afterEach(closeAll);

const LENGTH = `Content-Length: ${REQUEST.length}\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const CHUNKS = `${REQUEST.length.toString(16)}\r\n${REQUEST}\r\n0\r\n\r\n`;
const SMUGGLED = 'GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n';

function request(headers: string, rest: string, line = 'POST /json HTTP/1.1'): string {
  return `${line}\r\n${headers}\r\n${rest}`;
}

/** Requests that servers read in different ways, and the status that they get. */
const REJECTED: readonly (readonly [title: string, bytes: string, status: number])[] = [
  ['no Host', request(LENGTH, REQUEST), 400],
  ['two different Host headers', request(`Host: x\r\nhost: y\r\n${LENGTH}`, REQUEST), 400],
  ['the same Host header twice', request(`Host: x\r\nHost: x\r\n${LENGTH}`, REQUEST), 400],
  [
    'two different Host headers in HTTP/1.0',
    request(`Host: x\r\nHost: y\r\n${LENGTH}`, REQUEST, 'POST /json HTTP/1.0'),
    400,
  ],
  [
    'a second Host header after 99 others',
    request(`Host: x\r\n${'a: b\r\n'.repeat(99)}Host: y\r\n${LENGTH}`, REQUEST),
    431,
  ],
  ['a Host with a list', request(`Host: x, y\r\n${LENGTH}`, REQUEST), 400],
  ['a Host with a user', request(`Host: user@x\r\n${LENGTH}`, REQUEST), 400],
  ['a Host with a path', request(`Host: x/y\r\n${LENGTH}`, REQUEST), 400],
  ['a target with another host', request(`Host: x\r\n${LENGTH}`, REQUEST, 'POST http://y/json HTTP/1.1'), 400],
  ['a target with another port', request(`Host: x\r\n${LENGTH}`, REQUEST, 'POST http://x:81/json HTTP/1.1'), 400],
  ['a target with a host, and no Host', request(LENGTH, REQUEST, 'POST http://x/json HTTP/1.1'), 400],
  ['Content-Length and Transfer-Encoding', request(`Host: x\r\n${LENGTH}${CHUNKED}`, CHUNKS + SMUGGLED), 400],
  ['Transfer-Encoding and Content-Length', request(`Host: x\r\n${CHUNKED}${LENGTH}`, CHUNKS + SMUGGLED), 400],
  ['two different Content-Lengths', request(`Host: x\r\n${LENGTH}Content-Length: 3\r\n`, REQUEST), 400],
  ['a list of Content-Lengths', request('Host: x\r\nContent-Length: 3, 3\r\n', 'abc'), 400],
  ['a Content-Length with a sign', request('Host: x\r\nContent-Length: +3\r\n', 'abc'), 400],
  ['a header on two lines', request(`Host: x\r\nA: b\r\n c\r\n${LENGTH}`, REQUEST), 400],
  ['a Transfer-Encoding on two lines', request('Host: x\r\nTransfer-Encoding:\r\n chunked\r\n', CHUNKS), 400],
  ['a space before the colon', request(`Host: x\r\nTransfer-Encoding : chunked\r\n`, CHUNKS), 400],
  ['a line that ends in LF', request(`Host: x\nA: b\r\n${LENGTH}`, REQUEST), 400],
  ['lines that all end in LF', `POST /json HTTP/1.1\nHost: x\nContent-Length: ${REQUEST.length}\n\n${REQUEST}`, 400],
  ['a CR in a header', request(`Host: x\rA: b\r\n${LENGTH}`, REQUEST), 400],
  ['a chunk size that ends in LF', request(`Host: x\r\n${CHUNKED}`, '2\n{}\r\n0\r\n\r\n'), 400],
  ['a chunk size in C notation', request(`Host: x\r\n${CHUNKED}`, '0x2\r\n{}\r\n0\r\n\r\n'), 400],
  ['a chunk that is longer than its size', request(`Host: x\r\n${CHUNKED}`, '1\r\n{}\r\n0\r\n\r\n'), 400],
  ['an unknown Transfer-Encoding', request('Host: x\r\nTransfer-Encoding: xchunked\r\n', CHUNKS), 501],
  ['a compressed Transfer-Encoding', request('Host: x\r\nTransfer-Encoding: gzip, chunked\r\n', CHUNKS), 501],
  ['Transfer-Encoding in HTTP/1.0', request(`Host: x\r\n${CHUNKED}`, CHUNKS, 'POST /json HTTP/1.0'), 400],
  ['an unknown Expect', request(`Host: x\r\nExpect: x\r\n${LENGTH}`, REQUEST), 417],
  ['an unknown version', request(`Host: x\r\n${LENGTH}`, REQUEST, 'POST /json HTTP/1.2'), 400],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
];

describe('a request with', () => {
  it.each(REJECTED)('%s is rejected, without a decision, and ends its connection', async (_title, bytes, status) => {
    const kinds: HttpRejection[] = [];
    let decisions = 0;
    const server = await startServer({
      onRejected: (kind: HttpRejection, _caller: Socket) => void kinds.push(kind),
      decide: () => {
        decisions += 1;
        return { cancel: () => {} };
      },
    });
    const caller = rawConnection(server.port);
    caller.send(bytes);
    const response = await caller.ended;
    expect(response.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
    expect(response).toMatch(/^Connection: close\r$/m);
    expect(JSON.parse(response.slice(response.indexOf('\r\n\r\n')))).toEqual({
      error: { code: expect.stringMatching(/^[a-z_]+$/), message: expect.any(String) },
    });
    expect([kinds, decisions]).toEqual([[status === 431 ? 'header_list' : 'malformed'], 0]);
  });

  it.each([
    ['an empty Host', request(`Host:\r\n${LENGTH}`, REQUEST)],
    ['an IPv6 address as Host', request(`Host: [::1]:8080\r\n${LENGTH}`, REQUEST)],
    ['a target with the same host', request(`Host: X:80\r\n${LENGTH}`, REQUEST, 'POST http://x/json HTTP/1.1')],
    ['no Host in HTTP/1.0', request(LENGTH, REQUEST, 'POST /json HTTP/1.0')],
    ['a host with an underscore', request(`Host: weir_http.default:8080\r\n${LENGTH}`, REQUEST)],
    ['100 headers', request(`Host: x\r\n${'a: b\r\n'.repeat(98)}${LENGTH}`, REQUEST)],
  ])('%s is accepted', async (_title, bytes) => {
    const server = await startServer();
    const caller = rawConnection(server.port);
    caller.send(bytes);
    expect(await caller.until(/"code":"OK"\}\]\}/)).toMatch(/^HTTP\/1\.1 200 OK/);
  });
});

it('a response that is due is not mixed with the rejection of the next request', async () => {
  const server = await startServer({ decide: () => ({ cancel: () => {} }) });
  const caller = rawConnection(server.port);
  caller.send(`${request(`Host: x\r\n${LENGTH}`, REQUEST)}this is not HTTP\r\n\r\n`);
  expect(await caller.ended).toBe('');
  const other = rawConnection(server.port);
  other.send('GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(await other.until(/OK$/)).toContain('200 OK');
  expect((await post(server, '{')).status).toBe(400);
});
