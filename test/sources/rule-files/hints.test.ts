// A file of its own, because its tests count the watches of this process.
import { until } from '../../support/waiting/until';
import { type Change, Files, HINTS_ONLY, MODES, type Step, WatchedRules, swap } from './watched-rules';

describe.each(MODES)('the rule file source, $mode, looks at once when the file system gives notice of', (mode) => {
  const { watchRoot } = mode;
  function watches(): number {
    return process.getActiveResourcesInfo().filter((resource) => resource === 'FSEventWrap').length;
  }

  /** Makes each change when so many folders are watched, and expects an event without a second look. */
  async function expectNotice(given: Change, steps: readonly (readonly [watches: number, ...Step])[]): Promise<void> {
    using files = new Files();
    files.change(given);
    await until('the watches of other tests are closed', () => watches() === 0);
    using watched = new WatchedRules({ root: files.at('current'), watchRoot, timing: HINTS_ONLY });
    await watched.next();
    for (const [expected, change, event] of steps) {
      await until(`${expected} folders are watched`, () => watches() >= expected);
      files.change(change);
      expect([change, await watched.next()]).toEqual([change, event]);
    }
  }

  it('a switched link of the root', () =>
    expectNotice('put 1/config/a 1; put 2/config/a 2; ln -s 1 current', [
      [2, 'ln -sfn 2 current', 'a=2'],
      [2, 'ln -sfn 1 current', 'a=1'],
    ]));

  it('a swapped ConfigMap mount', () =>
    expectNotice(swap('current/config', { a: 1 }), [
      [3, swap('current/config', { a: 2 }), 'a=2'],
      [3, swap('current/config', { a: 3 }), 'a=3'],
    ]));

  if (watchRoot) return;
  it('files that are edited, replaced, created or given other permissions, also in subfolders', () =>
    expectNotice('put current/config/a 1; put current/config/deep/er/b 1', [
      [4, 'put current/config/a 2', 'a=2 b=1'],
      [4, 'put current/config/deep/er/b 2', 'a=2 b=2'],
      [4, 'put b 3; mv b.yaml current/config/deep/er', 'a=2 b=3'],
      [4, 'chmod 600 current/config/deep/er/b.yaml', 'a=2 b=3 repeated'],
      [4, 'put current/config/new/c 1', 'a=2 b=3 c=1'],
      [5, 'put current/config/new/c 2', 'a=2 b=3 c=2'],
      [5, 'rm -r current/config/deep', 'a=2 c=2'],
    ]));
});
