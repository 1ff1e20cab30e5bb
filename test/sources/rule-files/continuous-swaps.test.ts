import { join } from 'node:path';
import { TypeScriptProcess } from '../../support/processes/typescript-process';
import { MODES } from './fixtures';
import { RuleTree } from '../../support/data/rule-tree';
import { FILES, SWAPS } from './swapping-process';
import { HINTS_ONLY, NEVER, WatchedRules } from './watched-rules';

/**
 * Scans so often that many scans coincide with a swap. A scan that finds a folder being removed is repeated until it finds rules:
 * after `maxWait`, it would be reported as a rejection.
 */
const FREQUENT_SCANS = {
  ...HINTS_ONLY,
  settle: { quiet: 1, maxWait: 5 },
  confirm: { ...HINTS_ONLY.confirm, maxWait: NEVER },
};

describe.each(MODES)('the rule file source while another process switches the files, $mode,', ({ watchRoot }) => {
  it.each([
    { what: 'a ConfigMap mount', how: 'mount', root: 'root' },
    { what: 'a ConfigMap mount that keeps its old folders', how: 'keeping mount', root: 'root' },
    { what: 'a link between folders, of which the old one is removed', how: 'link', root: 'root/current' },
  ])('never mixes the files of two moments: $what', async ({ how, root }) => {
    using tree = new RuleTree();
    await using swapping = new TypeScriptProcess(join(__dirname, 'swapping-process.ts'), [tree.at('root'), how]);
    expect(await swapping.line()).toBe('ready');
    using watched = new WatchedRules({ root: tree.at(root), watchRoot, timing: FREQUENT_SCANS });
    await watched.next();
    swapping.say('go');
    expect(await lastOf(watched)).toBe(summaryOf(SWAPS));
    expectNoMixture(watched);
  });
});

async function lastOf(watched: WatchedRules): Promise<string> {
  for (;;) {
    const latest = await watched.next();
    if (latest === summaryOf(SWAPS)) return latest;
  }
}

function summaryOf(number: number): string {
  const names = Array.from({ length: FILES }, (_, i) => `f${i}.yaml`).toSorted();
  return names.map((name) => `d${name.slice(1, -'.yaml'.length)}=${number}`).join(' ');
}

function expectNoMixture(watched: WatchedRules): void {
  const limits = watched.summaries.map((line) => Array.from(new Set(line.match(/(?<==)\d+/g))));
  expect(limits.filter(({ length }) => length !== 1)).toEqual([]);
}
