import { RULES_TYPE_URL } from '../../../src/sources/xds/ads';
import { AdsServer, type AdsServerStream, SnapshotCache } from '../../support/servers/ads-server';
import { resourceOf, ruleResource, simpleResource } from '../../support/data/rule-resources';
import { domainConfig, limit } from '../../support/data/rules';
import { type XdsRulesOptions, XdsRules } from '../../support/data/xds-rules';
import { summary } from '../../sources/rule-files/watched-rules';

const NODE = { id: 'test-node', cluster: '', metadata: { zone: 'a' } };
const INVALID = ruleResource('shop', domainConfig('shop', { key: '' }));
const EMPTY_KEY = "resource 'shop', descriptors[0]: descriptor has empty key. Write `key: <key of a request entry>`.";

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
  test('names the node and the type, requests all resources, and has neither version nor nonce', async () => {
    await using session = await startSession();
    expect(session.first).toStrictEqual({
      versionInfo: '',
      node: NODE,
      resourceNames: [],
      typeUrl: RULES_TYPE_URL,
      responseNonce: '',
      errorDetail: undefined,
    });
  });

  test('has the additional headers, in lower case, and binary ones as bytes', async () => {
    await using session = await startSession({ headers: () => ({ Authorization: 'Bearer x:y', 'Trace-Bin': 'raw' }) });
    expect(session.stream.metadata.get('authorization')).toEqual(['Bearer x:y']);
    expect(session.stream.metadata.get('trace-bin')).toEqual([Buffer.from('raw')]);
    expect(session.rules.log.lines).toContain('warn the authorization header is sent to the xDS server unencrypted');
  });

  test('has the additional headers as they are when the stream is opened', async () => {
    let token = 'first';
    await using session = await startSession({ headers: () => ({ authorization: `Bearer ${token}` }) });
    expect(session.stream.metadata.get('authorization')).toEqual(['Bearer first']);
    token = 'second';
    session.stream.end();
    const later = await session.server.nextStream();
    expect(later.metadata.get('authorization')).toEqual(['Bearer second']);
  });

  test('has the last accepted version and no nonce on a later stream', async () => {
    await using session = await startSession();
    await exchange(session.stream, '7', [simpleResource('shop', 5)]);
    session.stream.end();
    const stream = await session.server.nextStream();
    expect(await stream.nextRequest()).toMatchObject({ versionInfo: '7', responseNonce: '', node: NODE });
  });
});

describe('a valid response', () => {
  test('is active before it is acknowledged with its version and nonce', async () => {
    await using session = await startSession();
    const request = await exchange(session.stream, '7', [simpleResource('shop', 5)], { nonce: 'n1' });
    expect(session.rules.events.map(summary)).toEqual(['shop=5']);
    expect(session.rules.events).toMatchObject([
      { origin: { source: `xDS server ${session.server.address}`, version: '7' }, warnings: [] },
    ]);
    expect(request).toMatchObject({ versionInfo: '7', responseNonce: 'n1', errorDetail: undefined, node: NODE });
  });

  test('may have an empty version', async () => {
    await using session = await startSession();
    expect(await exchange(session.stream, '', [simpleResource('shop', 5)], { nonce: 'n1' })).toMatchObject({
      versionInfo: '',
      responseNonce: 'n1',
      errorDetail: undefined,
    });
    expect(session.rules.events.map(summary)).toEqual(['shop=5']);
  });

  test('replaces all rules: a domain that it lacks is removed', async () => {
    await using session = await startSession();
    await exchange(session.stream, '1', [simpleResource('shop', 5), simpleResource('api', 9)]);
    await exchange(session.stream, '2', [simpleResource('api', 9)]);
    expect(session.rules.events.map(summary)).toEqual(['api=9 shop=5', 'api=9']);
  });

  test('removes all rules when it has no resources, with a warning', async () => {
    await using session = await startSession();
    await exchange(session.stream, '1', [simpleResource('shop', 5)]);
    expect(await exchange(session.stream, '2', [])).toMatchObject({ versionInfo: '2', errorDetail: undefined });
    expect(session.rules.events.map(summary)).toEqual(['shop=5', 'no rules']);
    expect(session.rules.events[1]).toMatchObject({
      warnings: ['the server has no rules for this node: nothing is limited'],
    });
  });

  test('is acknowledged without an event when its rules are active already, in any order', async () => {
    await using session = await startSession();
    const [shop, api] = [simpleResource('shop', 5), simpleResource('api', 9)];
    await exchange(session.stream, '1', [shop, api]);
    expect(await exchange(session.stream, '1', [api, shop])).toMatchObject({
      versionInfo: '1',
      responseNonce: 'nonce-2',
    });
    expect(session.rules.events).toHaveLength(1);
  });

  test('is loaded with the same ruleset when it has the same rules under another version', async () => {
    await using session = await startSession();
    await exchange(session.stream, '1', [simpleResource('shop', 5)]);
    expect(await exchange(session.stream, '2', [simpleResource('shop', 5)])).toMatchObject({ versionInfo: '2' });
    const [first, second] = session.rules.events;
    expect(second).toMatchObject({ kind: 'loaded', origin: { version: '2' } });
    expect(second?.kind === 'loaded' && first?.kind === 'loaded' && second.ruleset === first.ruleset).toBe(true);
  });

  test('is loaded when it has other rules under the same version', async () => {
    await using session = await startSession();
    await exchange(session.stream, '1', [simpleResource('shop', 5)]);
    await exchange(session.stream, '1', [simpleResource('shop', 6)]);
    expect(session.rules.events.map(summary)).toEqual(['shop=5', 'shop=6']);
  });

  test('applies its resources in the order of their names, not in that of the message', async () => {
    const parts = [
      ruleResource('b', domainConfig('shop', { key: 'key', value: 'x*', rateLimit: limit(2, 'MINUTE') })),
      ruleResource('a', domainConfig('shop', { key: 'key', value: '*x', rateLimit: limit(1, 'MINUTE') })),
    ];
    for (const resources of [parts, parts.toReversed()]) {
      await using session = await startSession({ mergeDomainConfigs: true });
      await exchange(session.stream, '1', resources);
      const [event] = session.rules.events;
      if (event?.kind !== 'loaded') throw new Error('not loaded');
      expect(event.ruleset.domain('shop')?.find('key', 'xx')?.value).toBe('*x');
    }
  });
});

