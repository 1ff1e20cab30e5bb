import { runInNewContext } from 'node:vm';
import { connectionFailure } from '../../src/text/connection-failure';
import { excerpt } from '../../src/text/excerpt';
import { hideAddressCredentials, hideSecrets, hideUrlCredentials } from '../../src/text/hide-credentials';
import { formatHostPort, parseHostPort, parseServerAddress, peerAddress } from '../../src/text/host-port';
import { KEY_TOLERANCE, VARIABLE_TOLERANCE, nearestName } from '../../src/text/nearest-name';
import { fixedNumber, plainNumber } from '../../src/text/plain-number';
import { SecretMask } from '../../src/text/secret-mask';
import { LONGEST_TABLE_KEY, ownText, tableKey, textBytes } from '../../src/text/table-key';
import { asError, messageOf } from '../../src/text/thrown';
import { visible, visibleJson, visibleLine } from '../../src/text/visible';
import { PARTS, WideMap, partOf } from '../../src/text/wide-map';
import { HOSTILE, SHOWN } from '../support/data/hostile-text';
import fc from '../support/data/properties';
import { heapAfterCollection } from '../support/processes/collect-garbage';

describe('a visible text', () => {
  const ESCAPED = /^[\p{Cc}\p{Bidi_Control}\u2028\u2029]$/u;
  const UNITS = Array.from({ length: 0x1_0000 }, (_, unit) => String.fromCharCode(unit));

  it('has every character escaped that a terminal interprets, or that changes the order in which it is shown', () => {
    function shown(unit: string): string {
      if (!ESCAPED.test(unit) || unit === '\n' || unit === '\t') return unit;
      return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
    }
    expect(UNITS.filter((unit) => visible(`a${unit}b`) !== `a${shown(unit)}b`)).toEqual([]);
    // It says the same to a program.
    const json = UNITS.map((unit) => [unit, visibleJson(JSON.stringify(unit))] as const);
    expect(json.filter(([unit, text]) => JSON.parse(text) !== unit || ESCAPED.test(text.slice(1, -1)))).toEqual([]);
    expect(visibleLine(HOSTILE)).toBe(SHOWN);
  });
});

describe('the reason of a failed connection', () => {
  const AT = '(2026-02-03T04:05:06.789Z)';
  const [BEGIN, END] = ['No connection established. Last error: ', 'Resolution note: '];
  const ALERT = 'tlsv13 alert certificate required';
  const OPENSSL = `80:error:0A00045C:SSL routines:ssl3_read_bytes:${ALERT}:../x.c:1601:SSL alert number 116\n`;
  const ALT_NAME = "Host: a. is not in the cert's altnames: DNS:b";

  it.each([
    [`connect ECONNREFUSED 127.0.0.1:1 ${AT}. ${END}`, 'connect ECONNREFUSED 127.0.0.1:1'],
    [`Error [ERR_TLS_CERT_ALTNAME_INVALID]: ${ALT_NAME}. ${END}`, ALT_NAME],
    [`${OPENSSL} ${AT}. ${END}`, ALERT],
    [`Error: ${OPENSSL}. ${END}`, ALERT],
    ['Failed to connect', 'Failed to connect'],
    // It takes minutes in quadratic time.
    [`x${' '.repeat(1_000_000)}x`, `x${' '.repeat(1_000_000)}x`],
  ])('is without time, class and what only developers of OpenSSL understand: %.60s', (details, reason) => {
    expect(connectionFailure(BEGIN + details) === reason).toBe(true);
  });

  it('is not in the details of another failure', () => {
    expect(connectionFailure('Name resolution failed for target dns:x')).toBeUndefined();
  });
});

