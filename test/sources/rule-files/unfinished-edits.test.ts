import { appendFileSync, closeSync, openSync, truncateSync, writeSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { type RuleTreeFixture, useRuleTree } from './fixtures';
import { ConfigMapMount, rules } from '../../support/data/rule-tree';
import { HINTS_ONLY, LONG_RECHECK, NEVER } from './watched-rules';

let tree: RuleTreeFixture['tree'];
let watch: RuleTreeFixture['watch'];
useRuleTree((fixture) => ({ tree, watch } = fixture));

describe('the rule file source, while an edit is in progress,', () => {
  it('ignores the intermediate state when a file is empty for a moment', async () => {
    const watched = await watch('a=1', LONG_RECHECK);
    truncateSync(tree.at('config/a.yaml'));
    await wait(250);
    tree.write('config/a.yaml', rules('a', 2));
    expect(await watched.next()).toBe('a=2');
    expect(await watched.rest()).toEqual([]);
  });

  it('ignores the intermediate state when a file is replaced by an empty one, which is written afterwards', async () => {
    const watched = await watch('a=1', LONG_RECHECK);
    tree.replace('config/a.yaml', '');
    await wait(250);
    tree.write('config/a.yaml', rules('a', 2));
    expect(await watched.next()).toBe('a=2');
    expect(await watched.rest()).toEqual([]);
  });

  it('ignores the intermediate state when a file is written in parts, each of which is a valid rule file', async () => {
    const watched = await watch('a=1', LONG_RECHECK);
    const text = 'domain: a\ndescriptors:\n  - key: one\n  - key: two\n  - key: three\n  - key: four\n';
    const file = openSync(tree.at('config/a.yaml'), 'w');
    for (const part of text.match(/[^]{1,27}/g) ?? []) {
      writeSync(file, part);
      await wait(60);
    }
    closeSync(file);
    expect(await watched.next()).toBe('a=undefined');
    expect(watched.events.at(-1)).toHaveProperty('kind', 'loaded');
    expect(await watched.rest()).toEqual([]);
  });

  it('ignores the intermediate state when a file is new and only its first line has been written', async () => {
    const watched = await watch('a=1', LONG_RECHECK);
    const [domain = '', ...descriptors] = rules('b', 1).split('\n');
    tree.write('config/b.yaml', `${domain}\n`);
    await wait(200);
    appendFileSync(tree.at('config/b.yaml'), descriptors.join('\n'));
    expect(await watched.next()).toBe('a=1 b=1');
    expect(await watched.rest()).toEqual([]);
  });

  it('ignores the intermediate state when a file is removed and written again in parts', async () => {
    const watched = await watch('a=1', LONG_RECHECK);
    // While the removed file is open, no file system gives its inode number to the new one.
    const removed = openSync(tree.at('config/a.yaml'), 'r');
    tree.remove('config/a.yaml');
    const [domain = '', ...descriptors] = rules('a', 2).split('\n');
    tree.write('config/a.yaml', `${domain}\n`);
    await wait(200);
    appendFileSync(tree.at('config/a.yaml'), descriptors.join('\n'));
    closeSync(removed);
    expect(await watched.next()).toBe('a=2');
    expect(await watched.rest()).toEqual([]);
  });

  it('ignores the intermediate state when files are removed before the new ones are written', async () => {
    tree.write('config/b.yaml', rules('b', 1));
    const watched = await watch('a=1 b=1', LONG_RECHECK);
    tree.remove('config/a.yaml');
    tree.remove('config/b.yaml');
    await wait(200);
    tree.write('config/a.yaml', rules('a', 2));
    tree.write('config/b.yaml', rules('b', 2));
    expect(await watched.next()).toBe('a=2 b=2');
    expect(await watched.rest()).toEqual([]);
  });

  it('ignores the intermediate state when a half-written file is not a valid rule file', async () => {
    const watched = await watch('a=1', LONG_RECHECK);
    tree.write('config/a.yaml', 'domain: a\ndescriptors: [');
    await wait(200);
    tree.write('config/a.yaml', rules('a', 2));
    expect(await watched.next()).toBe('a=2');
    expect(await watched.rest()).toEqual([]);
  });
});

describe('the rule file source, after a change in one step,', () => {
  /** The second look at a change would never come. */
  const NO_RECHECK = { ...HINTS_ONLY, confirm: { recheckDelay: NEVER, maxWait: NEVER } };

  it('emits at once when another file was renamed over a file', async () => {
    const watched = await watch('a=1', NO_RECHECK);
    tree.write('config/a.yaml.new', rules('a', 2));
    // Longer than one step of the clock of a file system.
    await wait(50);
    tree.move('config/a.yaml.new', 'config/a.yaml');
    expect(await watched.next()).toBe('a=2');
  });

  it('emits at once when the link of a ConfigMap mount was switched', async () => {
    const mount = new ConfigMapMount(tree, 'config/mount');
    mount.publish({ 'b.yaml': rules('b', 1) });
    const watched = await watch('a=1 b=1', NO_RECHECK);
    mount.publish({ 'b.yaml': rules('b', 2) });
    expect(await watched.next()).toBe('a=1 b=2');
  });

  it('emits at once when the link that leads to the folder was switched', async () => {
    tree.write('next/a.yaml', rules('a', 2));
    tree.move('config', 'before');
    tree.link('config', 'before');
    const watched = await watch('a=1', NO_RECHECK);
    tree.switchLink('config', 'next');
    expect(await watched.next()).toBe('a=2');
  });
});

it('the rule file source emits a state that may be intermediate when it stays the same', async () => {
  tree.write('config/b.yaml', rules('b', 1));
  const watched = await watch('a=1 b=1');
  truncateSync(tree.at('config/a.yaml'));
  expect(await watched.next()).toMatch(/^rejected: a\.yaml:1:1: config file cannot have empty domain/);
  tree.remove('config/a.yaml');
  expect(await watched.next()).toBe('b=1');
  tree.write('config/b.yaml', 'domain: b');
  expect(await watched.next()).toBe('b=undefined');
  expect(await watched.rest()).toEqual([]);
});
