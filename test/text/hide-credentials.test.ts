import { createLogger } from '../../src/sinks/logs/logger';
import { hideAddressCredentials, hideSecrets, hideUrlCredentials } from '../../src/text/hide-credentials';

describe('hideUrlCredentials', () => {
  it.each([
    ['redis://user:secret@host:6379/0', 'redis://***@host:6379/0'],
    ['rediss://:secret@host', 'rediss://***@host'],
    ['redis://secret@host', 'redis://***@host'],
    ['redis://user:se@cr/et@host', 'redis://***@host'],
    ['cannot reach redis://u:p@a and http://u:p@b', 'cannot reach redis://***@a and http://***@b'],
    ['1redis://u:p@a,+.-://u:p@b', '1redis://***@b'],
    ['12://u:p@a', '12://u:p@a'],
    ['redis://u@a,redis://host/@,redis://v@b', 'redis://***@a,redis://host/@,redis://***@b'],
    ['http://host:8080/path', 'http://host:8080/path'],
    ['user@example.com', 'user@example.com'],
    ['http://host/a user@example.com', 'http://host/a user@example.com'],
  ])('turns %j into %j', (text, hidden) => {
    expect(hideUrlCredentials(text)).toBe(hidden);
  });

  // Each takes minutes in quadratic time.
  it.each([
    ['schemes', 'a://'.repeat(200_000)],
    ['schemes and colons', 'a://a:'.repeat(200_000)],
    ['letters, none of which begin a scheme', `${'a'.repeat(800_000)} ://`],
    ['digits before what is no scheme', `${'1'.repeat(800_000)}://`],
  ])('handles a long hostile text in linear time: %s', (_, text) => {
    const before = 'http://u:p@host';
    expect(hideUrlCredentials(`${before} ${text}`) === `http://***@host ${text}`).toBe(true);
  });

  it('hides a password of any length', () => {
    expect(hideUrlCredentials(`redis://user:${'a://'.repeat(200_000)}@host`)).toBe('redis://***@host');
  });
});

describe('hideAddressCredentials', () => {
  it.each([
    ['host:6379', 'host:6379'],
    ['unix:///var/run/redis.sock', 'unix:///var/run/redis.sock'],
    ['dns:///host:8081', 'dns:///host:8081'],
    ['redis://[::1]:6379/0', 'redis://[::1]:6379/0'],
    ['redis://user:secret@host:6379/0', 'redis://***@host:6379/0'],
    ['user:secret@host', '***@host'],
    ['redis://:a@,b@h:1', 'redis://***@h:1'],
    ['redis://:a@h:1,redis://:b@h:2', 'redis://***@h:2'],
    ['redis://host:1?password=secret', 'redis://host:1?***'],
    ['redis://user:secret', 'redis://***'],
    ['redis://host:secret/0', 'redis://***'],
  ])('turns %j into %j', (address, hidden) => {
    expect(hideAddressCredentials(address)).toBe(hidden);
  });
});

const SECRET = '"ann/hush+=\\\u00e9\n';
const inJson = JSON.stringify(SECRET);

describe('hideSecrets', () => {
  it.each([
    ['as it is', SECRET],
    ['in JSON', inJson],
    ['in JSON within JSON', JSON.stringify(inJson)],
    ['in a URL', encodeURIComponent(SECRET)],
    ['in a URL, in lower case', encodeURIComponent(SECRET).toLowerCase()],
    ['in a URL, escaped only where necessary', encodeURI(SECRET)],
    ['in base64', Buffer.from(SECRET).toString('base64')],
  ])('hides a secret %s', (_, text) => {
    expect(hideSecrets([SECRET])(`a ${text} b`)).toMatch(/^a [\\"]*\*\*\*[\\"=]* b$/);
  });

  it('hides every occurrence, and the longest of secrets that contain each other', () => {
    expect(hideSecrets(['secret', 'my secret word'])('secret, my secret word, secret')).toBe('***, ***, ***');
  });

  it.each(['"quoted', '\\\\server\\"share\n', 'ends with \\', '\nsecret'])(
    'hides %j twice in a row, however it is escaped',
    (secret) => {
      for (const form of [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]) {
        expect(hideSecrets([secret])(`a ${form} ${form}`)).toBe('a *** ***');
      }
      expect(hideSecrets([secret])(encodeURIComponent(secret).repeat(2))).toBe('******');
    },
  );

  // Each takes minutes in quadratic time.
  it.each(['!secret', '\\secret', '\nsecret', 'a\\!secret'])(
    'handles a long text of backslashes in linear time: %j',
    (secret) => {
      const text = `a${'\\'.repeat(800_000)}`;
      expect(hideSecrets([secret])(text) === text).toBe(true);
    },
  );

  it('handles an almost equal text with many escaped characters in linear time', () => {
    const text = `${'!'.repeat(40)}b`;
    expect(hideSecrets([`${'!'.repeat(40)}a`])(text)).toBe(text);
  });

  it('leaves secrets of fewer than six characters, and every text when there are no secrets', () => {
    expect(hideSecrets(['a', 'word'])('a word')).toBe('a word');
    expect(hideSecrets([])('a word')).toBe('a word');
  });

  it('hides shorter secrets when a smaller length is given, but no empty one', () => {
    expect(hideSecrets(['word'], 1)('a word')).toBe('a ***');
    expect(hideSecrets([''], 0)('a word')).toBe('a word');
  });

  it.each(['text', 'json'] as const)('is applied to the message and every field of a log line in %s', (format) => {
    const lines: string[] = [];
    const stream = { write: (line: string) => void lines.push(line) };
    const log = createLogger({ level: 'debug', format, stream, mask: hideSecrets([SECRET]) });
    log.debug(`message ${SECRET}`, { text: SECRET, error: new Error('failed', { cause: new Error(inJson) }) });
    expect(lines.join('')).not.toContain('hush');
    expect(lines.join('').match(/\*\*\*/g)).toHaveLength(3);
  });
});
