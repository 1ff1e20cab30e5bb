import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Subscription } from 'rxjs';
import type { Ruleset } from '../../../src/rules/ruleset';
import { readSettings } from '../../../src/settings/read-settings';
import {
  type RuleFileOptions,
  type RuleFileTiming,
  ruleFileSource,
} from '../../../src/sources/rule-files/rule-file-source';
import type { RuleEvent, RuleOrigin, RuleSource } from '../../../src/streams/ports/rule-source';
import { RecordedLog } from '../../support/data/recorded-log';
import { ConfigMapMount, RuleTree, rules } from '../../support/data/rule-tree';
import { Arrivals } from '../../support/waiting/arrivals';

/** Longer than any test, in milliseconds. */
export const NEVER = 3_600_000;
/**
 * Short times for tests. Nothing of this process runs during a change of {@link Files}: two looks never find the same
 * half of it.
 */
export const QUICK: RuleFileTiming = { poll: 50, hold: 40, forced: NEVER, quiet: 10, late: NEVER };
/** For edits with pauses: the time is so long that the edit continues within it even on a slow machine. */
export const LONG_HOLD = { ...QUICK, hold: 4_000 };
/** Only what needs no second look is reported. */
export const AT_ONCE = { ...QUICK, hold: NEVER };
/** Only notifications of the file system cause looks, one of which is enough. */
export const HINTS_ONLY = { poll: NEVER, hold: 0, forced: NEVER, quiet: 1, late: NEVER };

/** The modes of RUNTIME_WATCH_ROOT. */
export const MODES = [
  { watchRoot: true, mode: 'RUNTIME_WATCH_ROOT=true' },
  { watchRoot: false, mode: 'RUNTIME_WATCH_ROOT=false' },
];
/** What rules are loaded with: domains are not merged, and the store has scripts. */
export const LOAD_SETTINGS = readSettings({}).settings;
export const WORKER_FILE = join(__dirname, '../../support/data/rule-thread-entry.cjs');

/** The options of a source that a test gives; for the others see {@link fileOptions}. */
export interface FileOptions extends Partial<Omit<RuleFileOptions, 'settings'>> {
  readonly root: string;
  readonly subdirectory?: string;
  readonly appDirectory?: string;
  readonly ignoreDotFiles?: boolean;
  readonly watchRoot?: boolean;
}

/** The options of a source for tests. */
export function fileOptions({
  root,
  subdirectory = '',
  appDirectory = 'config',
  ignoreDotFiles = false,
  watchRoot = false,
  ...more
}: FileOptions): RuleFileOptions {
  const settings = {
    ...LOAD_SETTINGS,
    runtimeRoot: root,
    runtimeSubdirectory: subdirectory,
    runtimeAppdirectory: appDirectory,
    runtimeIgnoredotfiles: ignoreDotFiles,
    runtimeWatchRoot: watchRoot,
  };
  return { settings, workerFile: WORKER_FILE, timing: QUICK, log: new RecordedLog(), ...more };
}

/** An event as one line: for each domain the limit of its first rule, for example `a=1 b=2`. */
export function summary(event: RuleEvent): string {
  if (event.kind === 'rejected') return `rejected: ${event.reason}`;
  const domains = Array.from(event.ruleset.domains, ([name, level]) => {
    const [rule] = [...level.rules()];
    return `${name}=${rule?.limit?.requestsPerUnit}`;
  });
  return domains.length === 0 ? 'no rules' : domains.join(' ');
}

/** A rule file `PATH.yaml` of a domain with the name of the file, and with one rule of this limit: `put PATH LIMIT`. */
const PUT = `put() {
  mkdir -p "$(dirname "$1")"
  printf 'domain: %s\\ndescriptors:\\n  - key: k\\n    rate_limit: { unit: second, requests_per_unit: %s }\\n' "$(basename "$1")" "$2" >"$1.yaml"
}`;

/** A change of files: commands of a shell, one of which is `put PATH LIMIT`, or a function. */
export type Change = string | ((files: Files) => unknown);

/** Files on disk, and the changes that operators and tools make. Nothing of this process runs during a change. */
export class Files extends RuleTree {
  readonly #mounts = new Map<string, ConfigMapMount>();

  change(change: Change): void {
    if (typeof change !== 'string') change(this);
    else execFileSync('sh', ['-ec', `${PUT}\n${change}`], { cwd: this.base });
  }

  /** Swaps the rule files of a ConfigMap that is mounted at this path; `limits` are those of the files by path. */
  swap(path: string, limits: Readonly<Record<string, number>>, keepsOldFolders = false): void {
    const mount = this.#mounts.get(path) ?? new ConfigMapMount(this, path, keepsOldFolders);
    this.#mounts.set(path, mount);
    const files = Object.entries(limits).map(([name, limit]) => [`${name}.yaml`, rules(basename(name), limit)]);
    mount.publish(Object.fromEntries(files));
  }
}

/** Swaps the files of a mounted ConfigMap: see {@link Files.swap}. */
export function swap(...args: Parameters<Files['swap']>): Change {
  return (files) => files.swap(...args);
}

/** A subscription to a rule source, and the events that it has received. */
export class RuleEvents implements Disposable {
  readonly events: RuleEvent[] = [];
  /** How the source has ended, which it never should. */
  readonly ends: string[] = [];
  readonly #arrivals = new Arrivals<RuleEvent>('an event');
  readonly #rulesets = new Set<Ruleset>();
  readonly #subscription: Subscription;

