import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MODES } from './fixtures';
import { RuleTree, rules } from '../../support/data/rule-tree';
import { HINTS_ONLY, WatchedRules } from './watched-rules';

const POLLED = { ...HINTS_ONLY, pollInterval: 20 };
const EXITED = 'rejected: cannot check the rules: the worker thread exited with code 7';

let tree: RuleTree;
beforeEach(() => {
  tree = new RuleTree();
  tree.write('config/a.yaml', rules('a', 1));
});
afterEach(() => tree[Symbol.dispose]());

/** A worker thread that exits without a check as long as the file `broken` exists, and counts how often it did. */
function unreliableWorker(): string {
  const entry = join(__dirname, 'rules-worker-entry.cjs');
  tree.write(
    'worker.cjs',
    `const fs = require('node:fs');
if (fs.existsSync(${JSON.stringify(tree.at('broken'))})) {
  fs.appendFileSync(${JSON.stringify(tree.at('attempts'))}, '.');
  process.exit(7);
}
require(${JSON.stringify(entry)});`,
  );
  return tree.at('worker.cjs');
}

function attempts(): number {
  return existsSync(tree.at('attempts')) ? readFileSync(tree.at('attempts')).length : 0;
}

async function expectAttempts(count: number): Promise<void> {
  while (attempts() < count) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe.each(MODES)('the rule file source, $mode,', ({ watchRoot }) => {
  it('loads unchanged rules again whose check failed in the thread, and reports the failure once', async () => {
    tree.write('broken', '');
    const options = { watchRoot, workerFile: unreliableWorker(), smallSet: 0 };
    using watched = new WatchedRules({ root: tree.base, timing: POLLED, ...options });
    expect(await watched.next()).toBe(EXITED);
    await expectAttempts(3);
    tree.remove('broken');
    expect(await watched.next()).toBe('a=1');
    expect(await watched.rest()).toEqual([]);
  });
});