describe('hidden credentials', () => {
  it.each([
    ['redis://user:secret@host:6379/0', 'redis://***@host:6379/0'],
    ['redis://user:se@cr/et@host', 'redis://***@host'],
    ['cannot reach redis://u:p@a and http://u:p@b', 'cannot reach redis://***@a and http://***@b'],
    ['1redis://u:p@a,+.-://u:p@b', '1redis://***@b'],
    ['redis://u@a,redis://host/@,redis://v@b', 'redis://***@a,redis://host/@,redis://***@b'],
    ['http://host:8080/path', 'http://host:8080/path'],
    // Each of these takes minutes in quadratic time.
    [`redis://user:${'a://'.repeat(200_000)}@host`, 'redis://***@host'],
    ...[
      ...['a://'.repeat(200_000), 'a://a:'.repeat(200_000)],
      ...[`${'a'.repeat(800_000)} ://`, `${'1'.repeat(800_000)}://`],
    ].map((hostile) => [`http://u:p@host ${hostile}`, `http://***@host ${hostile}`]),
  ])('of URLs in a text: %.40s', (text, hidden = '') => {
    expect(hideUrlCredentials(text) === hidden).toBe(true);
  });

  it.each([
    ['unix:///var/run/redis.sock', 'unix:///var/run/redis.sock'],
    ['redis://[::1]:6379/0', 'redis://[::1]:6379/0'],
    ['redis://user:secret@host:6379/0', 'redis://***@host:6379/0'],
    ['redis://:a@,b@h:1', 'redis://***@h:1'],
    ['redis://:a@h:1,redis://:b@h:2', 'redis://***@h:2'],
    ['redis://host:1?password=secret', 'redis://host:1?***'],
    ['redis://user:secret', 'redis://***'],
  ])('of the address %s: %s', (address, hidden) => {
    expect(hideAddressCredentials(address)).toBe(hidden);
  });
});

describe('hidden secrets', () => {
  const SECRET = '"ann/hush+=\\\u00e9\n';
  const inJson = JSON.stringify(SECRET);

  it.each([
    ['as they are', SECRET],
    ['in JSON', inJson],
    ['in JSON within JSON', JSON.stringify(inJson)],
    ['in a URL', encodeURIComponent(SECRET)],
    ['in a URL, escaped only where necessary', encodeURI(SECRET)],
    ['in base64', Buffer.from(SECRET).toString('base64')],
  ])('are hidden %s', (_, text) => {
    expect(hideSecrets([SECRET])(`a ${text} b`)).toMatch(/^a [\\"]*\*\*\*[\\"=]* b$/);
  });

  it('are hidden twice in a row', () => {
    for (const secret of ['"quoted', '\\\\server\\"share\n', 'ends with \\', '\nsecret']) {
      const inUrl = encodeURIComponent(secret);
      const forms = [secret, inUrl, JSON.stringify(secret).slice(1, -1)];
      const hidden = [...forms.map((form) => `a ${form} ${form}`), inUrl.repeat(2)].map(hideSecrets([secret]));
      expect(hidden).toEqual(['a *** ***', 'a *** ***', 'a *** ***', '******']);
    }
  });

  // Each takes minutes in quadratic time.
  it.each([
    ...['!secret', '\\secret', '\nsecret', 'a\\!secret'].map((secret) => [secret, `a${'\\'.repeat(800_000)}`]),
    [`${'!'.repeat(40)}a`, `${'!'.repeat(40)}b`],
  ])('are looked for in linear time: %j', (secret = '', text = '') => {
    expect(hideSecrets([secret])(text) === text).toBe(true);
  });

  it.each([
    [['secret', 'my secret word'], undefined, 'secret, my secret word, secret', '***, ***, ***'],
    [['a', 'word', 'sixsix'], undefined, 'a word sixsix', 'a word ***'],
    [['word'], 1, 'a word', 'a ***'],
    [[''], 0, 'a word', 'a word'],
  ])('%j with at least %p characters: %j is %j', (secrets, minLength, text, hidden) => {
    expect(hideSecrets(secrets, minLength)(text)).toBe(hidden);
  });

  it('are the permanent ones, and the last eight of each source, however often those of others change', () => {
    const mask = new SecretMask(['permanent']);
    const { hide } = mask;
    expect(hide('permanent secret-0')).toBe('*** secret-0');
    const texts = Array.from({ length: 10 }, (_, index) => `secret-${index}`);
    mask.add('quiet', ['seldom-changed', 'another']);
    for (const text of texts) for (const each of ['comes-back', text]) mask.add('busy', [each]);
    expect(hide('permanent seldom-changed another comes-back')).toBe('*** *** *** ***');
    expect(hide(texts.join(' '))).toBe(`secret-0 secret-1 secret-2 ${Array(7).fill('***').join(' ')}`);
  });
});

test('a host and a port are read as they are printed, IPv6 addresses in brackets', () => {
  const addresses = {
    'a-b.example:1': 'a-b.example',
    '10.0.0.1:65535': '10.0.0.1',
    '[fe80::1%eth0]:80': 'fe80::1%eth0',
  };
  for (const [text, host] of Object.entries(addresses)) {
    const address = parseServerAddress(text);
    expect(address?.host).toBe(host);
    expect(formatHostPort(host, address?.port ?? 0)).toBe(text);
  }
  expect(peerAddress({ remoteAddress: '::1', remotePort: 80 })).toBe('[::1]:80');
  expect(peerAddress({ remoteAddress: '::ffff:10.0.0.1', remotePort: 80 })).toBe('10.0.0.1:80');
  expect(peerAddress({ remoteAddress: '::ffff:1', remotePort: 80 })).toBe('[::ffff:1]:80');
  expect(peerAddress({})).toBeUndefined();
});

