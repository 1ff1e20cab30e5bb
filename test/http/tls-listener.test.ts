import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { type SecureContext, connect as connectTls, createSecureContext } from 'node:tls';
import { type CallTls, callHttp } from '../../src/net/call-http';
import type { OnHttpRejected } from '../../src/http/limits';
import { OPERATOR_LIMITS } from '../../src/http/limits';
import { type Authority, type Certificate, newAuthority } from '../support/data/certificates';
import { until } from '../support/waiting/until';
import { type TestHttpServer, closeAll, startDebugServer } from './http-client';

let authority: Authority;
let one: Certificate;
let two: Certificate;
let trusted: SecureContext;
let server: TestHttpServer;
const rejected: string[] = [];

beforeAll(async () => {
  authority = newAuthority();
  [one, two] = [authority.issue('weir-one'), authority.issue('weir-two', '127.0.0.1')];
  trusted = createSecureContext({ ca: authority.ca });
  const onRejected: OnHttpRejected = (kind, _caller, reason) => rejected.push(`${kind}: ${reason}`);
  server = await startDebugServer({ tls: one, onRejected });
});
beforeEach(() => rejected.splice(0));
afterAll(async () => {
  await closeAll();
  authority.dispose();
});

function call(tls?: CallTls) {
  return callHttp({ host: '127.0.0.1', port: server.port, path: '/livez', timeoutMs: 60_000, tls });
}

it('the debug listener with TLS answers over TLS alone, and counts what is none', async () => {
  expect(await call({ name: 'weir-one', context: trusted })).toEqual({ status: 200, text: 'ok' });
  await expect(call()).rejects.toThrow('other side closed');
  expect(rejected).toEqual([expect.stringMatching(/^tls_handshake: .*http request/)]);
});

it('a caller sends nothing to a server whose certificate has another name or issuer, or is not the expected one', async () => {
  await expect(call({ name: 'weir-two', context: trusted })).rejects.toThrow(/does not match certificate's altnames/);
  await expect(call({ name: 'weir-one', context: createSecureContext() })).rejects.toThrow(
    'not accepted: UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  );
  const own = { name: 'localhost', context: createSecureContext() };
  expect((await call({ ...own, known: one.cert })).status).toBe(200);
  await expect(call({ ...own, known: two.cert })).rejects.toThrow('is not accepted');
});

it('a replaced certificate is that of new connections, also for an address', async () => {
  server.replaceTls(two);
  expect((await call({ name: '127.0.0.1', context: trusted })).status).toBe(200);
  await expect(call({ name: 'weir-one', context: trusted })).rejects.toThrow('altnames');
  expect(() => server.replaceTls({ ...one, key: two.key })).toThrow('key values mismatch');
  expect((await call({ name: 'weir-two', context: trusted })).status).toBe(200);
  server.replaceTls(one);
});

it('a caller that ends its half of a connection with TLS is answered', async () => {
  const caller = connectTls({ host: '127.0.0.1', port: server.port, servername: 'weir-one', ca: authority.ca });
  caller.end('GET /livez HTTP/1.1\r\nHost: weir-one\r\n\r\n'.repeat(3));
  expect((await textOf(caller)).match(/HTTP\/1\.1 200 OK\r$/gm)).toHaveLength(3);
});

it('handshakes that do not end close each other, the oldest first, and do not delay the end of the listener', async () => {
  // Older than all of them, but its handshake has ended.
  const used = connectTls({ host: '127.0.0.1', port: server.port, servername: 'weir-one', ca: authority.ca });
  await once(used, 'secureConnect');
  const sockets = Array.from({ length: OPERATOR_LIMITS.maxConnections + 3 }, () => {
    return connectPlain(server.port, '127.0.0.1').on('error', () => undefined);
  });
  await until('three of them are closed', () => sockets.filter(({ destroyed }) => destroyed).length === 3);
  expect((await call({ name: 'weir-one', context: trusted })).status).toBe(200);
  await until('one more is closed', () => sockets.filter(({ destroyed }) => destroyed).length >= 4);
  expect(sockets.at(-1)!.destroyed).toBe(false);
  used.write('GET /livez HTTP/1.1\r\nHost: weir-one\r\nConnection: close\r\n\r\n');
  expect(await textOf(used)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  await server.close();
  await until('all are closed', () => sockets.every(({ destroyed }) => destroyed));
});
