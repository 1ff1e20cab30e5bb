import { chmodSync, readFileSync } from 'node:fs';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { TypeScriptProcess } from '../../support/processes/typescript-process';
import { RuleTree, rules } from './rule-tree';
import { HINTS_ALONE } from './watched-rules';

/** A user who may not do what root may; no other process is expected to be theirs. */
const NOBODY = 65_533;
const isRoot = process.getuid?.() === 0;

describe('a process that watches rule files', () => {
  let tree: RuleTree;

  beforeEach(() => {
    tree = new RuleTree();
    chmodSync(tree.base, 0o755);
    tree.write('root/config/a.yaml', rules('a', 1));
  });
  afterEach(() => tree[Symbol.dispose]());

  function start(more: object = {}, { user = '', wrapper = [] as readonly string[] } = {}) {
    const options = {
      root: tree.at('root'),
      subdirectory: '',
      appDirectory: 'config',
      ignoreDotFiles: false,
      watchRoot: false,
      mergeDomainConfigs: false,
      timing: HINTS_ALONE,
      workerFile: join(__dirname, 'rules-worker-entry.cjs'),
      ...more,
    };
    return new TypeScriptProcess(join(__dirname, 'rules-process.ts'), [JSON.stringify(options), user], wrapper);
  }
  async function told(watcher: TypeScriptProcess) {
    const line: { readonly rules: string; readonly warnings: readonly string[] } = JSON.parse(await watcher.line());
    return line;
  }
  async function toldRules(watcher: TypeScriptProcess) {
    return (await told(watcher)).rules;
  }

  describe.each([
    { watchRoot: true, mode: 'watching the root alone' },
    { watchRoot: false, mode: 'watching the files too' },
  ])('$mode', ({ watchRoot }) => {
    it('stays alive while it waits, and ends by itself when it lets go', async () => {
      await using watcher = start({ watchRoot });
      expect(await toldRules(watcher)).toBe('a=1');
      watcher.say('stop');
      expect(await watcher.end()).toBe(0);
    });

    it('ends by itself when it lets go in the middle of a look, of a hold, and of loading in a thread', async () => {
      await using looking = start({ watchRoot });
      looking.say('stop');
      expect(await looking.end()).toBe(0);

      const forEver = { recheckDelay: 3_600_000, maxWait: 3_600_000 };
      await using holding = start({ watchRoot, timing: { ...HINTS_ALONE, confirm: forEver } });
      expect(await toldRules(holding)).toBe('a=1');
      tree.remove('root/config');
      tree.write('root/config/b.yaml', rules('b', 1));
      holding.say('stop');
      expect(await holding.end()).toBe(0);

      tree.write('slow-worker.cjs', 'console.log("started"); setInterval(() => undefined, 1000);');
      await using loading = start({ watchRoot, smallSet: 0, workerFile: tree.at('slow-worker.cjs') });
      expect(await loading.line()).toBe('started');
      loading.say('stop');
      expect(await loading.end()).toBe(0);
    });

    it('keeps the last good rules while it lacks the permission, and reads them again when it has it', async () => {
      const config = tree.at('root/config');
      await using watcher = start({ watchRoot }, isRoot ? { user: `${NOBODY}` } : {});
      expect(await toldRules(watcher)).toBe('a=1');
      for (const place of [config, tree.at('root')]) {
        chmodSync(place, 0o000);
        expect(await toldRules(watcher)).toMatch(/^rejected: .*: permission denied \(EACCES\) at /);
        chmodSync(place, 0o755);
        expect(await toldRules(watcher)).toBe('a=1');
      }
      tree.move('root', 'before');
      tree.write('root/config/a.yaml', rules('a', 3));
      expect(await toldRules(watcher)).toBe('a=3');
    });

    it('waits for a permission that it lacks from the start, also for a subfolder', async () => {
      tree.write('root/config/deep/er/b.yaml', rules('b', 1));
      chmodSync(tree.at('root/config'), 0o000);
      chmodSync(tree.at('root/config/deep/er'), 0o000);
      await using watcher = start({ watchRoot }, isRoot ? { user: `${NOBODY}` } : {});
      expect(await toldRules(watcher)).toMatch(/^rejected: .*: permission denied \(EACCES\) at .*\/config$/);
      chmodSync(tree.at('root/config'), 0o755);
      expect(await toldRules(watcher)).toMatch(/^rejected: .*: permission denied \(EACCES\) at .*\/er$/);
      chmodSync(tree.at('root/config/deep/er'), 0o755);
      expect(await toldRules(watcher)).toBe('a=1 b=1');
    });

    it.each(['max_inotify_instances', 'max_inotify_watches'] as const)(
      'sees changes by looking now and then when %s are used up, and says so with the rules',
      async (limit) => {
        await using exhausted = await exhaust(limit, tree);
        await using watcher = start(
          { watchRoot, timing: { ...HINTS_ALONE, pollInterval: 150 } },
          { user: exhausted.user, wrapper: exhausted.wrapper },
        );
        const first = await told(watcher);
        expect(first.rules).toBe('a=1');
        expect(first.warnings).toEqual([expect.stringMatching(/cannot be watched \((EMFILE|ENOSPC): /)]);
        tree.move('root', 'before');
        tree.write('root/config/a.yaml', rules('a', 2));
        expect(await toldRules(watcher)).toBe('a=2');
        tree.remove('root/config');
        expect(await toldRules(watcher)).toMatch(/^rejected: .* does not exist/);
        tree.write('root/config/a.yaml', rules('a', 3));
        expect(await toldRules(watcher)).toBe('a=3');
      },
    );
  });

  it('keeps the last good rules while it may not read one of the files', async () => {
    await using watcher = start({}, isRoot ? { user: `${NOBODY}` } : {});
    expect(await toldRules(watcher)).toBe('a=1');
    chmodSync(tree.at('root/config/a.yaml'), 0o000);
    expect(await toldRules(watcher)).toMatch(/^rejected: the rule file a\.yaml cannot be read: permission denied/);
    chmodSync(tree.at('root/config/a.yaml'), 0o644);
    expect(await toldRules(watcher)).toBe('a=1');
    tree.write('root/config/a.yaml', rules('a', 2));
    expect(await toldRules(watcher)).toBe('a=2');
  });
});

interface Exhausted extends AsyncDisposable {
  readonly wrapper: readonly string[];
  /** The user that the limit is used up for; empty: any. */
  readonly user: string;
}

/** Sees to it that a process has nothing left to watch with: by a limit of its own or, where that is refused, by using all up. */
async function exhaust(limit: 'max_inotify_instances' | 'max_inotify_watches', tree: RuleTree): Promise<Exhausted> {
  const setLimit = `echo 0 > /proc/sys/user/${limit}`;
  try {
    execFileSync('unshare', ['-Ur', 'sh', '-c', setLimit], { stdio: 'ignore' });
    const wrapper = ['unshare', '-Ur', 'sh', '-c', `${setLimit} && exec "$@"`, 'sh'];
    return { wrapper, user: '', [Symbol.asyncDispose]: () => Promise.resolve() };
  } catch {
    // Only privileged processes may give others limits here.
  }
  // Each of these holds an instance of its own; the first that gets none says so.
  const most = Number(readFileSync('/proc/sys/fs/inotify/max_user_instances', 'utf8'));
  tree.write('followed', '');
  const holders = Array.from({ length: most + 1 }, () =>
    spawn('tail', ['-f', tree.at('followed')], {
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(isRoot && { uid: NOBODY }),
    }),
  );
  await Promise.race(holders.map(({ stderr }) => once(stderr, 'data')));
  return {
    wrapper: [],
    user: isRoot ? `${NOBODY}` : '',
    [Symbol.asyncDispose]: async () => {
      const ends = holders.map((holder) => once(holder, 'exit'));
      for (const holder of holders) holder.kill();
      await Promise.all(ends);
    },
  };
}
