import { execFileSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { CHECK } from '../../src/cli/check/check';
import { NotationError, readLine } from '../../src/cli/tests/notation';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { runOf } from './run-program';

const SHOP = `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 3 }
  - key: user
    value: anna
    rate_limit: { unit: day, requests_per_unit: 100 }
  - key: plan
    descriptors:
      - key: path
        rate_limit: { unit: second, requests_per_unit: 5, algorithm: token_bucket }
`;

let folder: TemporaryFolder;
beforeEach(() => {
  folder = new TemporaryFolder();
  folder.write('rules/shop.yaml', SHOP);
});
afterEach(() => folder[Symbol.dispose]());

/** Plays a file of lines, or a YAML document. */
function play(text: string, ...flags: readonly string[]) {
  const path = folder.write(text.startsWith('rules:') ? 'shop.test.yaml' : 'shop.decisions', text);
  return runOf(CHECK, ['-test', path, ...flags]);
}

/** The lines of a file of lines that fail, each with what is in its place. */
async function failuresOf(...lines: readonly string[]) {
  const { stdout } = await play(['rules rules', ...lines].join('\n'), '-json');
  const { failures } = JSON.parse(stdout) as { failures: { line: number; expected: string | null; actual: string }[] };
  return failures.map(({ line, expected, actual }) => [lines[line - 2], expected, actual]);
}

describe('a test of rules', () => {
  it('passes when every line is so, and fails with what is expected, what is, and why', async () => {
    const passing = await play('rules rules\nuser=bert → OK: 2 left\n2 × user=bert -> OK: 0 left\n');
    expect(passing).toMatchObject({
      exitCode: 0,
      stdout: 'passed: 1 file, 1 test, 2 expectations; 0 not as expected; 1 of 3 rules matched\n',
    });
    const { exitCode, stdout } = await play(
      'rules rules\ntest bert is limited\n3 × user=bert → OK: 0 left\nuser=bert → OK: 5 left\n',
    );
    expect([exitCode, stdout.split('\n')]).toEqual([
      1,
      expect.arrayContaining([
        `${folder.at('shop.decisions')}:4: bert is limited`,
        '  expected OK: 5 left',
        '  actual   OVER_LIMIT: over',
        `  |   rule shop.user (${folder.at('rules/shop.yaml')}:3:10)`,
        '  |   OVER_LIMIT: the count would be 4 after 1 hit, over the limit of 3',
      ]),
    ]);
  });

  it('has codes, what is left, the rule and the time until the reset; the latter two where they are expected', async () => {
    expect(
      await failuresOf(
        'user=anna → OK: 99 left by shop.user_anna for 86400 s',
        'user=anna → OK: 98 left by shop.user',
        'user=bert | user=anna → OK: 2 left for 60 s, 97 left for 86400 s',
        'plan=gold → OK: no limit',
        'other=x → OK: no limit by nothing',
        'domain forum',
        'user=bert → OK: no limit',
        'domain shop',
        'user=carl limit=0/minute → OVER_LIMIT: over for 60 s',
        '4 × user=dora → OK, then OVER_LIMIT',
      ),
    ).toEqual([
      ['user=anna → OK: 98 left by shop.user', 'OK: 98 left by shop.user', 'OK: 98 left by shop.user_anna'],
      ['other=x → OK: no limit by nothing', 'OK: no limit by nothing', 'OK: no limit'],
    ]);
  });

  it('has checks and reports, of which the debt of a limit is paid back', async () => {
    expect(
      await failuresOf(
        'check user=bert → OK: 3 left',
        'report user=bert hits=9 → OK: 0 left',
        '2 × check user=bert → OVER_LIMIT: over',
        'report user=bert | plan=gold → OVER_LIMIT: over, no limit',
        'after 1 minute',
        'check  user=bert hits=4 → OK: 2 left',
      ),
    ).toEqual([['check  user=bert hits=4 → OK: 2 left', 'OK: 2 left', 'OK: 3 left']]);
  });

  it('passes time, also up to a moment, and each begins with fresh counters', async () => {
    expect(
      await failuresOf(
        'test one',
        '3 × user=bert → OK: 0 left',
        'after 59.5 seconds',
        'user=bert → OVER_LIMIT: over',
        'after 500 milliseconds',
        'user=bert → OK: 2 left',
        'at 2026-03-01T12:00:00Z',
        'user=bert → OK: 2 left for 60 s',
        'at 2026-03-01T12:00:00+01:00',
        'test two',
        'user=bert → OK: 2 left',
        'user=bert hits=2 → OK: 0 left',
        'user=bert subtract=1 → OK: 1 left',
        'user="a, b" → OK: 2 left',
        'statistic shop.user.total_hits = 3',
      ),
    ).toEqual([
      ['at 2026-03-01T12:00:00+01:00', null, 'time passes only forwards: this is before the line above'],
      ['statistic shop.user.total_hits = 3', '3', '4'],
    ]);
  });

  it.each([
    ['bert', /^this is no line of a test: expected KEY=VALUE,KEY=VALUE → ANSWER/],
    ['user → OK: 2 left', /^invalid descriptor "user": expected KEY=VALUE/],
    ['user=bert, → OK: 2 left', /^invalid descriptor/],
    ['user=bert hits=x → OK: 2 left', /^"hits=x" is no field of a descriptor/],
    ['0 × user=bert → OK: 2 left', /^repeat a call 1 to 1000000 times/],
    ['user="\\q" → OK: 2 left', /^"\\q" is no text in quotes as JSON has them/],
    ['>>>>>>> branch', /^this line is the marker of a merge conflict/],
    ['after a while', /^"a while" is no duration/],
    ['at noon', /^"noon" is no time/],
    ['at 2026-02-29T00:00:00Z', /^"2026-02-29T00:00:00Z" is no time/],
  ])('says of the line "%s" what is wrong, and plays the others', async (line, message) => {
    const failures = await failuresOf('user=bert → OK: 2 left', 'test more', line, 'user=bert → OK: 2 left');
    expect(failures).toEqual([[line, null, expect.stringMatching(message)]]);
  });

  // Each takes minutes in quadratic time.
  it.each([
    ...['user=bert', 'user', '3 × user=bert', 'test', 'domain', 'rules', 'after', 'at', 'with A=', 'statistic a'].map(
      (begin) => `${begin}${' '.repeat(60_000)}\u2028`,
    ),
    ...[
      ' ',
      '→ ',
      ' -> ',
      ' | ',
      'a=b,',
      'a=b | ',
      ' hits=1',
      '"',
      '\\"',
      '1',
      '1 × ',
      'a',
      '=',
      '\u2028',
      '\r',
    ].flatMap((unit) => ['', 'a="', 'a=b '].map((begin) => begin + unit.repeat(60_000 / unit.length))),
  ])('is read in linear time: %.40j', (line) => {
    const lines = Array.from({ length: 20 }, () => line);
    for (const each of lines.flatMap((text) => [text, `${text} → OK`, `${text} →`])) {
      try {
        readLine(each);
      } catch (error) {
        expect(error).toBeInstanceOf(NotationError);
      }
    }
    expect(() => readLine(line.repeat(20))).toThrow('a line has at most 65536 characters');
  });

  it('explains each of many failures, by playing its lines twice at most', async () => {
    const failures = Array.from({ length: 3_000 }, (_, index) => `user=bert → OK: ${index} over`);
    const { stdout } = await play(['rules rules', '3 × user=bert → OK: 0 left', ...failures].join('\n'), '-json');
    const report = JSON.parse(stdout) as { failures: { explanation: { answer: { reason: string } } }[] };
    expect(report.failures).toHaveLength(3_000);
    const last = report.failures.at(-1)!.explanation.answer.reason;
    expect([last, last]).toEqual([report.failures[0]!.explanation.answer.reason, expect.any(String)]);
  });

  it('shows the answer of a request that the service rejects', async () => {
    expect(await failuresOf('user=bert hits=9007199254740993 → OK: 2 left')).toEqual([
      [expect.any(String), 'OK: 2 left', 'error: hits_addend of descriptor 1 exceeds the largest count, 2^53 - 1'],
    ]);
  });
});

describe('a test file in YAML', () => {
  const TESTS = `rules: [rules]
domain: shop
settings: { SHADOW_MODE: true }
tests:
  - name: in shadow mode
    decisions: |
      3 × user=bert → OK: 0 left
      user=bert → OK: over

  - decisions: |
      # without a name
      user=bert → OK: 9 left
`;

  it('is played as one of lines, and its failures have their lines in the file', async () => {
    const { stdout } = await play(TESTS);
    expect(stdout).toContain(
      `${folder.at('shop.test.yaml')}:12: line 10\n  expected OK: 9 left\n  actual   OK: 2 left\n`,
    );
    expect(stdout).toContain('failed: 1 file, 2 tests, 3 expectations; 1 not as expected; 1 of 3 rules matched');
  });

  it('gets what is with -update, and nothing else of it changes', async () => {
    const { exitCode, stdout } = await play(TESTS.replace('OK: over', 'OVER_LIMIT: over'), '-update');
    expect([exitCode, stdout]).toEqual([
      0,
      expect.stringContaining('0 not as expected, 2 lines written into the files'),
    ]);
    expect(readFileSync(folder.at('shop.test.yaml'), 'utf8')).toBe(TESTS.replace('9 left', '2 left'));
    expect((await runOf(CHECK, ['-test', folder.at('shop.test.yaml')])).exitCode).toBe(0);
  });

  it.each([
    ['rules: [', /shop.test.yaml:1: /],
    [
      'rules: rules\ntest: []',
      /shop.test.yaml:2: "test" is no member of a test file, which has rules, domain, settings, tests/,
    ],
    ['rules: rules\ntests:\n  - a', /shop.test.yaml:3: a test is a mapping with name, domain, decisions/],
    ['rules: rules\ntests:\n  - decisions: user=bert', /shop.test.yaml:3: decisions are a block of lines/],
    [
      'rules: rules\nsettings: { REDIS_URL: x }\ntests: []',
      /the setting REDIS_URL does not matter in tests; those that do are SHADOW_MODE/,
    ],
    ['rules: rules\n<<<<<<< HEAD\ntests: []', /shop.test.yaml:2: .*this line is the marker of a merge conflict/],
    ['rules: { a: b }', /shop.test.yaml:1: rules is a list/],
    ['rules: rules\nrules: rules', /shop.test.yaml:2: "rules" is repeated/],
    [`rules: ${'['.repeat(1_000_000)}`, /shop.test.yaml:1: .*nested more than 200 levels deep/],
    [`rules: *${'a'.repeat(1_000_000)}`, /shop.test.yaml:1: /],
  ])('that is wrong, as %j, is an error with its place', async (text, message) => {
    const { exitCode, stderr } = await play(text);
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(message)]);
  });
});

