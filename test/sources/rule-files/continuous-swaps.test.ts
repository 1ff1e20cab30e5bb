import { join } from 'node:path';
import { TypeScriptProcess } from '../../support/processes/typescript-process';
import { RuleTree } from './rule-tree';
import { FILES, SWAPS } from './swapping-process';
import { HINTS_ALONE, WatchedRules } from './watched-rules';

/** Reads often, so that many a look falls into a swap. */
const EAGER = { ...HINTS_ALONE, settle: { quiet: 1, maxWait: 5 } };

describe.each([
  { watchRoot: true, mode: 'watching the root alone' },
  { watchRoot: false, mode: 'watching the files too' },
])('rule files that another process switches all the time, $mode,', ({ watchRoot }) => {
  it.each([
    { what: 'a ConfigMap mount', how: 'mount', root: 'root' },
    { what: 'a ConfigMap mount that keeps its old folders', how: 'keeping mount', root: 'root' },
    { what: 'a link between folders of which the old one is removed', how: 'link', root: 'root/current' },
  ])('are always those of one moment: $what', async ({ how, root }) => {
    using tree = new RuleTree();
    await using swapping = new TypeScriptProcess(join(__dirname, 'swapping-process.ts'), [tree.at('root'), how]);
    expect(await swapping.line()).toBe('ready');
    using watched = new WatchedRules({ root: tree.at(root), watchRoot, timing: EAGER });
    await watched.next();
    swapping.say('go');
    expect(await lastOf(watched)).toBe(whole(SWAPS));
    expectWholeOnly(watched);
  });
});

async function lastOf(watched: WatchedRules): Promise<string> {
  for (;;) {
    const told = await watched.next();
    if (told === whole(SWAPS)) return told;
  }
}

function whole(number: number): string {
  const names = Array.from({ length: FILES }, (_, i) => `f${i}.yaml`).toSorted();
  return names.map((name) => `d${name.slice(1, -'.yaml'.length)}=${number}`).join(' ');
}

function expectWholeOnly(watched: WatchedRules): void {
  const limits = watched.summaries.map((line) => Array.from(new Set(line.match(/(?<==)\d+/g))));
  expect(limits.filter(({ length }) => length !== 1)).toEqual([]);
}
