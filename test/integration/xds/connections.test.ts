import { once } from 'node:events';
import { type ServerHttp2Session, createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, createServer } from 'node:net';
import { status as Code } from '@grpc/grpc-js';
import { AdsServer, SnapshotCache } from '../../support/servers/ads-server';
import { freePorts } from '../../support/processes/free-ports';
import { simpleResource } from '../../support/data/rule-resources';
import { SilentPeer } from '../../support/servers/silent-peer';
import { XdsRules } from '../../support/data/xds-rules';
import { summary } from '../../sources/rule-files/watched-rules';

const NO_TLS_FILES = {
  ca: undefined,
  certificate: undefined,
  key: undefined,
  serverName: undefined,
  variables: { ca: '', certificate: '', key: '' },
};

describe('the xDS source, while the server is unavailable,', () => {
  test('retries until the server is available, with one line for the trouble and one for its end', async () => {
    const [port] = await freePorts(1);
    using rules = new XdsRules({ target: `127.0.0.1:${port}` });
    expect(await rules.log.line(/^warn/)).toMatch(/^warn no stream from the xDS server.*: UNAVAILABLE: .*ECONNREFUSED/);
    const cache = new SnapshotCache();
    cache.publish('1', [simpleResource('shop', 5)]);
    await using _ = await AdsServer.start({ cache, port });
    expect(summary(await rules.next())).toBe('shop=5');
    // One line for all failed attempts, and one for their end.
    expect(rules.log.lines.filter((line) => line.startsWith('warn'))).toEqual([
      expect.stringContaining('no stream from the xDS server'),
      'warn connected to the xDS server',
    ]);
  });

  test.each([true, false])(
    'keeps the rules when the server is back with the same version (sends it again: %s)',
    async (sendsAgain) => {
      const cache = new SnapshotCache(sendsAgain);
      cache.publish('1', [simpleResource('shop', 5)]);
      const before = await AdsServer.start({ cache });
      using rules = new XdsRules({ target: before.address });
      expect(summary(await rules.next())).toBe('shop=5');
      await before[Symbol.asyncDispose]();
      await rules.log.line(/ended|no stream/);
      await using after = await AdsServer.start({ cache, port: before.port });
      const stream = await after.nextStream();
      expect(await stream.nextRequest()).toMatchObject({ versionInfo: '1', responseNonce: '' });
      if (sendsAgain) expect(await stream.nextRequest()).toMatchObject({ versionInfo: '1', responseNonce: 'nonce-1' });
      expect(rules.events).toHaveLength(1);
      cache.publish('2', [simpleResource('shop', 6)]);
      expect(summary(await rules.next())).toBe('shop=6');
    },
  );

  test('loads other rules under a version that was used before', async () => {
    const before = await AdsServer.start({ cache: published('1', 5) });
    using rules = new XdsRules({ target: before.address });
    await rules.next();
    await before[Symbol.asyncDispose]();
    const again = new SnapshotCache(true);
    again.publish('1', [simpleResource('shop', 6)]);
    await using _ = await AdsServer.start({ cache: again, port: before.port });
    expect(summary(await rules.next())).toBe('shop=6');
  });
});

describe('the xDS source, when a stream ends,', () => {
  test.each([
    ['OK', undefined],
    ['UNAVAILABLE', Code.UNAVAILABLE],
    ['CANCELLED', Code.CANCELLED],
    ['PERMISSION_DENIED', Code.PERMISSION_DENIED],
    ['UNIMPLEMENTED', Code.UNIMPLEMENTED],
  ])('opens a new stream and keeps the rules: %s', async (_, code) => {
    await using server = await AdsServer.start();
    using rules = new XdsRules({ target: server.address });
    const first = await server.nextStream();
    first.send('1', [simpleResource('shop', 5)]);
    await rules.next();
    first.end(code === undefined ? undefined : { code, details: 'line one\nline two' });
    const second = await server.nextStream();
    expect(await second.nextRequest()).toMatchObject({ versionInfo: '1', responseNonce: '' });
    expect(rules.events).toHaveLength(1);
    const reason = code === undefined ? 'the server ended the stream' : `${Code[code]}: line one line two`;
    expect(rules.log.lines).toContain(`info the stream from the xDS server ended; reconnecting: ${reason}`);
  });

  test('hides the values of its headers in the error that the server returned', async () => {
    await using server = await AdsServer.start();
    using rules = new XdsRules({
      target: server.address,
      headers: () => ({ authorization: 'Bearer hidden-token', zone: 'a' }),
    });
    const first = await server.nextStream();
    first.end({ code: Code.UNAUTHENTICATED, details: 'a token of hidden-token (Bearer hidden-token) is no good' });
    await server.nextStream();
    expect(rules.log.lines.join('\n')).toContain('UNAUTHENTICATED: a token of *** (***) is no good');
    expect(rules.log.lines.join('\n')).not.toContain('hidden-token');
  });

  test('loads the response of the next stream when a large response was in progress', async () => {
    await using server = await AdsServer.start();
    using rules = new XdsRules({ target: server.address, smallSet: 0 });
    const first = await server.nextStream();
    first.send('1', [simpleResource('shop', 5)]);
    first.end({ code: Code.UNAVAILABLE });
    const second = await server.nextStream();
    second.send('2', [simpleResource('shop', 6)]);
    let event = await rules.next();
    while (summary(event) === 'shop=5') event = await rules.next();
    expect(summary(event)).toBe('shop=6');
  });
});