test('an address of a server has a host and a port; one to listen on may lack them', () => {
  const rejected = ['a', 'a:', 'a:65536', '::1:80', '[a]:80', 'a/b:80', 'user@a:80', 'a b:80', 'http://a:80', '[::1]'];
  expect(rejected.map((text) => parseHostPort(text))).toEqual(rejected.map(() => undefined));
  expect([':80', 'a:0'].map((text) => parseHostPort(text))).toEqual([
    { host: '', port: 80 },
    { host: 'a', port: 0 },
  ]);
  expect([':80', 'a:0'].map((text) => parseServerAddress(text))).toEqual([undefined, undefined]);
});

test('an excerpt of a text is the text itself up to a length, then its beginning', () => {
  expect([excerpt('abc', 3), excerpt('abcd', 3), excerpt('', 0)]).toEqual(['abc', 'abc…', '']);
});

describe('the nearest name', () => {
  const keys = ['key', 'value', 'rate_limit', 'requests_per_unit', 'unlimited', 'shadow_mode', 'abcd', 'abce'];
  it.each([
    ['value', 'vale valeu Value VALUES'],
    ['rate_limit', 'rateLimit rate-limit rate\u00a0limits'],
    ['requests_per_unit', 'request_per_unit requestsPerUnit'],
    ['key', 'kye'],
    ['abcd', 'abcx'],
    [undefined, 'burst x  something_else_entirely'],
  ])('of a rule file is %j for %s', (expected, misspelt) => {
    for (const name of misspelt.split(' ')) expect(nearestName(name, keys, KEY_TOLERANCE)).toBe(expected);
  });

  const variables = ['PORT', 'GRPC_PORT', 'STATSD_HOST', 'LOCAL_CACHE_SIZE', 'KVSTORE_POOL_SIZE'];
  it.each([
    // Names under 10 characters are never corrected, those under 14 by one edit, others by two; case and separators count.
    [undefined, 'PORTS GRPC_PRT STATS_HOTS KVSTORE_POOL local_cache_size'],
    ['STATSD_HOST', 'STATSD_HSOT STATS_HOST'],
    ['LOCAL_CACHE_SIZE', 'LOCAL_CACH_SIEZ LOCAL-CACHE-SIZE'],
    ['KVSTORE_POOL_SIZE', 'KVSTORE_POLL_SIZE'],
  ])('of an environment variable is %j for %s', (expected, misspelt) => {
    for (const name of misspelt.split(' ')) expect(nearestName(name, variables, VARIABLE_TOLERANCE)).toBe(expected);
  });
});

it.each([
  [0, '0', '0.000000'],
  [0.25, '0.25', '0.250000'],
  [999_999_999_999_999_900_000, '999999999999999900000', '999999999999999868928.000000'],
  [1e21, '1000000000000000000000', '1000000000000000000000.000000'],
  [-1e22, '-10000000000000000000000', '-10000000000000000000000.000000'],
  [Infinity, 'Infinity', 'Infinity'],
])('a number is written without an exponent: %d', (value, plain, fixed) => {
  expect([plainNumber(value), fixedNumber(value, 6)]).toEqual([plain, fixed]);
});

it('what was thrown has a message, and is an Error, which is unchanged, also one of another realm', () => {
  for (const error of [new TypeError('broken'), runInNewContext("new TypeError('broken')") as unknown]) {
    expect(asError(error)).toBe(error);
    expect(messageOf(error)).toBe('broken');
  }
  for (const thrown of ['a text', 7, undefined]) {
    expect([asError(thrown), messageOf(thrown)]).toEqual([new Error(String(thrown)), String(thrown)]);
  }
});