  constructor({ events$ }: RuleSource) {
    this.#subscription = events$.subscribe({
      next: (event) => {
        this.events.push(event);
        this.#arrivals.add(event);
      },
      error: () => this.ends.push('failed'),
      complete: () => this.ends.push('completed'),
    });
  }

  get hasUnread(): boolean {
    return this.#arrivals.hasUnread;
  }

  /** The warnings of the last event. */
  get warnings(): readonly string[] {
    const last = this.events.at(-1);
    return last?.kind === 'loaded' ? last.warnings : [];
  }

  /**
   * Waits for the next event. Returns its summary, and whether its ruleset was emitted before (`again`), or its event
   * (`repeated`).
   */
  async next(): Promise<string> {
    const event = await this.#arrivals.next();
    const isKnown = event.kind === 'loaded' && this.#rulesets.has(event.ruleset);
    if (event.kind === 'loaded') this.#rulesets.add(event.ruleset);
    return `${summary(event)}${event.isRepeated === true ? ' repeated' : isKnown ? ' again' : ''}`;
  }

  /** The origin of the last event. */
  get origin(): RuleOrigin | undefined {
    const last = this.events.at(-1);
    return last?.kind === 'loaded' ? last.origin : undefined;
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}

/** A subscription to a rule file source. */
export class WatchedRules extends RuleEvents {
  readonly #options: RuleFileOptions;

  constructor(options: FileOptions) {
    super(ruleFileSource(fileOptions(options)));
    this.#options = fileOptions(options);
  }

  /** Waits until every change so far has had the time to be reported, and returns the events that nothing has read. */
  async rest(): Promise<readonly string[]> {
    await noticed(this.#options, (tree) => tree.write('1/config/a.yaml', rules('a', 3)));
    const unread: string[] = [];
    while (this.hasUnread) unread.push(await this.next());
    return unread;
  }

  /** Waits until the changes so far have been looked at: those of an edit in place are not reported yet. */
  async glance(): Promise<void> {
    await noticed(this.#options, (tree) => tree.switchLink('current', '2'));
  }
}

/** Waits until another source, with the same times, has reported this change of other files. */
async function noticed({ timing }: RuleFileOptions, change: (tree: RuleTree) => void): Promise<void> {
  using tree = new RuleTree();
  for (const number of [1, 2]) tree.write(`${number}/config/a.yaml`, rules('a', number));
  tree.link('current', '1');
  using witness = new WatchedRules({ root: tree.at('current'), ...(timing && { timing }) });
  await witness.next();
  change(tree);
  await witness.next();
}

/** A change, and the events that report it: none when it changes nothing. */
export type Step = readonly [change: Change, ...events: readonly (string | RegExp)[]];

/** Changes of files on disk, and what becomes of them. */
export interface Scenario {
  /** Completes the title of the test. */
  readonly when: string;
  /** The files at the start; `put config/a 1` by default. */
  readonly given?: Change;
  /** The path of RUNTIME_ROOT; the rules are in its folder `config`. */
  readonly root?: string;
  /** The first event; `a=1` by default. In expected texts, `~` is the path of all files. */
  readonly first?: string | RegExp;
  readonly steps: readonly Step[];
  /** A rule file, without `.yaml`, that is edited at last: only without RUNTIME_WATCH_ROOT, this is reported. */
  readonly edited?: string;
}

/** Makes the changes one after the other, and expects their events and no others. */
export async function expectEvents(
  scenario: Omit<Scenario, 'when'>,
  options: Partial<FileOptions> = {},
): Promise<void> {
  const { given = 'put config/a 1', root = '.', first = 'a=1', steps, edited } = scenario;
  using files = new Files();
  files.change(given);
  using watched = new WatchedRules({ root: files.at(root), ...options });
  const start: Step = ['', first];
  const edit: Step = options.watchRoot === true ? [`put ${edited} 99`] : [`put ${edited} 99`, /=99$/];
  for (const [change, ...expected] of [start, ...steps, ...(edited === undefined ? [] : [edit])]) {
    files.change(change);
    for (const text of expected) {
      const event = (await watched.next()).replaceAll(files.base, '~');
      expect([change, event]).toEqual([change, typeof text === 'string' ? text : expect.stringMatching(text)]);
    }
    if (expected.length === 0) expect([change, await watched.rest()]).toEqual([change, []]);
  }
  expect(await watched.rest()).toEqual([]);
}

/**
 * Makes the changes one after the other, each after the one before has been looked at, and expects one event in the
 * end.
 */
export async function expectOneEvent(
  parts: readonly Change[],
  event: string,
  options: Partial<FileOptions>,
): Promise<void> {
  using files = new Files();
  files.change('put config/a 1; put config/b 1');
  // While a file is open, no file system gives its inode number to a new one.
  const before = openSync(files.at('config/a.yaml'), 'r');
  using watched = new WatchedRules({ root: files.base, timing: LONG_HOLD, ...options });
  expect(await watched.next()).toBe('a=1 b=1');
  for (const part of parts) {
    files.change(part);
    await watched.glance();
  }
  expect(await watched.next()).toBe(event);
  closeSync(before);
}
