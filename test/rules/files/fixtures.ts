import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readRules } from '../../../src/cli/check/read-rules';
import type { Problem } from '../../../src/rules/files/problems/problem';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';

const FOLDER = join(__dirname, 'fixtures');

/** One invalid rule file, or folder of rule files, and the problems expected for it. */
export interface Fixture {
  /** `<code>` or `<code>.<variant>`. */
  readonly name: string;
  readonly code: string;
  readonly path: string;
  readonly isFolder: boolean;
  /** The formatted problems, with paths relative to the folder of the fixtures. */
  readonly expected: string;
}

export const fixtures: readonly Fixture[] = readdirSync(FOLDER)
  .filter((entry) => !entry.endsWith('.txt'))
  .map((entry) => {
    const path = join(FOLDER, entry);
    const name = entry.replace(/\.yaml$/, '');
    const expected = readFileSync(join(FOLDER, `${name}.txt`), 'utf8');
    return { name, code: name.split('.')[0] ?? '', path, isFolder: statSync(path).isDirectory(), expected };
  });

/** All problems of a fixture, errors first. */
export async function problemsOf({ name, path, isFolder }: Fixture): Promise<readonly Problem[]> {
  const mergeDomainConfigs = name.endsWith('.merged-files');
  const { errors, warnings } = isFolder
    ? await readRules(path, { mergeDomainConfigs, ignoreDotFiles: false })
    : readRuleFiles([{ path: `${name}.yaml`, content: readFileSync(path) }], { mergeDomainConfigs });
  return [...errors, ...warnings];
}

/** A text without the absolute path of the fixtures, or of one that is a folder. */
export function withoutFolder(text: string, fixture?: Fixture): string {
  const inFolder = fixture?.isFolder === true ? text.replaceAll(`${fixture.path}/`, '') : text;
  return inFolder.replaceAll(`${FOLDER}/`, '');
}
