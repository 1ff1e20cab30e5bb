import { once } from 'node:events';
import { type ServerHttp2Session, createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, createServer } from 'node:net';
import { PassThrough } from 'node:stream';
import { status as Code } from '@grpc/grpc-js';
import { RULES_TYPE_URL } from '../../../src/sources/xds/check-resources';
import { pauseFloods } from '../../../src/sources/xds/connect-ads';
import { ruleResource, simpleResource } from '../../support/data/rule-resources';
import { domainConfig, limit } from '../../support/data/rules';
import { type XdsRulesOptions, XdsRules } from '../../support/data/xds-rules';
import { freePorts } from '../../support/processes/free-ports';
import { AdsServer, type AdsServerStream, SnapshotCache } from '../../support/servers/ads-server';
import { SilentPeer } from '../../support/servers/silent-peer';
import { summary } from '../../sources/rule-files/watched-rules';

const NODE = { id: 'test-node', cluster: '', metadata: { zone: 'a' } };
const [SHOP, API] = [simpleResource('shop', 5), simpleResource('api', 9)];
const INVALID = ruleResource('shop', domainConfig('shop', { key: '' }));
const EMPTY_KEY = "resource 'shop', descriptors[0]: descriptor has empty key. Write `key: <key of a request entry>`.";
/** Loads every response in a worker thread. */
const IN_WORKER = { smallSet: 0 };

