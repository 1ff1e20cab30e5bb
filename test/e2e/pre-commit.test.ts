import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { ROOT } from '../docs/markdown-files';

/**
 * As pre-commit runs a hook of the language `script`: with the files that were changed, in the folder of their
 * repository.
 */
function play(hook: string, folder: string, ...files: readonly string[]): number | null {
  const hooks = parse(readFileSync(join(ROOT, '.pre-commit-hooks.yaml'), 'utf8')) as readonly {
    readonly id: string;
    readonly entry: string;
  }[];
  const [program, ...args] = hooks.find(({ id }) => id === hook)!.entry.split(' ');
  return spawnSync(join(ROOT, program!), [...args, ...files], { cwd: folder }).status;
}

const RULES = 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: minute, requests_per_unit: 10 } }]\n';
const TEST = 'rules: rules.yaml\ntests:\n  - name: left\n    decisions: |\n      user=anna → OK: 9 left\n';

it('the hooks of pre-commit accept right rules and tests, and reject wrong ones', () => {
  using folder = new TemporaryFolder();
  const at = folder.base;
  folder.write('rules.yaml', RULES);
  folder.write('wrong.yaml', RULES.replace('minute', 'minutes'));
  folder.write('rules.test.yaml', TEST);
  folder.write('wrong.test.yaml', TEST.replace('9', '8'));
  expect(play('weir-check', at, 'rules.yaml')).toBe(0);
  expect(play('weir-check', at, 'rules.yaml', 'wrong.yaml')).toBe(1);
  expect(play('weir-test', at, 'rules.test.yaml')).toBe(0);
  expect(play('weir-test', at, 'rules.test.yaml', 'wrong.test.yaml')).toBe(1);
});
