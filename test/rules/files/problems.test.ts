import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readRules } from '../../../src/cli/check/read-rules';
import { formatProblem, summarizeProblem } from '../../../src/rules/files/problems/problem';
import type { Problem } from '../../../src/rules/files/problems/problem';
import { PROBLEMS } from '../../../src/rules/files/problems/problem';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import { FOLDER_EXCESSES, MAX_FILE_BYTES, folderTooLarge } from '../../../src/rules/files/size-limits';
import { fixtures, problemsOf, withoutFolder } from './fixtures';

/** Codes that no stored file can produce: they have separate tests below, or where they are found. */
const WITHOUT_FIXTURE = [
  'file-too-large',
  'folder-too-large',
  'unreadable-folder',
  'too-many-regexes',
  'no-time-zones',
  'lease-without-effect',
  'store-without-scripts',
  'times-without-effect',
];

/** The first error of a text. */
function errorOf(text: string): Problem {
  const files = [{ path: 'shop.yaml', content: new TextEncoder().encode(text) }];
  const [error] = readRuleFiles(files, { mergeDomainConfigs: false }).errors;
  if (error === undefined) throw new Error('there is no error');
  return error;
}

describe('each fixture of a problem', () => {
  it.each(fixtures.map((fixture) => [fixture.name, fixture] as const))(
    '%s is reported as in its expected text',
    async (_, fixture) => {
      const problems = await problemsOf(fixture);
      const texts = problems.map((problem) => withoutFolder(formatProblem(problem), fixture));
      expect(`${texts.join('\n\n')}\n`).toBe(fixture.expected);
      expect(new Set(problems.map(({ code }) => code))).toEqual(new Set([fixture.code]));
    },
  );

  it.each([
    ['read', { content: new Uint8Array(MAX_FILE_BYTES + 1) }],
    ['not read', { content: new Uint8Array(), tooLarge: MAX_FILE_BYTES + 1 }],
  ])('file-too-large: a file above the size limit, %s, is rejected without being decoded', (_, file) => {
    const files = [{ path: 'shop.yaml', ...file }];
    expect(readRuleFiles(files, { mergeDomainConfigs: false }).errors.map(formatProblem)).toEqual([
      'shop.yaml:1:1: error: error loading config file: the file has 33554433 bytes, more than the limit of 33554432 ' +
        '[file-too-large]\n  Split it into several files; with MERGE_DOMAIN_CONFIG=true several files can describe one domain.',
    ]);
  });

  it('folder-too-large: a folder is too large by one of four bounds', () => {
    expect(Object.entries(FOLDER_EXCESSES)).toHaveLength(4);
    const excesses = (['files', 'folders', 'entries', 'bytes'] as const).map(folderTooLarge);
    expect(excesses.map(({ message }) => message.replace('the folder has ', ''))).toEqual([
      ...['more than 10000 rule files', 'more than 1000 subfolders', 'more than 50000 files and folders'],
      'rule files of more than 67108864 bytes in total',
    ]);
  });

  it('too-many-regexes: a level has at most 1,000 regular expressions, and all rules together 10,000', () => {
    const levels = Array.from({ length: 12 }, (_, level) => {
      const rules = Array.from({ length: level === 0 ? 1_002 : 900 }, (_each, i) => `{key: k, value_regex: "${i}"}`);
      return `- {key: level${level}, descriptors: [${rules.join(', ')}]}\n`;
    });
    const content = new TextEncoder().encode(`domain: shop\ndescriptors:\n${levels.join('')}`);
    const { errors } = readRuleFiles([{ path: 'shop.yaml', content }], { mergeDomainConfigs: false });
    expect(errors.map(({ code, line, message }) => [code, line, message])).toEqual([
      ['too-many-regexes', 3, 'more regular expressions than 1000 of one level'],
      ['too-many-regexes', 13, 'more regular expressions than 10000 in all'],
    ]);
  });

  it('no-time-zones: a window of the calendar needs Intl, and other rules do not', () => {
    const { Intl: intl } = globalThis;
    const calendar =
      'domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1, calendar: {time_zone: UTC}}}]';
    Reflect.deleteProperty(globalThis, 'Intl');
    try {
      const { code, message, column } = errorOf(calendar);
      const found = '`calendar` needs the time zones of Intl, without which this Node.js was built';
      expect([code, message, column]).toEqual(['no-time-zones', found, 92]);
      expect(() => errorOf(calendar.replace(', calendar: {time_zone: UTC}', ''))).toThrow('there is no error');
    } finally {
      globalThis.Intl = intl;
    }
  });

  it('unreadable-folder: a folder that does not exist is an error', async () => {
    const dir = join(__dirname, 'fixtures', 'nowhere');
    const { errors } = await readRules(dir, { mergeDomainConfigs: false, ignoreDotFiles: false });
    expect(errors.map((problem) => withoutFolder(formatProblem(problem)))).toEqual([
      'nowhere: error: the folder or file cannot be read: ENOENT: no such file or directory [unreadable-folder]\n' +
        '  Give a rule folder or a rule file that exists and is readable.',
    ]);
  });
});

