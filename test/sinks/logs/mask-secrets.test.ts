import { createLogger } from '../../../src/sinks/logs/logger';
import { maskSecrets } from '../../../src/sinks/logs/mask-secrets';

const SECRET = '"ann/hush+=\\\u00e9\n';
const inJson = JSON.stringify(SECRET);

describe('a mask of secrets', () => {
  it.each([
    ['as it is', SECRET],
    ['in JSON', inJson],
    ['in JSON within JSON', JSON.stringify(inJson)],
    ['in a URL', encodeURIComponent(SECRET)],
    ['in a URL, in small letters', encodeURIComponent(SECRET).toLowerCase()],
    ['in a URL, only where it must', encodeURI(SECRET)],
    ['in base64', Buffer.from(SECRET).toString('base64')],
  ])('hides one %s', (_, text) => {
    expect(maskSecrets([SECRET])(`a ${text} b`)).toMatch(/^a [\\"]*\*\*\*[\\"=]* b$/);
  });

  it('hides the longest of those that hold each other, each time it is there', () => {
    expect(maskSecrets(['secret', 'my secret word'])('secret, my secret word, secret')).toBe('***, ***, ***');
  });

  it('leaves alone what is too short to be told from words, and everything when there is none', () => {
    expect(maskSecrets(['a', 'word'])('a word')).toBe('a word');
    expect(maskSecrets([])('a word')).toBe('a word');
  });

  it.each(['text', 'json'] as const)('acts on the message and every field of a line as %s', (format) => {
    const lines: string[] = [];
    const stream = { write: (line: string) => void lines.push(line) };
    const log = createLogger({ level: 'debug', format, stream, mask: maskSecrets([SECRET]) });
    log.debug(`message ${SECRET}`, { text: SECRET, error: new Error('failed', { cause: new Error(inJson) }) });
    expect(lines.join('')).not.toContain('hush');
    expect(lines.join('').match(/\*\*\*/g)).toHaveLength(3);
  });
});
