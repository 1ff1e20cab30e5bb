import { mkdirSync, mkdtempSync, readFileSync, rmSync, rmdirSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRules } from '../../../src/cli/check/read-rules';
import { formatProblem } from '../../../src/rules/files/problems/format-problem';
import { PROBLEM_CODES } from '../../../src/rules/files/problems/problem-codes';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import { MAX_FILE_BYTES, MAX_FILES, MAX_FOLDERS } from '../../../src/rules/files/size-limits';
import { fixtures, problemsOf, withoutFolder } from './fixtures';

/** Codes that no stored file can produce: they have separate tests below. */
const WITHOUT_FIXTURE = ['file-too-large', 'folder-too-large', 'unreadable-folder'];

describe('each fixture of a problem', () => {
  it.each(fixtures.map((fixture) => [fixture.name, fixture] as const))(
    '%s is reported as in its expected text',
    async (_, fixture) => {
      const problems = await problemsOf(fixture);
      expect(`${problems.map((problem) => withoutFolder(formatProblem(problem))).join('\n\n')}\n`).toBe(
        fixture.expected,
      );
      expect(new Set(problems.map(({ code }) => code))).toEqual(new Set([fixture.code]));
    },
  );

  // Each takes a minute or more in quadratic time.
  it.each([
    ['without an end', "- a: 'x\n"],
    ['with a line that is not indented', 'a: "x\nb"\n'],
  ])('thousands of quoted values %s are all reported', (_, text) => {
    const content = new TextEncoder().encode(text.repeat(10_000));
    const { errors } = readRuleFiles([{ path: 'shop.yaml', content }], { mergeDomainConfigs: false });

    expect(errors).toHaveLength(10_000);
    expect(new Set(errors.map(({ message }) => message)).size).toBe(1);
  });

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

  describe('folder-too-large:', () => {
    let dir: string;
    beforeEach(() => {
      dir = mkdtempSync(join(tmpdir(), 'weir-large-folder-'));
    });
    afterEach(() => rmSync(dir, { recursive: true }));

    async function problems() {
      const { errors } = await readRules(dir, { mergeDomainConfigs: false, ignoreDotFiles: false });
      return errors.map((problem) => formatProblem(problem).replaceAll(dir, 'DIR'));
    }
    const advice =
      '[folder-too-large]\n  Keep only rule files there; write fewer rules, with wildcards or without values.';

    it('a folder with too many rule files is rejected without reading them', async () => {
      for (let file = 0; file <= MAX_FILES; file += 1) writeFileSync(join(dir, `${file}.yaml`), '');
      expect(await problems()).toEqual([`DIR: error: the folder has more than 10000 rule files ${advice}`]);
    });

    it('a folder with too many subfolders is rejected', async () => {
      for (let folder = 0; folder <= MAX_FOLDERS; folder += 1) mkdirSync(join(dir, String(folder)));
      expect(await problems()).toEqual([`DIR: error: the folder has more than 1000 subfolders ${advice}`]);
      rmdirSync(join(dir, '0'));
      expect(await problems()).toEqual([]);
    });

    it('rule files with too many bytes in total are rejected', async () => {
      for (const name of ['a.yaml', 'b.yaml', 'c.yaml']) {
        writeFileSync(join(dir, name), '#');
        truncateSync(join(dir, name), MAX_FILE_BYTES);
      }
      expect(await problems()).toContain(
        `DIR: error: the folder has rule files of more than 67108864 bytes in total ${advice}`,
      );
    });
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
  const codes = Object.keys(PROBLEM_CODES).toSorted();

  it('each have a fixture, and each fixture has a known code', () => {
    const shown = new Set([...fixtures.map(({ code }) => code), ...WITHOUT_FIXTURE]);
    expect([...shown].toSorted()).toEqual(codes);
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
    expect(documented).toEqual(PROBLEM_CODES);
  });
});
