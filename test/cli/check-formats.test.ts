import Ajv from 'ajv';
import { readFileSync, rmSync } from 'node:fs';
import { CHECK } from '../../src/cli/check/check';
import { FORMATS } from '../../src/cli/check/formats';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { runOf } from './run-program';

const WRONG = 'domain: "wrong%"\ndescriptors: [{key: user, rate_limit: {unit: days, requests_per_unit: 1}}]\n';
const DOUBTFUL = 'domain: doubtful\ndescriptors: [{key: user, value: }]\n';
const FAILING = 'rules ../rules\ntest 1 < 2 & "3"\nuser=bert → OK: 9 left\n';

let folder: TemporaryFolder;
beforeEach(() => {
  folder = new TemporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

/** What is printed of a folder with an error and a warning, and of a test that fails. */
async function printed(format: string): Promise<readonly [files: string, tests: string]> {
  folder.write('wrong/a,b.yaml', WRONG);
  folder.write('wrong/c.yaml', DOUBTFUL);
  folder.write(
    'rules/good.yaml',
    'domain: d\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 5 } }]\n',
  );
  const files = await runOf(CHECK, [folder.at('wrong'), '-format', format], {}, true);
  const tests = await runOf(CHECK, ['-test', folder.write('tests/a.decisions', FAILING), '-format', format], {}, true);
  expect([files.exitCode, tests.exitCode]).toEqual([1, 1]);
  return [files.stdout.replaceAll(folder.base, 'BASE'), tests.stdout.replaceAll(folder.base, 'BASE')];
}

it('prints workflow commands of GitHub, in which what has a meaning there is escaped', async () => {
  const [files, tests] = await printed('github');
  expect(files.trimEnd().split('\n')).toEqual([
    '::error file=BASE/wrong/a%2Cb.yaml,line=2,col=46,title=invalid-unit::invalid rate limit unit ' +
      "'days'. Did you mean `day`? The units are second, minute, hour, day, month, year, week.",
    '::warning file=BASE/wrong/c.yaml,line=2,col=27,title=empty-field::`value` is empty: the rule ' +
      'matches any value. Give it a value, or remove it.',
  ]);
  expect(tests).toBe(
    '::error file=BASE/tests/a.decisions,line=3,title=failed-test::1 < 2 & "3": expected OK: 9 left, ' +
      'but it is OK: 4 left\n',
  );
});

it('prints SARIF that is valid by its schema', async () => {
  const path = require.resolve('@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json');
  // Of a draft that has other names for these two.
  const { id: _id, $schema: _draft, ...schema } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  // Its formats, of URIs and dates, are not checked.
  const validate = new Ajv({ strict: false, validateFormats: false, unicodeRegExp: false }).compile(schema);
  for (const text of await printed('sarif')) {
    const log = JSON.parse(text) as { runs: { results: unknown[] }[] };
    expect([validate(log), validate.errors]).toEqual([true, null]);
    expect(log.runs[0]!.results.length).toBeGreaterThan(0);
  }
  const [files] = await printed('sarif');
  expect(JSON.parse(files)).toMatchObject({
    runs: [
      {
        tool: { driver: { name: 'weir-check', rules: [{ id: 'invalid-unit' }, { id: 'empty-field' }] } },
        results: [
          {
            ruleId: 'invalid-unit',
            level: 'error',
            locations: [
              {
                physicalLocation: {
                  artifactLocation: { uri: 'BASE/wrong/a,b.yaml' },
                  region: { startLine: 2, startColumn: 46 },
                },
              },
            ],
          },
          { ruleId: 'empty-field', level: 'warning' },
        ],
      },
    ],
  });
});

it('prints a report of JUnit, in which warnings are no failures and a failed test is explained', async () => {
  const [files, tests] = await printed('junit');
  function suite(id: number, name: string, failures: number): string {
    return `  <testsuite id="${id}" package="weir-check" name="BASE/wrong/${name}" timestamp="TIME" hostname="localhost" tests="1" failures="${failures}" errors="0" time="0">`;
  }
  expect(files.replaceAll(/\d{4}-\d\d-\d\dT[\d:]{8}/g, 'TIME').split('\n')).toEqual([
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites>',
    suite(0, 'a,b.yaml', 1),
    expect.stringMatching(/^ {4}<properties><property name="version" value="[\d.]+"\/><\/properties>$/),
    '    <testcase classname="BASE/wrong/a,b.yaml" name="the rules load" time="0">',
    expect.stringMatching(
      /^ {6}<failure type="invalid-unit" message="invalid rate limit unit 'days'\. [^"<]*">line 2: .*<\/failure>$/,
    ),
    '    </testcase>',
    '    <system-out></system-out>',
    '    <system-err></system-err>',
    '  </testsuite>',
    suite(1, 'c.yaml', 0),
    expect.stringContaining('<properties>'),
    '    <testcase classname="BASE/wrong/c.yaml" name="the rules load" time="0"/>',
    expect.stringMatching(/^ {4}<system-out>line 2: `value` is empty.*<\/system-out>$/),
    '    <system-err></system-err>',
    '  </testsuite>',
    '</testsuites>',
    '',
  ]);
  expect(tests).toContain('name="1 &lt; 2 &amp; &quot;3&quot;"');
  expect(tests).toMatch(/expected OK: 9 left, but it is OK: 4 left\n {2}\| .*5 per day/s);
});

describe('texts of others in what is printed', () => {
  const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Bidi_Control}\u2028\u2029]/u;

  /** In `-test`, a test's name, a file's, a domain's, a line's and a rule's; without, a file's and a key's. */
  async function printedWith(text: string, format: string): Promise<readonly string[]> {
    const inYaml = JSON.stringify(text).replaceAll(
      /[^ -~]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    folder.write(
      'rules/a.yaml',
      `domain: ${inYaml}\ndescriptors: [{ key: ${inYaml}, rate_limit: { unit: day, requests_per_unit: 5 } }]\n`,
    );
    const decisions = `  - name: ${inYaml}\n    decisions: |\n      user=bert → OK: 9 left\n      ${inYaml} →`;
    folder.write(`${text.replaceAll('/', '')}.test.yaml`, `rules: rules\ndomain: ${inYaml}\ntests:\n${decisions}\n`);
    folder.write(
      `${text.replaceAll('/', '')}.yaml`,
      `domain: d\n${inYaml}: 1\ndescriptors: [{ key: k, rate_limit: { unit: ${inYaml}, requests_per_unit: 1 } }]\n`,
    );
    const runs = [
      ['-test', folder.base, '-coverage'],
      [folder.base, '-merge_domain_configs'],
      ['-test', `${folder.base}/${text}`],
      [folder.at(text)],
    ];
    const outputs: string[] = [];
    for (const argv of runs) {
      const { exitCode, stdout, stderr } = await runOf(CHECK, [...argv, '-format', format]);
      expect(exitCode).toBe(1);
      outputs.push(stdout + stderr);
    }
    return outputs;
  }

  it.each(FORMATS.filter((format) => format !== 'markdown'))('make no line of their own as %s', async (format) => {
    const texts = [
      'a\nFORGED',
      'a\r\n  FORGED',
      'a\u2028FORGED',
      '::error::FORGED',
      '\u001b[2J\u202e\ud800##vso[FORGED]',
    ];
    for (const text of texts) {
      rmSync(folder.base, { recursive: true });
      const output = (await printedWith(text, format)).join('\n');
      expect(output).toContain('FORGED');
      const lines = output.split('\n');
      const forged = format === 'github' ? /^\s*FORGED|^::error::/ : /^\s*(?:FORGED|::)/;
      expect(lines.filter((line) => forged.test(line) || /##\w*\[/.test(line) || UNPRINTABLE.test(line))).toEqual([]);
    }
  });

  it('make no heading, mention or end of code in Markdown', async () => {
    const names = ['n\n# heading @all', '`` ` @all', '```', '`', '<!-- -->'];
    const rules = names.map(
      (name, index) =>
        `  - { key: ${JSON.stringify(`k${index}\n${name}`)}, rate_limit: { name: ${JSON.stringify(name)}, unit: day, requests_per_unit: 1 } }\n`,
    );
    const old = folder.write('old.yaml', 'domain: d\ndescriptors: [{ key: k }]\n');
    const now = folder.write('now.yaml', `domain: d\ndescriptors:\n${rules.join('')}`);
    const descriptor = { entries: ['k2\n```=a'], code: 'OK', reason: 'within_limit', hits: 6 };
    const call = {
      type: 'decision',
      time: '2026-03-01T12:00:00.000Z',
      domain: 'd',
      code: 'OK',
      descriptors: [descriptor],
    };
    const log = folder.write('log.jsonl', `${JSON.stringify(call)}\n`);
    const { stdout } = await runOf(CHECK, ['-diff', old, now, '-replay', log, '-format', 'markdown']);
    const lines = stdout.trimEnd().split('\n');
    const fence = lines.findIndex((line) => line.startsWith('````text'));
    expect([lines.at(-1), lines.slice(fence + 1, -1).filter((line) => line.startsWith('````'))]).toEqual(['````', []]);
    expect(lines.filter((line) => line.startsWith('#'))).toEqual([
      '### Rules: 5 rules added, 1 rule removed, 0 rules changed',
      '### Calls that are decided differently',
    ]);
    // What is left of a line without its code.
    const rest = lines.slice(0, fence).map((line) => line.replaceAll(/(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)/g, 'CODE'));
    expect(new Set(rest.filter((line) => /^ *-/.test(line)))).toEqual(
      new Set(['- **added** CODE (CODE)', '- **removed** CODE (CODE)', '  - rate_limit: CODE']),
    );
  });
});

describe('weir-check -diff', () => {
  const OLD = `domain: d
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 10 } }
  - { key: plan, value: gold, rate_limit: { unit: day, requests_per_unit: 5, algorithm: sliding_window } }
  - { key: same, rate_limit: { unlimited: true } }
`;
  const NEW = `domain: d
descriptors:
  - { key: same, rate_limit: { unlimited: true } }
  - { key: user, shadow_mode: true, rate_limit: { unit: minute, unit_multiplier: 5, requests_per_unit: 20, name: n, lease: true } }
  - { key: plan, value: silver, enforce_percent: 5, rate_limits: [{ unit: day, requests_per_unit: 5 }, { unit: hour, requests_per_unit: 2 }] }
on_unmatched: deny
`;

  async function diff(...flags: readonly string[]): Promise<string> {
    const { exitCode, stdout } = await runOf(CHECK, [
      '-diff',
      folder.write('old.yaml', OLD),
      folder.write('new.yaml', NEW),
      ...flags,
    ]);
    expect(exitCode).toBe(0);
    return stdout.replaceAll(`${folder.base}/`, '');
  }

  it('says rule by rule what changes, in words', async () => {
    expect(await diff()).toBe(`added d.on_unmatched_deny (new.yaml:6:1)
removed d.plan_gold (old.yaml:4:12)
  rate_limit: 5 per day, sliding window
added d.plan_silver (new.yaml:5:12)
  rate_limits: 5 per day; 2 per hour
  enforce_percent: 5
changed d.user (new.yaml:4:12)
  rate_limit: 10 per minute → 20 per 5 minutes, leased, name n
  shadow_mode: none → true
2 rules added, 1 rule removed, 1 rule changed
`);
  });

  it('says the same as JSON and, for a pull request, in Markdown', async () => {
    const { changes } = JSON.parse(await diff('-json')) as { changes: unknown[] };
    expect(changes.at(-1)).toEqual({
      change: 'changed',
      rule: 'd.user',
      place: { file: 'new.yaml', line: 4, column: 12 },
      fields: [
        { field: 'rate_limit', before: '10 per minute', after: '20 per 5 minutes, leased, name n' },
        { field: 'shadow_mode', before: null, after: 'true' },
      ],
    });
    expect(await diff('-format', 'markdown')).toContain(
      '### Rules: 2 rules added, 1 rule removed, 1 rule changed\n\n- **added** `d.on_unmatched_deny` ' +
        '(`new.yaml:6:1`)\n',
    );
  });

  it('has the calls of a log that are decided differently in the same report', async () => {
    const call = { type: 'decision', time: '2026-03-01T12:00:00.000Z', domain: 'd', code: 'OK' };
    const descriptor = { entries: ['plan=gold'], code: 'OK', reason: 'within_limit', rule: 'd.plan_gold', hits: 6 };
    const log = folder.write('log.jsonl', `${JSON.stringify({ ...call, descriptors: [descriptor] })}\n`);
    const text = await diff('-replay', log, '-format', 'markdown');
    expect(text).toMatch(/^### Rules: [^]*### Calls that are decided differently\n\n```text\n1 call from [^]*```\n$/);
  });

  it('prints the problems of either side instead, if there are any', async () => {
    const run = await runOf(CHECK, ['-diff', folder.write('old.yaml', OLD), folder.write('wrong.yaml', WRONG)]);
    expect([run.exitCode, run.stdout]).toEqual([
      1,
      expect.stringContaining('wrong.yaml:2:46: error: invalid rate limit unit'),
    ]);
  });
});

it('reads several files and folders, and standard input', async () => {
  folder.write(
    'more/a.yaml',
    'domain: a\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 5 } }]\n',
  );
  const paths = [folder.at('more'), folder.write('b.yaml', 'domain: b\ndescriptors: [{ key: k }]\n')];
  expect((await runOf(CHECK, paths)).stdout).toContain('passed: 2 files, 2 domains, 2 rules; 0 errors');
});
