import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { MAX_FILES, MAX_FOLDERS } from '../../../src/rules/files/size-limits';
import { rules } from '../../support/data/rule-tree';
import { until } from '../../support/waiting/until';
import { FILES, SWAPS } from './swapping-process';
import {
  AT_ONCE,
  Files,
  MODES,
  NEVER,
  type Scenario,
  type Step,
  WatchedRules,
  expectEvents,
  expectOneEvent,
  fileOptions,
  swap,
} from './watched-rules';

const HOOK = `${__dirname}/../../support/processes/typescript-hook.cjs`;
const RELEASES = 'for n in 1 2 3; do put releases/$n/config/a $n; done; ln -s releases/1 current';

/**
 * A separate process that runs a TypeScript module of the tests, for tests that need to signal or wrap a process. It
 * reports in lines on standard output.
 */
class TypeScriptProcess {
  readonly #child: ChildProcess;
  readonly #unread: string[] = [];
  #hasEnded = false;

  /** @param wrapper a program and its arguments that starts Node, such as `unshare -Ur` */
  constructor(module: string, args: readonly string[], wrapper: readonly string[] = []) {
    const node = [process.execPath, '--require', HOOK, module, ...args];
    const [program = '', ...rest] = [...wrapper, ...node];
    const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child.once('close', () => (this.#hasEnded = true));
    createInterface(child.stdout).on('line', (line) => this.#unread.push(line));
  }

  /** The next line of its standard output. */
  line(): Promise<string> {
    return until('the process writes a line', () => {
      if (this.#hasEnded && this.#unread.length === 0) throw new Error('the process ended without another line');
      return this.#unread.shift();
    });
  }

  say(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** How it ended by itself: its exit code, or the signal that ended it. */
  async end(): Promise<unknown> {
    await until('the process ends', () => this.#hasEnded);
    return this.#child.exitCode ?? this.#child.signalCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.end();
  }
}

describe.each(MODES)('the rule file source, $mode, reads the rules again when', ({ watchRoot }) => {
  it.concurrent.each<Scenario>([
    {
      when: 'the link that leads to them is removed and is back',
      given: RELEASES,
      root: 'current',
      steps: [
        ['rm current', 'rejected: the rule folder ~/current/config does not exist: there is nothing at ~/current'],
        ['ln -s releases/2 current', 'a=2'],
      ],
      edited: 'releases/2/config/a',
    },
    {
      when: 'a link is switched back and forth in a burst, once',
      given: RELEASES,
      root: 'current',
      steps: [['for to in 2 3 1 3 2; do ln -sfn releases/$to current; done', 'a=2']],
    },
    {
      when: 'a ConfigMap mount that keeps its old folders is swapped',
      given: swap('root/config', { a: 1 }, true),
      root: 'root',
      steps: [2, 3].map((limit): Step => [swap('root/config', { a: limit }), `a=${limit}`]),
    },
    {
      when: 'a ConfigMap mount is swapped whose `items` have a path, so that the rule folder is a link',
      given: swap('root', { 'config/a': 1 }),
      root: 'root',
      steps: [2, 3].map((limit): Step => [swap('root', { 'config/a': limit }), `a=${limit}`]),
    },
    {
      when: 'ConfigMap mounts in subfolders are swapped',
      given: (files) => ['b', 'c'].forEach((name) => files.swap(`root/config/${name}`, { [name]: 1 })),
      root: 'root',
      first: 'b=1 c=1',
      steps: [
        [swap('root/config/c', { c: 2 }), 'b=1 c=2'],
        [swap('root/config/b', { b: 2 }), 'b=2 c=2'],
      ],
    },
  ])('$when', (scenario) => expectEvents(scenario, { watchRoot }));

  it('the link that leads to them is switched to the same contents, with the same ruleset of another origin', async () => {
    using files = new Files();
    files.change(`${RELEASES}; put releases/2/config/a 1`);
    using watched = new WatchedRules({ root: files.at('current'), watchRoot });
    expect(await watched.next()).toBe('a=1');
    files.change('ln -sfn releases/2 current');
    expect(await watched.next()).toBe('a=1 again');
    const version = expect.stringContaining('/releases/2/config@');
    expect(watched.events.at(-1)).toMatchObject({
      origin: { source: `files in ${files.at('current/config')}`, version },
    });
  });

  it.concurrent('a folder was removed, created again and filled step by step, once', () =>
    expectOneEvent(['rm -r config; put config/a 2', 'put config/b 2', 'put config/c 2'], 'a=2 b=2 c=2', { watchRoot }),
  );
});

describe('the rule file source, RUNTIME_WATCH_ROOT=false,', () => {
  it.concurrent('emits one event when 200 files are created, or one is written 100 times in a row', () => {
    // Without other programs, which would stop the tests that run at the same time for seconds.
    function write(files: Files, times: number, contents: (number: number) => readonly [name: string, limit: number]) {
      for (let number = 1; number <= times; number += 1) {
        const [name, limit] = contents(number);
        files.write(`config/${name}.yaml`, rules(name, limit));
      }
    }
    const steps: Step[] = [
      [(files) => write(files, 200, (number) => [`f${number}`, 1]), /^(\S+ ?){201}$/],
      [(files) => write(files, 100, (number) => ['a', number]), /^a=100 /],
    ];
    return expectEvents({ steps });
  });

  const LINES = ['descriptors:', '  - key: k', '    rate_limit: { unit: day, requests_per_unit: 2 }'];
  const APPENDED = LINES.map((line) => `echo "${line}" | tee -a config/[ac].yaml`);
  it.concurrent.each<[what: string, parts: readonly string[], after: string]>([
    ['a file that is replaced by an empty one', ['touch a.yaml; mv a.yaml config', 'put config/a 2'], 'a=2 b=1'],
    ['a file that is not valid before it is whole', ['echo "domain: [" >config/a.yaml', 'put config/a 2'], 'a=2 b=1'],
    ['a file written in parts, each a valid rule file', ['echo "domain: a" >config/a.yaml', ...APPENDED], 'a=2 b=1'],
    [
      'a new file that is written in parts',
      ['rm config/a.yaml; echo "domain: c" >config/c.yaml', ...APPENDED],
      'b=1 c=2',
    ],
  ])('ignores the intermediate state of %s', (_, parts, after) => expectOneEvent(parts, after, {}));

  it.each([
    ['rule files', MAX_FILES, 'seq -f "config/more/%.0f.yaml" '],
    ['subfolders', MAX_FOLDERS, 'seq -f "config/more/%.0f/a.txt" '],
  ])('rejects a folder with too many %s until there are fewer', (what, limit, names) => {
    const given = `put config/a 1; ${names} 0 ${limit} | xargs dirname | sort -u | xargs mkdir -p; ${names} 0 ${limit} | xargs touch`;
    const first = `rejected: the rule folder ~/config has more than ${limit} ${what}`;
    return expectEvents({ given, first, steps: [['mv config/more .', 'a=1']] });
  });
});

/** So often that many looks coincide with a switch. */
const FREQUENT_LOOKS = { poll: 5, hold: NEVER, forced: NEVER, quiet: 1, late: NEVER };

describe.each(MODES)('the rule file source while another process switches the files, $mode,', ({ watchRoot }) => {
  it.each([
    { what: 'a ConfigMap mount', how: 'mount', root: 'root' },
    { what: 'a ConfigMap mount that keeps its old folders', how: 'keeping mount', root: 'root' },
    { what: 'a link between folders, of which the old one is removed', how: 'link', root: 'root/current' },
  ])('never mixes the files of two moments: $what', async ({ how, root }) => {
    using files = new Files();
    await using swapping = new TypeScriptProcess(`${__dirname}/swapping-process.ts`, [files.at('root'), how]);
    expect(await swapping.line()).toBe('ready');
    using watched = new WatchedRules({ root: files.at(root), watchRoot, timing: FREQUENT_LOOKS });
    expect(await watched.next()).toMatch(/=1$/);
    swapping.say('go');
    const limits: string[] = [];
    while (!limits.includes(`${SWAPS}`)) {
      const event = await watched.next();
      expect(event.split(' ').filter((word) => word.includes('='))).toHaveLength(FILES);
      limits.push(Array.from(new Set(event.match(/(?<==)\d+/g))).join());
    }
    expect(limits.filter((each) => !/^\d+$/.test(each))).toEqual([]);
  });
});

/** A user id without the permissions of root, which no other process is expected to have. */
const UNPRIVILEGED = process.getuid?.() === 0 ? '65533' : '';

describe('a process that watches rule files', () => {
  let files: Files;
  beforeEach(() => {
    files = new Files();
    files.change('chmod 755 .; put root/config/a 1');
  });
  afterEach(() => files[Symbol.dispose]());

  function start(more: object = {}, user = UNPRIVILEGED, wrapper: readonly string[] = []) {
    const options = { ...fileOptions({ root: files.at('root') }), ...more };
    return new TypeScriptProcess(`${__dirname}/rules-process.ts`, [JSON.stringify(options), user], wrapper);
  }
  async function next(watcher: TypeScriptProcess) {
    return (JSON.parse(await watcher.line()) as { readonly event: string }).event;
  }
  /** States between the steps of a change may be reported, too. */
  async function changesTo(watcher: TypeScriptProcess, expected: string) {
    let seen = await next(watcher);
    while (/^(?:rejected: |no rules$)/.test(seen)) seen = await next(watcher);
    expect(seen).toBe(expected);
  }

  describe.each(MODES)('$mode,', ({ watchRoot }) => {
    it('exits by itself after unsubscribing while it waits, looks, waits to look again, or loads in a thread', async () => {
      await using waiting = start({ watchRoot });
      await using looking = start({ watchRoot });
      looking.say('stop');
      await using holding = start({ watchRoot, timing: AT_ONCE });
      for (const each of [waiting, holding]) expect(await next(each)).toBe('a=1');
      waiting.say('stop');
      files.change('rm -r root/config; put root/config/b 1');
      holding.say('stop');
      files.write('slow-worker.cjs', 'console.log("started"); setInterval(() => undefined, 1000);');
      await using loading = start({ watchRoot, smallSet: 0, workerFile: files.at('slow-worker.cjs') });
      expect(await loading.line()).toBe('started');
      loading.say('stop');
      for (const each of [waiting, looking, holding, loading]) expect(await each.end()).toBe(0);
    });

    it('rejects the rules while a permission is missing, and emits them again when it is back', async () => {
      const config = files.at('root/config');
      const deep = files.at('root/config/deep/er');
      files.change('put root/config/deep/er/b 1');
      for (const folder of [config, deep]) chmodSync(folder, 0o000);
      await using watcher = start({ watchRoot });
      expect(await next(watcher)).toMatch(/^rejected: .*: permission denied \(EACCES\) at .*\/config$/);
      chmodSync(config, 0o755);
      expect(await next(watcher)).toMatch(/^rejected: .*: permission denied \(EACCES\) at .*\/er$/);
      chmodSync(deep, 0o755);
      expect(await next(watcher)).toBe('a=1 b=1');
      const file = files.at('root/config/a.yaml');
      for (const path of [config, files.at('root'), ...(watchRoot ? [] : [file])]) {
        chmodSync(path, 0o000);
        expect(await next(watcher)).toMatch(/^rejected: .*: permission denied \(EACCES\) at /);
        chmodSync(path, 0o755);
        expect(await next(watcher)).toBe('a=1 b=1');
      }
      files.change('mv root before; put root/config/a 3');
      await changesTo(watcher, 'a=3');
    });

    it.each(['max_inotify_instances', 'max_inotify_watches'])(
      'detects changes by polling when %s are exhausted, and warns about it once',
      async (limit) => {
        await using exhausted = await exhaust(limit, files);
        await using watcher = start({ watchRoot }, exhausted.user, exhausted.wrapper);
        // Once, whatever is changed and whatever cannot be watched.
        const warning = /^warning: changes of rule files are noticed only by polling (EMFILE|ENOSPC): fs\.inotify/;
        expect([await next(watcher), await next(watcher)].sort()).toEqual(['a=1', expect.stringMatching(warning)]);
        files.change('mv root before; put root/config/a 2');
        await changesTo(watcher, 'a=2');
      },
    );
  });
});

/**
 * Leaves a process without inotify resources: by a limit of its own or, where that is not permitted, by using all of
 * them. `user` is the user id for which the limit is exhausted; empty for any.
 */
async function exhaust(limit: string, files: Files) {
  const setLimit = `echo 0 > /proc/sys/user/${limit}`;
  // On some machines only privileged processes may set the limits of others.
  if (spawnSync('unshare', ['-Ur', 'sh', '-c', setLimit]).status === 0) {
    const wrapper = ['unshare', '-Ur', 'sh', '-c', `${setLimit} && exec "$@"`, 'sh'];
    return { wrapper, user: '', [Symbol.asyncDispose]: () => Promise.resolve() };
  }
  // Each process holds one inotify instance; the first one that gets none prints an error.
  const limitOfUser = Number(readFileSync('/proc/sys/fs/inotify/max_user_instances', 'utf8'));
  files.write('followed', '');
  const holders = Array.from({ length: limitOfUser + 1 }, () =>
    spawn('tail', ['-f', files.at('followed')], {
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(UNPRIVILEGED !== '' && { uid: Number(UNPRIVILEGED) }),
    }),
  );
  await Promise.race(holders.map(({ stderr }) => once(stderr, 'data')));
  return {
    wrapper: [],
    user: UNPRIVILEGED,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(holders.map((holder) => (holder.kill(), once(holder, 'exit'))));
    },
  };
}