describe('the problem codes', () => {
  it('each have a fixture, and each fixture has a known code', () => {
    const shown = new Set([...fixtures.map(({ code }) => code), ...WITHOUT_FIXTURE]);
    expect([...shown].toSorted()).toEqual(Object.keys(PROBLEMS).toSorted());
  });

  it('are the same as in docs/rule-errors.md, errors and warnings alike', () => {
    const text = readFileSync(join(__dirname, '../../../docs/rule-errors.md'), 'utf8');
    const documented: Record<string, string> = {};
    let severity = '';
    for (const line of text.split('\n')) {
      if (line === '## Errors') severity = 'error';
      if (line === '## Warnings') severity = 'warning';
      const code = /^### `(.*)`$/.exec(line)?.[1];
      if (code !== undefined) documented[code] = severity;
    }
    const defined = Object.entries(PROBLEMS).map(([code, problem]) => [code, problem.severity]);
    expect(documented).toEqual(Object.fromEntries(defined));
  });
});

describe('a problem', () => {
  it('is plain data with line and column counted from 1, and one line for a log', () => {
    const error = errorOf('domain: d\ndescriptors:\n- key: a\n  vale: b\n');
    expect(structuredClone(error)).toEqual({
      ...{ code: 'unknown-key', severity: 'error', file: 'shop.yaml', line: 4, column: 3, sourceLine: '  vale: b' },
      mark: { start: 2, length: 4 },
      message: "config error, unknown key 'vale'",
      advice: 'Did you mean `value`?',
    });
    expect(summarizeProblem(error)).toBe("shop.yaml:4:3: config error, unknown key 'vale'. Did you mean `value`?");
  });

  it('shows at most five items, two levels and 200 characters of what is wrong', () => {
    const { message } = errorOf('domain: d\ndescriptors: [[{a: 1}, [[a]], 2, 3, 4, 5, 6]]');
    expect(message).toContain(': [map[a:1] [[…]] 2 3 4]');
    const shown = [200, 201].map((length) => errorOf(`domain: d\n${'x'.repeat(length)}: 1`).message.slice(-3));
    expect(shown).toEqual(["xx'", "x…'"]);
  });

  const TAB = `${' '.repeat(22)}\t^^^^`;
  it.each([
    ['after a tab, which keeps its width', '[{key: a,\tvale: b}]', TAB, 24],
    ['after wide characters, each of two columns', '[{key: 日本😀, vale: b}]', `${' '.repeat(28)}^^^^`, 26],
    ['after a combining accent, of no column', '[{key: e\u0301, vale: b}]', `${' '.repeat(23)}^^^^`, 25],
    ['of two for each wide character', '[{key: a, 日本: b}]', `${' '.repeat(23)}^^^^`, 24],
    ['after wide characters on the lines before it', '# 😀😀\n- key: a\n  vale: b', '  ^^^^', 3],
    ['that end with the line', '\n- key: a\n  shadow_mode: "a\n\n    b"\n', `${' '.repeat(15)}^^`, 16],
    ['that do not include a CRLF line break', '\r\n- vale\r\n', '  ^^^^', 3],
  ])('has carets %s, and its column in characters', (_, rules, carets, column) => {
    const error = errorOf(`domain: d\ndescriptors: ${rules}`);
    expect([formatProblem(error).split('\n')[2], error.column]).toEqual([`  | ${carets}`, column]);
  });
});

describe('a very long line', () => {
  const before = `{key: a, value: ${'x'.repeat(500)}😀}, `;
  const after = ', {key: b}'.repeat(200);
  const begin = 'descriptors: [';

  it('is cut around the marked text, on only one side near its ends', () => {
    const problem = errorOf(`domain: d\n${begin}${before}{key: c, vale: b}${after}]`);
    // The emoji is one character of two code units.
    expect(problem.column).toBe(`${begin}{key: c, `.length + before.length);
    expect(problem.sourceLine).toMatch(/^….*…$/u);
    expect(problem.sourceLine).toHaveLength(162);
    expect(problem.mark).toEqual({ start: 61, length: 4 });
    expect(problem.sourceLine.slice(61, 65)).toBe('vale');
    expect(errorOf(`domain: d\n${begin}{key: c, vale: b}${after}]`).sourceLine).toMatch(/^descriptors: .*…$/u);
    expect(errorOf(`domain: d\n${begin}${before}{key: c, vale: b}]`).sourceLine).toMatch(/^….*\]$/u);
    const whole = `${begin}{key: c, vale: b, value: `.padEnd(158, 'x');
    expect(errorOf(`domain: d\n${whole}}]`).sourceLine).toBe(`${whole}}]`);
    expect(errorOf(`domain: d\n${whole}x}]`).sourceLine).toBe(`${whole}x}…`);
  });

  it('is never cut through a character, and has the column of a mark far behind', () => {
    for (let shift = 0; shift < 4; shift += 1) {
      const line = `${begin}{key: "${'😀'.repeat(1500)}${'x'.repeat(shift)}", `;
      const { sourceLine, column } = errorOf(`domain: d\n${line}vale: "${'😀'.repeat(300)}"}]`);
      // Encoding replaces a lone surrogate.
      expect(new TextDecoder().decode(new TextEncoder().encode(sourceLine))).toBe(sourceLine);
      expect(column).toBe(line.length - 1500 + 1);
    }
  });

  it('of a mark is shown in part', () => {
    const { mark, sourceLine } = errorOf(`domain: d\n${begin}{key: c, ${'y'.repeat(500)}: 1}]`);
    expect(mark.length).toBe(sourceLine.length - '…'.length - mark.start);
  });
});
