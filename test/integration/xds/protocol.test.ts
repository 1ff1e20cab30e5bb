import { RULES_TYPE_URL } from '../../../src/sources/xds/ads';
import { AdsServer, type AdsServerStream, SnapshotCache } from '../../support/servers/ads-server';
import { resourceOf, ruleResource, simpleResource } from '../../support/data/rule-resources';
import { domainConfig, limit } from '../../support/data/rules';
import { type XdsRulesOptions, XdsRules } from '../../support/data/xds-rules';
import { summary } from '../../sources/rule-files/summary';

const NODE = { id: 'test-node', cluster: '', metadata: { zone: 'a' } };
const BAD = ruleResource('shop', domainConfig('shop', { key: '' }));
const EMPTY_KEY = "resource 'shop', descriptors[0]: descriptor has empty key. Write `key: <key of a request entry>`.";

/** A server that has been asked, and the client that asked. */
async function talking(options: Partial<XdsRulesOptions> = {}) {
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

/** Sends and awaits the answer. */
function exchange(stream: AdsServerStream, ...[version, resources, more]: Parameters<AdsServerStream['send']>) {
  stream.send(version, resources, more);
  return stream.nextRequest();
}

describe('the first request', () => {
  test('names node and type, asks for all resources, and has neither version nor nonce', async () => {
    await using talk = await talking();
    expect(talk.first).toStrictEqual({
      versionInfo: '',
      node: NODE,
      resourceNames: [],
      typeUrl: RULES_TYPE_URL,
      responseNonce: '',
      errorDetail: undefined,
    });
  });

  test('carries the additional headers, in lower case, and binary ones as bytes', async () => {
    await using talk = await talking({ headers: { Authorization: 'Bearer x:y', 'Trace-Bin': 'raw' } });
    expect(talk.stream.metadata.get('authorization')).toEqual(['Bearer x:y']);
    expect(talk.stream.metadata.get('trace-bin')).toEqual([Buffer.from('raw')]);
    expect(talk.rules.log.lines).toContain('warn the authorization header is sent to the xDS server unencrypted');
  });

  test('of a further stream has the last accepted version and no nonce', async () => {
    await using talk = await talking();
    await exchange(talk.stream, '7', [simpleResource('shop', 5)]);
    talk.stream.end();
    const stream = await talk.server.nextStream();
    expect(await stream.nextRequest()).toMatchObject({ versionInfo: '7', responseNonce: '', node: NODE });
  });
});

describe('a good response', () => {
  test('is in force before it is acknowledged with its version and nonce', async () => {
    await using talk = await talking();
    const request = await exchange(talk.stream, '7', [simpleResource('shop', 5)], { nonce: 'n1' });
    expect(talk.rules.events.map(summary)).toEqual(['shop=5']);
    expect(talk.rules.events).toMatchObject([
      { origin: { source: `xDS server ${talk.server.address}`, version: '7' }, warnings: [] },
    ]);
    expect(request).toMatchObject({ versionInfo: '7', responseNonce: 'n1', errorDetail: undefined, node: NODE });
  });

  test('may have an empty version', async () => {
    await using talk = await talking();
    expect(await exchange(talk.stream, '', [simpleResource('shop', 5)], { nonce: 'n1' })).toMatchObject({
      versionInfo: '',
      responseNonce: 'n1',
      errorDetail: undefined,
    });
    expect(talk.rules.events.map(summary)).toEqual(['shop=5']);
  });

  test('holds all rules: a domain that it lacks is gone', async () => {
    await using talk = await talking();
    await exchange(talk.stream, '1', [simpleResource('shop', 5), simpleResource('api', 9)]);
    await exchange(talk.stream, '2', [simpleResource('api', 9)]);
    expect(talk.rules.events.map(summary)).toEqual(['api=9 shop=5', 'api=9']);
  });

  test('without resources means no rules, with a warning', async () => {
    await using talk = await talking();
    await exchange(talk.stream, '1', [simpleResource('shop', 5)]);
    expect(await exchange(talk.stream, '2', [])).toMatchObject({ versionInfo: '2', errorDetail: undefined });
    expect(talk.rules.events.map(summary)).toEqual(['shop=5', 'no rules']);
    expect(talk.rules.events[1]).toMatchObject({
      warnings: ['the server has no rules for this node: nothing is limited'],
    });
  });

  test('that says what is in force already is acknowledged and not told, in whatever order', async () => {
    await using talk = await talking();
    const [shop, api] = [simpleResource('shop', 5), simpleResource('api', 9)];
    await exchange(talk.stream, '1', [shop, api]);
    expect(await exchange(talk.stream, '1', [api, shop])).toMatchObject({ versionInfo: '1', responseNonce: 'nonce-2' });
    expect(talk.rules.events).toHaveLength(1);
  });

  test('that says the same under another version is told with it and the very same ruleset', async () => {
    await using talk = await talking();
    await exchange(talk.stream, '1', [simpleResource('shop', 5)]);
    expect(await exchange(talk.stream, '2', [simpleResource('shop', 5)])).toMatchObject({ versionInfo: '2' });
    const [first, second] = talk.rules.events;
    expect(second).toMatchObject({ kind: 'loaded', origin: { version: '2' } });
    expect(second?.kind === 'loaded' && first?.kind === 'loaded' && second.ruleset === first.ruleset).toBe(true);
  });

  test('that says something else under the same version is loaded', async () => {
    await using talk = await talking();
    await exchange(talk.stream, '1', [simpleResource('shop', 5)]);
    await exchange(talk.stream, '1', [simpleResource('shop', 6)]);
    expect(talk.rules.events.map(summary)).toEqual(['shop=5', 'shop=6']);
  });

  test('counts its resources in the order of their names, not in that of their coming', async () => {
    const parts = [
      ruleResource('b', domainConfig('shop', { key: 'key', value: 'x*', rateLimit: limit(2, 'MINUTE') })),
      ruleResource('a', domainConfig('shop', { key: 'key', value: '*x', rateLimit: limit(1, 'MINUTE') })),
    ];
    for (const resources of [parts, parts.toReversed()]) {
      await using talk = await talking({ mergeDomainConfigs: true });
      await exchange(talk.stream, '1', resources);
      const [event] = talk.rules.events;
      if (event?.kind !== 'loaded') throw new Error('not loaded');
      expect(event.ruleset.domain('shop')?.find('key', 'xx')?.value).toBe('*x');
    }
  });
});

describe('a bad response', () => {
  test('is refused with the last accepted version, its own nonce and the reason; the rules in force stay', async () => {
    await using talk = await talking();
    await exchange(talk.stream, '7', [simpleResource('shop', 5)]);
    const request = await exchange(talk.stream, '8', [BAD], { nonce: 'n8' });
    expect(request).toMatchObject({
      versionInfo: '7',
      responseNonce: 'n8',
      errorDetail: { code: 3, message: EMPTY_KEY },
      node: NODE,
    });
    const reason = `xDS server ${talk.server.address}, version 8:\n${EMPTY_KEY}`;
    expect(talk.rules.events.map(summary)).toEqual(['shop=5', `rejected: ${reason}`]);
  });

  test('is followed by a good one, be it the very one from before', async () => {
    await using talk = await talking();
    await exchange(talk.stream, '7', [simpleResource('shop', 5)]);
    await exchange(talk.stream, '8', [BAD]);
    expect(await exchange(talk.stream, '7', [simpleResource('shop', 5)])).toMatchObject({ versionInfo: '7' });
    const [before, , after] = talk.rules.events;
    expect(after?.kind === 'loaded' && before?.kind === 'loaded' && after.ruleset === before.ruleset).toBe(true);
  });

  test('that a cache sends again as long as it is refused neither makes a busy loop nor keeps the cure away', async () => {
    const cache = new SnapshotCache();
    await using server = await AdsServer.start({ cache });
    using rules = new XdsRules({ target: server.address });
    cache.publish('1', [BAD]);
    const stream = await server.nextStream();
    await stream.nextRequest();
    // The second refusal has waited.
    expect(await stream.nextRequest()).toMatchObject({ responseNonce: 'nonce-1', errorDetail: { code: 3 } });
    expect(await stream.nextRequest()).toMatchObject({ responseNonce: 'nonce-2', errorDetail: { code: 3 } });
    expect(rules.events).toMatchObject([{ kind: 'rejected' }, { kind: 'rejected', isRepeated: true }]);
    cache.publish('2', [simpleResource('shop', 5)]);
    while (rules.events.every(({ kind }) => kind === 'rejected')) await rules.next();
    expect(summary(rules.events.at(-1)!)).toBe('shop=5');
    expect(stream.requestCount).toBeLessThan(6);
  });

  test('that waits for its repeated refusal is forgotten when a newer one comes', async () => {
    await using talk = await talking();
    await exchange(talk.stream, '1', [BAD]);
    talk.stream.send('1', [BAD]);
    await talk.rules.next();
    await talk.rules.next();
    expect(await exchange(talk.stream, '2', [simpleResource('shop', 5)])).toMatchObject({
      versionInfo: '2',
      responseNonce: 'nonce-3',
      errorDetail: undefined,
    });
  });

  test('is explained in not more than 4 KiB', async () => {
    await using talk = await talking();
    const rules = Array.from({ length: 200 }, () => ({ key: '' }));
    const { errorDetail } = await exchange(talk.stream, '1', [ruleResource('ключи', domainConfig('shop', ...rules))]);
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
  ])('%s is refused', async (_, more, reason) => {
    await using talk = await talking();
    const { errorDetail } = await exchange(talk.stream, '1', [simpleResource('shop', 5)], more);
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
  ])('with a resource %s is refused whole', async (_, resource, reason) => {
    await using talk = await talking();
    const { errorDetail } = await exchange(talk.stream, '1', [simpleResource('shop', 5), resource]);
    expect(errorDetail?.message).toMatch(reason);
    expect(talk.rules.events.map(({ kind }) => kind)).toEqual(['rejected']);
  });
});

describe('several resources of one domain', () => {
  const parts = [
    ruleResource('b', domainConfig('shop', { key: 'two', rateLimit: limit(2, 'MINUTE') })),
    ruleResource('a', domainConfig('shop', { key: 'one', rateLimit: limit(1, 'MINUTE') })),
  ];

  test('are refused', async () => {
    await using talk = await talking();
    const { errorDetail } = await exchange(talk.stream, '1', parts);
    expect(errorDetail?.message).toBe(
      "resource 'b', domain: duplicate domain 'shop' in config file. resource 'a' already describes this domain: join the files, or set MERGE_DOMAIN_CONFIG=true.",
    );
  });

  test('are joined with MERGE_DOMAIN_CONFIG', async () => {
    await using talk = await talking({ mergeDomainConfigs: true });
    await exchange(talk.stream, '1', parts);
    const [event] = talk.rules.events;
    if (event?.kind !== 'loaded') throw new Error('not loaded');
    expect([...(event.ruleset.domain('shop')?.rules() ?? [])].map(({ key }) => key)).toEqual(['one', 'two']);
  });

  test('may not have the same rule twice even then', async () => {
    await using talk = await talking({ mergeDomainConfigs: true });
    const again = ruleResource('c', domainConfig('shop', { key: 'one', rateLimit: limit(3, 'MINUTE') }));
    const { errorDetail } = await exchange(talk.stream, '1', [...parts, again]);
    expect(errorDetail?.message).toBe(
      "resource 'c', descriptors[0].key: duplicate descriptor composite key 'shop.one'. The same key and value stand in resource 'a', descriptors[0].key; keep one, or put what is nested in both into one.",
    );
  });
});

describe('responses faster than they can be dealt with', () => {
  test('are not all dealt with, but the last one is', async () => {
    await using talk = await talking({ smallSet: 0 });
    for (let version = 1; version <= 20; version += 1)
      talk.stream.send(String(version), [simpleResource('shop', version)]);
    while (talk.rules.events.every((event) => summary(event) !== 'shop=20')) await talk.rules.next();
    expect(talk.rules.events.length).toBeLessThan(20);
    let answer = await talk.stream.nextRequest();
    while (answer.versionInfo !== '20') answer = await talk.stream.nextRequest();
    expect(answer.responseNonce).toBe('nonce-20');
  });
});

test('unsubscribing ends the stream', async () => {
  await using talk = await talking();
  talk.rules[Symbol.dispose]();
  await expect(talk.stream.gone).resolves.toBeUndefined();
});
