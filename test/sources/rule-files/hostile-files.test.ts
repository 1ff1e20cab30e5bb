import { execFileSync } from 'node:child_process';
import { truncateSync } from 'node:fs';
import { MAX_FILE_BYTES, MAX_FILES, MAX_FOLDERS } from '../../../src/rules/files/size-limits';
import { type RuleTreeFixture, useRuleTree } from './fixtures';
import { rules } from '../../support/data/rule-tree';

let tree: RuleTreeFixture['tree'];
let watch: RuleTreeFixture['watch'];
useRuleTree((fixture) => ({ tree, watch } = fixture));

function sparse(path: string, bytes: number): void {
  tree.write(path, '');
  truncateSync(tree.at(path), bytes);
}

describe('the rule file source, on more than it can read without delaying decisions,', () => {
  it('rejects a file that is too large by its size and the limit, next to the errors of other files', async () => {
    const watched = await watch();
    tree.write('config/b.yaml', 'domain: ""\n');
    sparse('config/huge.yaml', 1.9e9);
    let seen = await watched.next();
    // Each write can be a change of its own.
    while (!seen.includes('huge')) seen = await watched.next();
    expect(seen).toContain('b.yaml:1:1: config file cannot have empty domain');
    expect(seen).toContain(
      'huge.yaml:1:1: error loading config file: the file has 1900000000 bytes, more than the limit',
    );
    tree.remove('config/huge.yaml');
    tree.write('config/b.yaml', rules('b', 1));
    while (seen !== 'a=1 b=1') seen = await watched.next();
  });

  it('rejects files that are too large together until there are fewer', async () => {
    for (const name of ['b', 'c', 'd']) sparse(`config/${name}.yaml`, MAX_FILE_BYTES);
    const watched = await watch(
      `rejected: the rule folder ${tree.at('config')} has rule files of more than 67108864 bytes in total`,
    );
    for (const name of ['b', 'c', 'd']) tree.remove(`config/${name}.yaml`);
    await watched.nextEvent();
    // Each removal can be a change of its own.
    while (watched.summaries.at(-1) !== 'a=1') await watched.nextEvent();
    expect(watched.summaries.at(-1)).toBe('a=1');
  });

  it.each([
    ['rule files', MAX_FILES, (index: number) => `more/${index}.yaml`],
    ['subfolders', MAX_FOLDERS, (index: number) => `more/${index}/a.txt`],
  ])('rejects a folder with too many %s until there are fewer', async (what, limit, name) => {
    for (let index = 0; index <= limit; index += 1) tree.write(`config/${name(index)}`, '');
    const watched = await watch(`rejected: the rule folder ${tree.at('config')} has more than ${limit} ${what}`);
    tree.move('config/more', 'elsewhere');
    expect(await watched.next()).toBe('a=1');
  });

  it('is not blocked by a pipe with the name of a rule file, nor by a link to a device', async () => {
    execFileSync('mkfifo', [tree.at('config/pipe.yaml')]);
    tree.link('config/zero.yaml', '/dev/zero');
    const watched = await watch();
    tree.write('config/a.yaml', rules('a', 2));
    expect(await watched.next()).toBe('a=2');
  });
});