describe('test files', () => {
  it('are regular files of at most 8 MiB', async () => {
    execFileSync('mkfifo', [folder.at('pipe.decisions')]);
    symlinkSync('/dev/zero', folder.at('zero.test.yaml'));
    folder.write('folder.decisions/a.txt', '');
    for (const name of ['pipe.decisions', 'zero.test.yaml']) {
      expect(await runOf(CHECK, ['-test', folder.at(name)])).toMatchObject({
        exitCode: 1,
        stderr: `weir-check: the test file ${folder.at(name)} cannot be read: it is not a regular file\n`,
      });
    }
    const large = folder.write('large.decisions', `# ${'x'.repeat(8 * 1024 * 1024)}`);
    expect((await runOf(CHECK, ['-test', large])).stderr).toContain(
      'has 8388610 bytes, more than the limit of 8388608',
    );
  });

  it('are found in folders, and may have the rules of the command line', async () => {
    folder.write('tests/a.decisions', 'user=bert → OK: 2 left\n');
    folder.write(
      'tests/more/b.test.yml',
      'rules: ../../rules\ntests: [{ decisions: | }]\n'.replace(
        '[{ decisions: | }]',
        '\n  - decisions: |\n      user=anna → OK: 99 left',
      ),
    );
    folder.write('tests/notes.txt', 'nothing');
    const flags = ['-config_dir', folder.at('rules')];
    expect((await runOf(CHECK, ['-test', folder.at('tests'), ...flags])).stdout).toBe(
      'passed: 2 files, 2 tests, 2 expectations; 0 not as expected; 2 of 6 rules matched\n',
    );
    const without = await runOf(CHECK, ['-test', folder.at('tests')]);
    expect([without.exitCode, without.stderr]).toEqual([1, expect.stringContaining('a test file names no rules')]);
    const nowhere = await runOf(CHECK, ['-test', folder.at('nowhere')]);
    expect([nowhere.exitCode, nowhere.stderr]).toEqual([1, expect.stringContaining('cannot be read')]);
  });

  it('show with -coverage which rules they have not matched, and the problems of rules that do not load', async () => {
    const { stdout } = await play('rules rules\nuser=bert → OK: 2 left\n', '-coverage');
    const at = folder.at('rules/shop.yaml');
    expect(stdout).toContain(`no test has matched:\n  shop.user_anna (${at}:5:10)\n  shop.plan.path (${at}:10:14)\n`);
    folder.write('rules/shop.yaml', SHOP.replace('minute', 'minutes'));
    const wrong = await play('rules rules\nuser=bert → OK: 2 left\n');
    expect([wrong.exitCode, wrong.stdout]).toEqual([
      1,
      expect.stringContaining(`${at}:4:25: error: invalid rate limit unit`),
    ]);
  });
});