describe('the key of a table', () => {
  it('is the cache key itself up to a length, and above it a digest of 44 characters that ends unlike a cache key', () => {
    const longest = 'x'.repeat(LONGEST_TABLE_KEY);
    expect(tableKey(longest)).toBe(longest);
    expect(tableKey(`${longest}1`)).toMatch(/^[A-Za-z0-9+/]{43}=$/);
    expect(tableKey('鍵'.repeat(1_000_000))).toHaveLength(44);
    const long = 'x'.repeat(1000);
    const keys = [`${long}_1`, `${long}_2`, `1${long}_`, `${long}é1`, `${long}鍵1`];
    expect(new Set(keys.map(tableKey)).size).toBe(keys.length);
  });

  it('is kept as an own text, which is equal and takes one byte per character of Latin-1, otherwise two', () => {
    const texts = ['', 'a', 'schlüssel', '\u0000\u00ff', '鍵', '🔑 and \ud800 alone', 'x'.repeat(100_000)];
    expect(texts.map(ownText)).toEqual(texts);
    expect(texts.map((text) => textBytes(ownText(text)))).toEqual([0, 1, 9, 2, 2, 28, 100_000]);
  });

  it('does not keep the text in memory that it was a part of', () => {
    function heldBy(keep: (text: string) => string): number {
      const before = heapAfterCollection();
      const kept: string[] = [];
      for (let body = 0; body < 20; body += 1) {
        const text = Buffer.alloc(1_000_000, `body ${body} `).toString('latin1');
        kept.push(keep(text.slice(10, 60)), keep(`${text.slice(100, 150)}_${body}`));
      }
      const held = heapAfterCollection() - before;
      expect(kept).toHaveLength(40);
      return held;
    }
    expect(heldBy(ownText)).toBeLessThan(5_000_000);
    // Why it is needed.
    expect(heldBy((text) => text)).toBeGreaterThan(15_000_000);
  });
});

describe('a wide map', () => {
  it('returns what a Map returns, for random operations', () => {
    const key = fc.oneof(
      fc.constantFrom('', 'a', 'b', 'é', '鍵'),
      fc.nat(20).map((number) => `user_${number}_1700000000`),
    );
    const value = fc.option(fc.nat(), { nil: undefined });
    const operation = fc.tuple(fc.constantFrom('get', 'set', 'delete'), key, value);
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
        const [wide, map] = [new WideMap<number | undefined>(), new Map<string, number | undefined>()];
        for (const [kind, name, stored] of operations) {
          if (kind === 'get') expect(wide.get(name)).toBe(map.get(name));
          else if (kind === 'delete') expect(wide.delete(name)).toBe(map.delete(name));
          else for (const each of [wide, map]) each.set(name, stored);
          expect(wide.size).toBe(map.size);
        }
      }),
    );
  });

  function keyOf(index: number): string {
    return `user_${index}_1700000000`;
  }

  it('that stays full of 20,000 keys loses none of the newer half', () => {
    const wide = new WideMap<number>();
    const [capacity, count] = [20_000, 400_000];
    let newest = 0;
    for (let index = 0; index < count; index += 1) {
      if (wide.size === capacity)
        newest = Math.max(newest, capacity - index + Number(wide.removeOldest()!.split('_')[1]));
      wide.set(keyOf(index), index);
    }
    expect(newest).toBeLessThan(capacity / 2);
  });

  it('loses its oldest keys, of each part in turn, also after it has got others', () => {
    const wide = new WideMap<number>();
    for (let index = 0; index < 3000; index += 1) wide.set(keyOf(index), index);
    const removed = Array.from({ length: 2000 }, (_, index) => {
      wide.set(keyOf(3000 + index), index);
      return wide.removeOldest()!;
    });
    while (wide.size > 0) removed.push(wide.removeOldest()!);
    expect(new Set(removed).size).toBe(5000);
    const oldestOfParts = Array.from({ length: PARTS }, (_, part) => removed.filter((key) => partOf(key) === part));
    for (const keys of oldestOfParts) {
      const numbers = keys.map((key) => Number(key.split('_')[1]));
      expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
    }
    expect(wide.removeOldest()).toBeUndefined();
    wide.set('new', 1);
    expect(wide.removeOldest()).toBe('new');
  });

  it.each([
    ['addresses', 1.5, (index: number) => `edge_remote_address_10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`],
    ['IPv6 networks', 1.5, (index: number) => `edge_remote_address_2001:db8:${index.toString(16)}::`],
    ['texts of other scripts', 1.5, (index: number) => `shop_name_山田${index}`],
    ['digests of long keys', 1.5, (index: number) => `${'x'.repeat(300)}${index}`],
    // Not all of the characters that differ are read.
    ['users before a path of all', 16, (index: number) => `shop_user_u${index}_path_/checkout`],
  ])('with keys of %s has at most %d times the average in a part', (_, most, body) => {
    const sizes = new Array<number>(PARTS).fill(0);
    for (let index = 0; index < 30_000; index += 1) sizes[partOf(tableKey(`${body(index)}_1700000000`))]! += 1;
    expect(Math.max(...sizes) / (30_000 / PARTS)).toBeLessThan(most);
  });
});
