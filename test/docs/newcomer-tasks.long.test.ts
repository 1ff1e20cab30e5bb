import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { ROOT } from './markdown-files';

/** What a copy of the project needs to be compiled and tested. */
const COPIED = [
  'src',
  'test',
  'marbles',
  'bench',
  'packages',
  'schema',
  'docs',
  'examples',
  'proto',
  'package.json',
  'package-lock.json',
  'README.md',
];
const CONFIGS = ['tsconfig.json', 'jest.config.cjs'];
/** Only ends a test that hangs. */
const HANGS = 1_800_000;

const copy = new TemporaryFolder();
function run(command: string, ...args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: copy.base, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}\n${stdout}${stderr}`);
}

beforeAll(() => {
  for (const each of [...COPIED, ...CONFIGS]) {
    cpSync(join(ROOT, each), copy.at(each), {
      recursive: true,
      filter: (path) => !/\/(?:node_modules|\.servers)$/.test(path),
    });
  }
  for (const each of ['node_modules', 'packages/versioning/node_modules']) symlinkSync(join(ROOT, each), copy.at(each));
}, HANGS);
afterAll(() => copy[Symbol.dispose]());

// CONTRIBUTING.md has the tasks, with the files that each changes.
it.each<[task: string, mostOfSource: number, most: number, ...lists: string[]]>([
  ['setting', 2, 3],
  ['statistics-output', 2, 4],
  ['store', 3, 5],
  ['limit-field', 6, 20, 'test/rules/files/(problems|schema)', 'test/docs/rules-page', 'test/http/operators/rules'],
  ['algorithm', 3, 6, 'test/rules/files/schema', 'test/counting/algorithms', 'test/integration/kvstore/count-script'],
])(
  'the first change "%s" can be made, compiles, and passes its test and those of the lists that it changes',
  (task, mostOfSource, most, ...lists) => {
    const patch = join(ROOT, 'test/first-change', `${task}.patch`);
    // With one line of context: others change the same files.
    const options = ['--recount', '-C1', patch];
    run('git', 'apply', ...options);
    run(
      process.execPath,
      join(ROOT, 'node_modules/.bin/tsc'),
      '-p',
      'test/tsconfig.json',
      '--incremental',
      '--tsBuildInfoFile',
      'built',
    );
    run(process.execPath, join(ROOT, 'node_modules/.bin/jest'), `test/first-change/${task}`, ...lists);
    run('git', 'apply', '--reverse', ...options);
    const text = readFileSync(patch, 'utf8');
    // Files of src that exist, and all files.
    const counts = [/^--- a\/src\//gm, /^\+\+\+ /gm].map((files) => [...text.matchAll(files)].length);
    expect(counts[0]).toBeLessThanOrEqual(mostOfSource);
    expect(counts[1]).toBeLessThanOrEqual(most);
  },
  HANGS,
);