/** A server and a client, after the first request. */
async function startSession(options: Partial<XdsRulesOptions> = {}) {
  const server = await AdsServer.start();
  const rules = new XdsRules({ target: server.address, ...options });
  const stream = await server.nextStream();
  const first = await stream.nextRequest();
  return {
    server,
    rules,
    stream,
    first,
    events: () => rules.events.map(summary),
    rulesets: () => rules.events.flatMap((event) => (event.kind === 'loaded' ? [event.ruleset] : [])),
    async [Symbol.asyncDispose]() {
      rules[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** Sends a response and waits for the ACK or NACK. */
function exchange(stream: AdsServerStream, ...[version, resources, more]: Parameters<AdsServerStream['send']>) {
  stream.send(version, resources, more);
  return stream.nextRequest();
}

describe('the first request of a stream', () => {
  test('names the node and the type, requests all resources, and has neither a version nor a nonce', async () => {
    await using session = await startSession();
    const request = {
      node: NODE,
      resourceNames: [],
      typeUrl: RULES_TYPE_URL,
      responseNonce: '',
      errorDetail: undefined,
    };
    expect(session.first).toStrictEqual({ ...request, versionInfo: '' });
    await exchange(session.stream, '7', [SHOP]);
    session.stream.end();
    const later = await session.server.nextStream();
    expect(await later.nextRequest()).toStrictEqual({ ...request, versionInfo: '' });
  });

  test('has the additional headers as they are when the stream is opened, binary ones as bytes', async () => {
    let token = 'first';
    await using session = await startSession({
      headers: () => ({ Authorization: `Bearer ${token}`, 'Trace-Bin': 'raw' }),
    });
    expect(session.stream.metadata.get('authorization')).toEqual(['Bearer first']);
    expect(session.stream.metadata.get('trace-bin')).toEqual([Buffer.from('raw')]);
    expect(session.rules.log.short).toContain('warn the authorization header is sent to the xDS server unencrypted');
    token = 'second';
    session.stream.end();
    const later = await session.server.nextStream();
    expect(later.metadata.get('authorization')).toEqual(['Bearer second']);
  });
});

test('a valid response replaces all rules before it is acknowledged, unless its rules are active already', async () => {
  await using session = await startSession();
  const { rules, events, rulesets } = session;
  async function reply(...sent: Parameters<AdsServerStream['send']>) {
    const { versionInfo, responseNonce, errorDetail } = await exchange(session.stream, ...sent);
    return [versionInfo, responseNonce, errorDetail];
  }
  expect(await reply('', [SHOP], { nonce: 'n0' })).toEqual(['', 'n0', undefined]);
  expect(events()).toEqual(['shop=5']);
  expect(await reply('7', [SHOP, API])).toEqual(['7', 'nonce-2', undefined]);
  expect(events()).toEqual(['shop=5', 'api=9 shop=5']);
  expect(await reply('7', [API, SHOP])).toEqual(['7', 'nonce-3', undefined]);
  expect(events()).toHaveLength(2);
  expect(await reply('8', [SHOP, API])).toEqual(['8', 'nonce-4', undefined]);
  const source = `xDS server ${session.server.address}`;
  expect(rules.events.at(-1)).toEqual({ ...rules.events[1], origin: { source, version: '8' }, isResent: true });
  expect(rulesets()[2]).toBe(rulesets()[1]);
  await reply('8', [API]);
  await reply('9', []);
  expect(events().slice(3)).toEqual(['api=9', 'no rules']);
  const warnings = ['the server has no rules for this node: nothing is limited'];
  expect(rules.events.at(-1)).toMatchObject({ origin: { source, version: '9' }, warnings });
});

describe('an invalid response', () => {
  test('is rejected with the last accepted version and the reason, and can be followed by the rules from before', async () => {
    await using session = await startSession();
    const { stream, events } = session;
    await exchange(stream, '7', [SHOP]);
    const errorDetail = { code: 3, message: EMPTY_KEY };
    const nack = { versionInfo: '7', responseNonce: 'n8', errorDetail, node: NODE };
    expect(await exchange(stream, '8', [INVALID], { nonce: 'n8' })).toMatchObject(nack);
    const reason = `xDS server ${session.server.address}, version 8:\n${EMPTY_KEY}`;
    expect(events()).toEqual(['shop=5', `rejected: ${reason}`]);
    expect(await exchange(stream, '7', [SHOP])).toMatchObject({ versionInfo: '7', errorDetail: undefined });
    expect(session.rulesets()[1]).toBe(session.rulesets()[0]);
  });

  test('is rejected with a reason of at most 4 KiB', async () => {
    await using session = await startSession();
    const rules = Array.from({ length: 200 }, () => ({ key: '' }));
    const resource = ruleResource('ключи', domainConfig('shop', ...rules));
    const { errorDetail } = await exchange(session.stream, '1', [resource]);
    expect(Buffer.byteLength(errorDetail?.message ?? '')).toBeLessThanOrEqual(4096);
    expect(errorDetail?.message).toMatch(/^resource 'ключи', descriptors\[0\]: descriptor has empty key/);
  });

  const [typeUrl, other] = [RULES_TYPE_URL, 'type.googleapis.com/other.Thing'];
  function any(type: string, text: string) {
    return { typeUrl: type, value: Buffer.from(text) };
  }
  test.each<[what: string, resource: typeof SHOP, reason: RegExp, typeUrl?: string]>([
    ['of another type', SHOP, /^the response is of type type\.googleapis\.com\/other\.Thing, not /, other],
    ['with a resource of another type', any(other, ''), /^resource 2 of 2 is of type \S+Thing, not /],
    ['with a damaged resource', any(typeUrl, '\n\x64\x01'), /^resource 2 of 2 cannot be decoded: /],
    ['with text that happens to decode', any(typeUrl, 'hello world rule'), /^a resource without a name: /],
  ])('%s is rejected as a whole', async (_, resource, reason, type = RULES_TYPE_URL) => {
    await using session = await startSession();
    const { errorDetail } = await exchange(session.stream, '1', [SHOP, resource], { typeUrl: type });
    expect(errorDetail?.message).toMatch(reason);
    expect(session.rules.events.map(({ kind }) => kind)).toEqual(['rejected']);
  });
});

test('several resources of one domain are rejected, or merged with MERGE_DOMAIN_CONFIG in the order of their names', async () => {
  const wide = ruleResource('b', domainConfig('shop', { key: 'key', value: 'x*', rateLimit: limit(2, 'MINUTE') }));
  const first = ruleResource('a', domainConfig('shop', { key: 'key', value: '*x', rateLimit: limit(1, 'MINUTE') }));
  const again = ruleResource('c', domainConfig('shop', { key: 'key', value: '*x' }));
  await using apart = await startSession();
  expect((await exchange(apart.stream, '1', [wide, first])).errorDetail?.message).toBe(
    "resource 'b', domain: duplicate domain 'shop' in config file. resource 'a' already describes " +
      'this domain: put all its rules there, or set MERGE_DOMAIN_CONFIG=true.',
  );
  await using session = await startSession({ settings: { mergeDomainConfig: true } });
  await exchange(session.stream, '1', [wide, first]);
  const shop = session.rulesets()[0]?.domains.get('shop');
  expect([...(shop?.rules() ?? [])].map(({ value }) => value)).toEqual(['*x', 'x*']);
  expect(shop?.find('key', 'xx')?.value).toBe('*x');
  expect((await exchange(session.stream, '2', [wide, first, again])).errorDetail?.message).toBe(
    "resource 'c', descriptors[0].key: duplicate descriptor composite key 'shop.key_*x'. The same " +
      "key and value are at resource 'a', descriptors[0].key; keep one of the two rules, and nest the rules of both in it.",
  );
});

test.each([
  ['20 messages', 'x', 20],
  ['a mebibyte', 'x'.repeat(100_000), 11],
])('a stream is not read for 100 ms after %s', async (_, message, count) => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] });
  const stream = new PassThrough({ objectMode: true, highWaterMark: 1000 });
  const stop = pauseFloods(stream);
  let received = 0;
  stream.on('data', () => (received += 1));
  for (let sent = 0; sent < 3 * count; sent += 1) stream.write(message);
  for (const read of [count, 2 * count]) {
    await new Promise(setImmediate);
    expect([received, stream.isPaused()]).toEqual([read, true]);
    jest.advanceTimersByTime(99);
    await new Promise(setImmediate);
    expect(received).toBe(read);
    jest.advanceTimersByTime(1);
  }
  stop();
  expect(jest.getTimerCount()).toBe(0);
  jest.useRealTimers();
});

