import { runInNewContext } from 'node:vm';
import { connectionFailure } from '../../src/text/connection-failure';
import { excerpt } from '../../src/text/excerpt';
import { hideAddressCredentials, hideSecrets, hideUrlCredentials } from '../../src/text/hide-credentials';
import { formatHostPort, parseHostPort, parseServerAddress, peerAddress } from '../../src/text/host-port';
import { KEY_TOLERANCE, VARIABLE_TOLERANCE, nearestName } from '../../src/text/nearest-name';
import { fixedNumber, plainNumber, wholeNumber } from '../../src/text/plain-number';
import { SecretMask } from '../../src/text/secret-mask';
import { asError, messageOf } from '../../src/text/thrown';
import { visible, visibleJson, visibleLine, visibleLines } from '../../src/text/visible';
import { HOSTILE, SHOWN } from '../support/data/hostile-text';

const MOST = Number.MAX_SAFE_INTEGER;

describe('a visible text', () => {
  const ESCAPED = /^[\p{Cc}\p{Cs}\p{Bidi_Control}\u2028\u2029\p{Default_Ignorable_Code_Point}]$/u;
  /** Parts of emoji and of words. */
  const KEPT = /^[\t\n\p{Join_C}\ufe00-\ufe0f]$/u;
  const UNITS = Array.from({ length: 0x1_0000 }, (_, unit) => String.fromCharCode(unit));

  it('has every character escaped that a terminal interprets, or that changes the order in which it is shown', () => {
    function shown(unit: string): string {
      if (!ESCAPED.test(unit) || KEPT.test(unit)) return unit;
      return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
    }
    expect(UNITS.filter((unit) => visible(`a${unit}b`) !== `a${shown(unit)}b`)).toEqual([]);
    // It says the same to a program.
    const json = UNITS.map((unit) => [unit, visibleJson(JSON.stringify(unit))] as const);
    expect(
      json.filter(
        ([unit, text]) => JSON.parse(text) !== unit || text.slice(1, -1) !== shown(JSON.stringify(unit).slice(1, -1)),
      ),
    ).toEqual([]);
    expect(visibleLine(HOSTILE)).toBe(SHOWN);
    // Tags are invisible, and pairs of surrogates.
    expect(visibleLine('a\u{e0041}b\u{1f469}\u200d\u{1f4bb}\ud83d')).toBe(
      'a\\udb40\\udc41b\u{1f469}\u200d\u{1f4bb}\\ud83d',
    );
  });

  it.each([
    ['##[error]x', String.raw`\u0023#[error]x`],
    ['a ##vso[task.x]', String.raw`a \u0023#vso[task.x]`],
    ['###teamcity[x]', String.raw`#\u0023#teamcity[x]`],
    ['::error file=x::y', String.raw`\u003a:error file=x::y`],
    ['  ::group::x', String.raw`  \u003a:group::x`],
    ['## a [x] a::b', '## a [x] a::b'],
  ])('has no command to continuous integration: %s', (text, shown) => {
    expect([visibleLines([text]), JSON.parse(visible(JSON.stringify(text)))]).toEqual([shown, text]);
  });

  it('is made in linear time', () => {
    // Each takes minutes in quadratic time.
    for (const unit of ['#', '##', '#a', '##a', ' ', ':', '\u202e', '\ud800', '\n'])
      expect(visibleLines([unit.repeat(1_000_000)]).length).toBeGreaterThan(0);
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
    // Names under 10 characters are never corrected, those under 14 by one edit, others by two; case and separators
    // count.
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

test('a whole number is one of 0 to 2^53 − 1, whatever it is made of', () => {
  const given = [7, 7.9, 0, -0, -1, NaN, Infinity, -Infinity, 2 ** 53, 1e300, 'text', undefined] as readonly number[];
  expect(given.map(wholeNumber)).toEqual([7, 7, 0, -0, 0, 0, MOST, 0, MOST, MOST, 0, 0]);
});