describe('the xDS source, when a response cannot be received,', () => {
  test('rejects a response that is too large, naming the setting of the limit, and continues', async () => {
    await using server = await AdsServer.start();
    using rules = new XdsRules({ target: server.address, maxMessageBytes: 1000 });
    const first = await server.nextStream();
    first.send(
      '1',
      Array.from({ length: 100 }, (_, index) => simpleResource(`shop-${index}`, index)),
    );
    expect(summary(await rules.next())).toMatch(
      /^rejected: xDS server \S+: a response of \d+ bytes exceeds XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES \(1000\)$/,
    );
    const second = await server.nextStream();
    expect(await second.nextRequest()).toMatchObject({ versionInfo: '', responseNonce: '' });
    second.send('2', [simpleResource('shop', 5)]);
    expect(summary(await rules.next())).toBe('shop=5');
  });

  test('rejects a message that is not a response, and marks the second one as repeated', async () => {
    await using server = await AdsServer.start();
    using rules = new XdsRules({ target: server.address });
    (await server.nextStream()).sendBytes(Buffer.from([10, 200, 1]));
    const first = await rules.next();
    expect(summary(first)).toMatch(/^rejected: xDS server \S+: cannot decode a response: /);
    (await server.nextStream()).sendBytes(Buffer.from([10, 200, 1]));
    expect(await rules.next()).toEqual({ ...first, isRepeated: true });
    (await server.nextStream()).send('2', [simpleResource('shop', 5)]);
    expect(summary(await rules.next())).toBe('shop=5');
  });
});

describe('the xDS source, when the peer is not a management server,', () => {
  test.each([
    ['plain', undefined],
    ['TLS', NO_TLS_FILES],
  ])('closes the connection to a peer that sends nothing (%s)', async (_, tls) => {
    await using peer = await SilentPeer.start();
    using rules = new XdsRules({ target: peer.address, tls, connectTimeout: 200 });
    expect(await rules.log.line(/^warn/)).toMatch(/: no response within 0\.2 s$/);
    await peer.closed.next();
    await peer.closed.next();
  });

  test('warns about a peer that closes the connection immediately', async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    using rules = new XdsRules({ target: `127.0.0.1:${(server.address() as AddressInfo).port}` });
    expect(await rules.log.line(/^warn/)).toMatch(/UNAVAILABLE/);
    server.close();
  });

  test.each([
    [200, /: the peer does not speak gRPC$/],
    [404, /: UNIMPLEMENTED: /],
    [503, /: UNAVAILABLE: /],
  ])('warns about a web server (HTTP %i)', async (status, warning) => {
    const server = createHttp2Server((_, response) => {
      response.writeHead(status, { 'content-type': 'text/html' });
      response.end('<html><body>Welcome</body></html>');
    });
    const sessions = new Set<ServerHttp2Session>();
    server.on('session', (session: ServerHttp2Session) => sessions.add(session));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    using rules = new XdsRules({ target: `127.0.0.1:${(server.address() as AddressInfo).port}` });
    expect(await rules.log.line(/^warn/)).toMatch(warning);
    for (const session of sessions) session.destroy();
    server.close();
  });
});

test('the xDS source warns about an invalid target and does not end the process', async () => {
  using rules = new XdsRules({ target: '' });
  expect(await rules.log.line(/^warn/)).toMatch(/no stream from the xDS server/);
});

function published(version: string, requestsPerUnit: number): SnapshotCache {
  const cache = new SnapshotCache();
  cache.publish(version, [simpleResource('shop', requestsPerUnit)]);
  return cache;
}
