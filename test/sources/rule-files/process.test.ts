import { chmodSync, readFileSync } from 'node:fs';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { TypeScriptProcess } from '../../support/processes/typescript-process';
import { MODES } from './fixtures';
import { RuleTree, rules } from '../../support/data/rule-tree';
import { HINTS_ONLY, NEVER } from './watched-rules';

/** A user id without the permissions of root, which no other process is expected to have. */
const UNPRIVILEGED = 65_533;
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
      timing: HINTS_ONLY,
      workerFile: join(__dirname, 'rules-worker-entry.cjs'),
      ...more,
    };
    return new TypeScriptProcess(join(__dirname, 'rules-process.ts'), [JSON.stringify(options), user], wrapper);
  }
  async function event(watcher: TypeScriptProcess) {
    const line: { readonly rules: string; readonly warnings: readonly string[] } = JSON.parse(await watcher.line());
    return line;
  }
  async function summary(watcher: TypeScriptProcess) {
    return (await event(watcher)).rules;
  }

  /** States between the steps of a change may be reported, too. */
  async function changesTo(watcher: TypeScriptProcess, expected: string) {
    let seen = await summary(watcher);
    while (/^(?:rejected: |no rules$)/.test(seen)) seen = await summary(watcher);
    expect(seen).toBe(expected);
  }

  describe.each(MODES)('$mode,', ({ watchRoot }) => {
    it('stays alive while it waits, and exits by itself after unsubscribing', async () => {
      await using watcher = start({ watchRoot });
      expect(await summary(watcher)).toBe('a=1');
      watcher.say('stop');
      expect(await watcher.end()).toBe(0);
    });

    it('exits by itself after unsubscribing during a scan, during the recheck delay, and while a worker thread loads', async () => {
      await using scanning = start({ watchRoot });
      scanning.say('stop');
      expect(await scanning.end()).toBe(0);

      await using rechecking = start({
        watchRoot,
        timing: { ...HINTS_ONLY, confirm: { recheckDelay: NEVER, maxWait: NEVER } },
      });
      expect(await summary(rechecking)).toBe('a=1');
      tree.remove('root/config');
      tree.write('root/config/b.yaml', rules('b', 1));
      rechecking.say('stop');
      expect(await rechecking.end()).toBe(0);

      tree.write('slow-worker.cjs', 'console.log("started"); setInterval(() => undefined, 1000);');
      await using loading = start({ watchRoot, smallSet: 0, workerFile: tree.at('slow-worker.cjs') });
      expect(await loading.line()).toBe('started');
      loading.say('stop');
      expect(await loading.end()).toBe(0);
    });

    it('rejects the rules while the permission is missing, and emits them again when it is back', async () => {
      const config = tree.at('root/config');
      await using watcher = start({ watchRoot }, isRoot ? { user: `${UNPRIVILEGED}` } : {});
      expect(await summary(watcher)).toBe('a=1');
      for (const folder of [config, tree.at('root')]) {
        chmodSync(folder, 0o000);
        expect(await summary(watcher)).toMatch(/^rejected: .*: permission denied \(EACCES\) at /);
        chmodSync(folder, 0o755);
        expect(await summary(watcher)).toBe('a=1');
      }
      tree.move('root', 'before');
      tree.write('root/config/a.yaml', rules('a', 3));
      await changesTo(watcher, 'a=3');
    });

    it('waits for a permission that is missing from the start, also for a subfolder', async () => {
      tree.write('root/config/deep/er/b.yaml', rules('b', 1));
      chmodSync(tree.at('root/config'), 0o000);
      chmodSync(tree.at('root/config/deep/er'), 0o000);
      await using watcher = start({ watchRoot }, isRoot ? { user: `${UNPRIVILEGED}` } : {});
      expect(await summary(watcher)).toMatch(/^rejected: .*: permission denied \(EACCES\) at .*\/config$/);
      chmodSync(tree.at('root/config'), 0o755);
      expect(await summary(watcher)).toMatch(/^rejected: .*: permission denied \(EACCES\) at .*\/er$/);
      chmodSync(tree.at('root/config/deep/er'), 0o755);
      expect(await summary(watcher)).toBe('a=1 b=1');
    });

    it.each(['max_inotify_instances', 'max_inotify_watches'] as const)(
      'detects changes by polling when %s are exhausted, and warns about it',
      async (limit) => {
        await using exhausted = await exhaust(limit, tree);
        await using watcher = start(
          { watchRoot, timing: { ...HINTS_ONLY, pollInterval: 150 } },
          { user: exhausted.user, wrapper: exhausted.wrapper },
        );
        const first = await event(watcher);
        expect(first.rules).toBe('a=1');
        expect(first.warnings).toEqual([expect.stringMatching(/cannot be watched \((EMFILE|ENOSPC): /)]);
        tree.move('root', 'before');
        tree.write('root/config/a.yaml', rules('a', 2));
        await changesTo(watcher, 'a=2');
        tree.remove('root/config');
        expect(await summary(watcher)).toMatch(/^rejected: .* does not exist/);
        tree.write('root/config/a.yaml', rules('a', 3));
        await changesTo(watcher, 'a=3');
      },
    );
  });

  it('rejects the rules while it has no permission to read one of the files', async () => {
    await using watcher = start({}, isRoot ? { user: `${UNPRIVILEGED}` } : {});
    expect(await summary(watcher)).toBe('a=1');
    chmodSync(tree.at('root/config/a.yaml'), 0o000);
    expect(await summary(watcher)).toMatch(/^rejected: the rule file a\.yaml cannot be read: permission denied/);
    chmodSync(tree.at('root/config/a.yaml'), 0o644);
    expect(await summary(watcher)).toBe('a=1');
    tree.write('root/config/a.yaml', rules('a', 2));
    await changesTo(watcher, 'a=2');
  });
});

interface Exhausted extends AsyncDisposable {
  readonly wrapper: readonly string[];
  /** The user id for which the limit is exhausted; empty for any. */
  readonly user: string;
}

/** Leaves a process without inotify resources: by a limit of its own or, where that is not permitted, by using all of them. */
async function exhaust(limit: 'max_inotify_instances' | 'max_inotify_watches', tree: RuleTree): Promise<Exhausted> {
  const setLimit = `echo 0 > /proc/sys/user/${limit}`;
  try {
    execFileSync('unshare', ['-Ur', 'sh', '-c', setLimit], { stdio: 'ignore' });
    const wrapper = ['unshare', '-Ur', 'sh', '-c', `${setLimit} && exec "$@"`, 'sh'];
    return { wrapper, user: '', [Symbol.asyncDispose]: () => Promise.resolve() };
  } catch {
    // On this machine only privileged processes may set the limits of others.
  }
  // Each process holds one inotify instance; the first one that gets none prints an error.
  const limitOfUser = Number(readFileSync('/proc/sys/fs/inotify/max_user_instances', 'utf8'));
  tree.write('followed', '');
  const holders = Array.from({ length: limitOfUser + 1 }, () =>
    spawn('tail', ['-f', tree.at('followed')], {
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(isRoot && { uid: UNPRIVILEGED }),
    }),
  );
  await Promise.race(holders.map(({ stderr }) => once(stderr, 'data')));
  return {
    wrapper: [],
    user: isRoot ? `${UNPRIVILEGED}` : '',
    [Symbol.asyncDispose]: async () => {
      const ends = holders.map((holder) => once(holder, 'exit'));
      for (const holder of holders) holder.kill();
      await Promise.all(ends);
    },
  };
}