describe('an invalid response', () => {
  test('is rejected with the last accepted version, its own nonce and the reason', async () => {
    await using session = await startSession();
    await exchange(session.stream, '7', [simpleResource('shop', 5)]);
    const request = await exchange(session.stream, '8', [INVALID], { nonce: 'n8' });
    expect(request).toMatchObject({
      versionInfo: '7',
      responseNonce: 'n8',
      errorDetail: { code: 3, message: EMPTY_KEY },
      node: NODE,
    });
    const reason = `xDS server ${session.server.address}, version 8:\n${EMPTY_KEY}`;
    expect(session.rules.events.map(summary)).toEqual(['shop=5', `rejected: ${reason}`]);
  });

  test('can be followed by the valid response from before', async () => {
    await using session = await startSession();
    await exchange(session.stream, '7', [simpleResource('shop', 5)]);
    await exchange(session.stream, '8', [INVALID]);
    expect(await exchange(session.stream, '7', [simpleResource('shop', 5)])).toMatchObject({ versionInfo: '7' });
    const [before, , after] = session.rules.events;
    expect(after?.kind === 'loaded' && before?.kind === 'loaded' && after.ruleset === before.ruleset).toBe(true);
  });

  test('causes no busy loop when a cache keeps sending it, and does not delay the correction', async () => {
    const cache = new SnapshotCache();
    await using server = await AdsServer.start({ cache });
    using rules = new XdsRules({ target: server.address });
    cache.publish('1', [INVALID]);
    const stream = await server.nextStream();
    await stream.nextRequest();
    // The second NACK was delayed.
    expect(await stream.nextRequest()).toMatchObject({ responseNonce: 'nonce-1', errorDetail: { code: 3 } });
    expect(await stream.nextRequest()).toMatchObject({ responseNonce: 'nonce-2', errorDetail: { code: 3 } });
    expect(rules.events).toMatchObject([{ kind: 'rejected' }, { kind: 'rejected', isRepeated: true }]);
    cache.publish('2', [simpleResource('shop', 5)]);
    while (rules.events.every(({ kind }) => kind === 'rejected')) await rules.next();
    expect(summary(rules.events.at(-1)!)).toBe('shop=5');
    expect(stream.requestCount).toBeLessThan(6);
  });

  test('loses its delayed NACK when a newer response arrives', async () => {
    await using session = await startSession();
    await exchange(session.stream, '1', [INVALID]);
    session.stream.send('1', [INVALID]);
    await session.rules.next();
    await session.rules.next();
    expect(await exchange(session.stream, '2', [simpleResource('shop', 5)])).toMatchObject({
      versionInfo: '2',
      responseNonce: 'nonce-3',
      errorDetail: undefined,
    });
  });

  test('is rejected with a reason of at most 4 KiB', async () => {
    await using session = await startSession();
    const rules = Array.from({ length: 200 }, () => ({ key: '' }));
    const { errorDetail } = await exchange(session.stream, '1', [
      ruleResource('ключи', domainConfig('shop', ...rules)),
    ]);
    expect(Buffer.byteLength(errorDetail?.message ?? '')).toBeLessThanOrEqual(4096);
    expect(errorDetail?.message).toMatch(/^resource 'ключи', descriptors\[0\]: descriptor has empty key/);
  });

  test.each([
    [
      'of another type',
      { typeUrl: 'type.googleapis.com/other.Thing' },
      /^the response is of type type\.googleapis\.com\/other\.Thing, not /,
    ],
    ['without a type', { typeUrl: '' }, /^the response is of type , not /],
  ])('is rejected %s', async (_, more, reason) => {
    await using session = await startSession();
    const { errorDetail } = await exchange(session.stream, '1', [simpleResource('shop', 5)], more);
    expect(errorDetail?.message).toMatch(reason);
  });

  test.each([
    [
      'of another type',
      { typeUrl: 'type.googleapis.com/other.Thing', value: Buffer.alloc(0) },
      /^resource 2 of 2 is of type type\.googleapis\.com\/other\.Thing, not /,
    ],
    [
      'that cannot be decoded',
      { typeUrl: RULES_TYPE_URL, value: Buffer.from([10, 100, 1]) },
      /^resource 2 of 2 cannot be decoded: /,
    ],
    [
      'of text that happens to decode',
      { typeUrl: RULES_TYPE_URL, value: Buffer.from('hello world rule') },
      /^a resource without a name: config file cannot have empty domain\. /,
    ],
    [
      'without content',
      resourceOf({ name: '', domain: '', descriptors: [] }),
      /^a resource without a name: config file cannot have empty domain\. /,
    ],
  ])('is rejected as a whole with a resource %s', async (_, resource, reason) => {
    await using session = await startSession();
    const { errorDetail } = await exchange(session.stream, '1', [simpleResource('shop', 5), resource]);
    expect(errorDetail?.message).toMatch(reason);
    expect(session.rules.events.map(({ kind }) => kind)).toEqual(['rejected']);
  });
});