describe('responses that are loaded in a worker thread', () => {
  test('are skipped in favour of the last one when they arrive faster than they can be handled', async () => {
    await using session = await startSession(IN_WORKER);
    for (let version = 1; version <= 20; version += 1)
      session.stream.send(`${version}`, [simpleResource('shop', version)]);
    while (!session.events().includes('shop=20')) await session.rules.next();
    expect(session.events().length).toBeLessThan(20);
    let answer = await session.stream.nextRequest();
    while (answer.versionInfo !== '20') answer = await session.stream.nextRequest();
    expect(answer.responseNonce).toBe('nonce-20');
  });

  test.each([
    ['are loaded when the server ends the stream', undefined, ['shop=5', 'shop=6']],
    ['do not delay the next stream when the stream fails', { code: Code.UNAVAILABLE }, ['shop=6']],
  ])('%s', async (_, end, loaded) => {
    await using session = await startSession(IN_WORKER);
    session.stream.send('1', [SHOP]);
    session.stream.end(end);
    (await session.server.nextStream()).send('2', [simpleResource('shop', 6)]);
    while (!session.events().includes('shop=6')) await session.rules.next();
    expect(session.events()).toEqual(expect.arrayContaining(loaded));
  });
});

describe('the xDS source', () => {
  test('retries until the server is available, with one line for the trouble and one for its end', async () => {
    using invalid = new XdsRules({ target: '' });
    expect(await invalid.log.line(/^warn/)).toMatch(/no stream from the xDS server/);
    const [port] = await freePorts(1);
    using rules = new XdsRules({ target: `127.0.0.1:${port}` });
    expect(await rules.log.line(/^warn/)).toMatch(/^warn no stream from the xDS server.*: UNAVAILABLE: .*ECONNREFUSED/);
    await using _ = await AdsServer.start({ cache: published('1', 5), port });
    expect(summary(await rules.next())).toBe('shop=5');
    expect(rules.log.short.filter((line) => /xDS server/.test(line))).toEqual([
      expect.stringContaining('warn no stream from the xDS server'),
      'notice connected to the xDS server',
    ]);
  });

  test('keeps the rules while the server is away, and loads other rules also under a version that was used before', async () => {
    const first = await AdsServer.start({ cache: published('1', 5) });
    using rules = new XdsRules({ target: first.address });
    expect(summary(await rules.next())).toBe('shop=5');
    await first[Symbol.asyncDispose]();
    await rules.log.line(/ended|no stream/);
    const second = await AdsServer.start({ cache: published('1', 5), port: first.port });
    const stream = await second.nextStream();
    expect(await stream.nextRequest()).toMatchObject({ versionInfo: '', responseNonce: '' });
    expect(await stream.nextRequest()).toMatchObject({ versionInfo: '1', responseNonce: 'nonce-1' });
    expect(rules.events).toHaveLength(1);
    await second[Symbol.asyncDispose]();
    await using _ = await AdsServer.start({ cache: published('1', 6), port: first.port });
    expect(summary(await rules.next())).toBe('shop=6');
  });

  test.each([
    ['other content under an equal version', '2', [API], 'api=9'],
    ['other content under a lower version', '1', [API], 'api=9'],
    ['an empty snapshot under an equal version', '2', [], 'no rules'],
    ['an empty snapshot under a lower version', '1', [], 'no rules'],
  ])('has the rules of a server that has been started again: %s', async (_what, version, resources, expected) => {
    // Caches that do not answer to their own version.
    const cache = new SnapshotCache();
    cache.publish('2', [SHOP]);
    const first = await AdsServer.start({ cache });
    using rules = new XdsRules({ target: first.address });
    expect(summary(await rules.next())).toBe('shop=5');
    await first[Symbol.asyncDispose]();
    const again = new SnapshotCache();
    again.publish(version, resources);
    await using _ = await AdsServer.start({ cache: again, port: first.port });
    expect(summary(await rules.next())).toBe(expected);
    // Of this stream, versions are compared as before.
    again.publish('3', [SHOP, API]);
    expect(summary(await rules.next())).toBe('api=9 shop=5');
  });

  test('removes the rules of a domain that is deleted, and has them again when it is added', async () => {
    const cache = new SnapshotCache();
    cache.publish('1', [SHOP, API]);
    await using server = await AdsServer.start({ cache });
    using rules = new XdsRules({ target: server.address });
    expect(summary(await rules.next())).toBe('api=9 shop=5');
    cache.publish('2', [API]);
    expect(summary(await rules.next())).toBe('api=9');
    cache.publish('3', []);
    expect(summary(await rules.next())).toBe('no rules');
    cache.publish('4', [SHOP, API]);
    expect(summary(await rules.next())).toBe('api=9 shop=5');
  });

  test('opens a new stream after every status, keeps the rules, and hides the values of its headers in the reason', async () => {
    await using session = await startSession({ headers: () => ({ authorization: 'Bearer hidden-token', zone: 'a' }) });
    const { server, rules } = session;
    const details = 'a token of hidden-token\n(Bearer hidden-token) is no good';
    let { stream } = session;
    await exchange(stream, '1', [SHOP]);
    for (const code of [undefined, Code.UNAVAILABLE, Code.CANCELLED, Code.PERMISSION_DENIED, Code.UNIMPLEMENTED]) {
      stream.end(code === undefined ? undefined : { code, details });
      stream = await server.nextStream();
      expect(await stream.nextRequest()).toMatchObject({ versionInfo: '', responseNonce: '' });
      await exchange(stream, '1', [SHOP]);
      const status =
        code === undefined ? 'the server ended the stream' : `${Code[code]}: a token of *** (***) is no good`;
      expect(rules.log.short).toContain(`info the stream from the xDS server ended; reconnecting: ${status}`);
    }
    expect(rules.events).toHaveLength(1);
  });

  test('rejects what it cannot receive: a response over the limit, and a message that is no response', async () => {
    await using session = await startSession({ maxMessageBytes: 1000 });
    const { server, rules } = session;
    const many = Array.from({ length: 100 }, (_, index) => simpleResource(`shop-${index}`, index));
    session.stream.send('1', many);
    expect(summary(await rules.next())).toMatch(
      /^rejected: xDS server \S+: a response of \d+ bytes exceeds XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES \(1000\)$/,
    );
    const next = await server.nextStream();
    expect(await next.nextRequest()).toMatchObject({ versionInfo: '', responseNonce: '' });
    next.sendBytes(Buffer.from([10, 200, 1]));
    const undecodable = await rules.next();
    expect(summary(undecodable)).toMatch(/^rejected: xDS server \S+: cannot decode a response: /);
    (await server.nextStream()).sendBytes(Buffer.from([10, 200, 1]));
    expect(await rules.next()).toEqual({ ...undecodable, isRepeated: true });
    (await server.nextStream()).send('2', [SHOP]);
    expect(summary(await rules.next())).toBe('shop=5');
  });

  test.each([
    ['plain', undefined],
    ['TLS', { files: { ca: undefined, cert: undefined, key: undefined }, serverName: undefined }],
  ])('closes the connection to a peer that sends nothing (%s)', async (_, tls) => {
    await using peer = await SilentPeer.start();
    using rules = new XdsRules({ target: peer.address, tls, connectTimeout: 200 });
    expect(await rules.log.line(/^warn/)).toMatch(/: no response within 0\.2 s$/);
    await peer.closed.next();
    await peer.closed.next();
  });

  test('connects once for each wait that it announces to a peer that accepts connections and closes them', async () => {
    let connections = 0;
    const peer = createServer((socket) => {
      connections += 1;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    using _ = { [Symbol.dispose]: () => void peer.close() };
    await once(peer, 'listening');
    // Longer together than the first back-off of grpc-js, after which its channels would connect by themselves.
    const settings = {
      configGrpcXdsServerConnectRetryInterval: 400,
      xdsClientBackoffInitialInterval: 400,
      xdsClientBackoffMaxInterval: 400,
      xdsClientBackoffRandomFactor: 0,
    };
    using rules = new XdsRules({ target: `127.0.0.1:${(peer.address() as AddressInfo).port}`, settings });
    expect(await rules.log.line(/no stream/)).toMatch(/^warn no stream from the xDS server.*: UNAVAILABLE: /);
    for (let line = 2; line <= 5; line += 1) await rules.log.line(/^debug still no stream/);
    expect(connections).toBe(5);
  });

  test.each<[peer: string, server: () => ReturnType<typeof createHttp2Server>, warning: RegExp]>([
    ['a web server', () => webServer(200), /: the peer does not speak gRPC$/],
    ['a web server that does not find the page', () => webServer(404), /: UNIMPLEMENTED: /],
  ])('warns about %s', async (_, create, warning) => {
    const server = create().listen(0, '127.0.0.1');
    const sessions = new Set<ServerHttp2Session>();
    server.on('session', (session: ServerHttp2Session) => sessions.add(session));
    await once(server, 'listening');
    using rules = new XdsRules({ target: `127.0.0.1:${(server.address() as AddressInfo).port}` });
    expect(await rules.log.line(/^warn/)).toMatch(warning);
    for (const session of sessions) session.destroy();
    server.close();
  });
});

function webServer(status: number) {
  return createHttp2Server((_, response) => {
    response.writeHead(status, { 'content-type': 'text/html' });
    response.end('<html><body>Welcome</body></html>');
  });
}

/** A cache that sends these rules also to a stream that has their version. */
function published(version: string, requestsPerUnit: number): SnapshotCache {
  const cache = new SnapshotCache(true);
  cache.publish(version, [simpleResource('shop', requestsPerUnit)]);
  return cache;
}