describe('several resources of one domain', () => {
  const parts = [
    ruleResource('b', domainConfig('shop', { key: 'two', rateLimit: limit(2, 'MINUTE') })),
    ruleResource('a', domainConfig('shop', { key: 'one', rateLimit: limit(1, 'MINUTE') })),
  ];

  test('are rejected', async () => {
    await using session = await startSession();
    const { errorDetail } = await exchange(session.stream, '1', parts);
    expect(errorDetail?.message).toBe(
      "resource 'b', domain: duplicate domain 'shop' in config file. resource 'a' already describes this domain: join the files, or set MERGE_DOMAIN_CONFIG=true.",
    );
  });

  test('are merged with MERGE_DOMAIN_CONFIG', async () => {
    await using session = await startSession({ mergeDomainConfigs: true });
    await exchange(session.stream, '1', parts);
    const [event] = session.rules.events;
    if (event?.kind !== 'loaded') throw new Error('not loaded');
    expect([...(event.ruleset.domain('shop')?.rules() ?? [])].map(({ key }) => key)).toEqual(['one', 'two']);
  });

  test('are rejected with MERGE_DOMAIN_CONFIG when they have the same rule twice', async () => {
    await using session = await startSession({ mergeDomainConfigs: true });
    const again = ruleResource('c', domainConfig('shop', { key: 'one', rateLimit: limit(3, 'MINUTE') }));
    const { errorDetail } = await exchange(session.stream, '1', [...parts, again]);
    expect(errorDetail?.message).toBe(
      "resource 'c', descriptors[0].key: duplicate descriptor composite key 'shop.one'. The same key and value are at resource 'a', descriptors[0].key; keep one of the two rules, and nest the rules of both in it.",
    );
  });
});

describe('responses that arrive faster than they can be handled', () => {
  test('are skipped in favour of the last one', async () => {
    await using session = await startSession({ smallSet: 0 });
    for (let version = 1; version <= 20; version += 1)
      session.stream.send(String(version), [simpleResource('shop', version)]);
    while (session.rules.events.every((event) => summary(event) !== 'shop=20')) await session.rules.next();
    expect(session.rules.events.length).toBeLessThan(20);
    let answer = await session.stream.nextRequest();
    while (answer.versionInfo !== '20') answer = await session.stream.nextRequest();
    expect(answer.responseNonce).toBe('nonce-20');
  });
});

test('the stream ends on unsubscribing', async () => {
  await using session = await startSession();
  session.rules[Symbol.dispose]();
  await expect(session.stream.cancelled).resolves.toBeUndefined();
});
