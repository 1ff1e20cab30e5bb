import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { Observable, defer, map, of, tap } from 'rxjs';
import type { RawRules } from '../../rules/files/read-rule-files';
import { summarizeProblem } from '../../rules/files/problems/problem';
import { MAX_FILE_BYTES } from '../../rules/files/size-limits';
import type { Settings } from '../../settings/settings';
import { type RuleRow, type Ruleset, RulesetBuilder, buildRuleset } from '../../rules/ruleset';
import type * as CheckResources from '../xds/check-resources';
import { type StoreAbilities, storeAbilities } from '../../settings/stores';
import { codeOf } from '../../text/thrown';
import { usableMemory } from '../usable-memory';
import { type CheckedRules, checkFiles } from './check-files';
import { type EffectSettings, beyondStore, ineffectiveRules } from './ineffective-rules';

export interface LoadOptions {
  readonly form: 'files' | 'response';
  readonly settings: Pick<Settings, 'mergeDomainConfig'> & EffectSettings;
  /** The compiled module of the worker thread. */
  readonly workerFile?: string | undefined;
  /** Bytes up to which rules are loaded without a worker thread. */
  readonly smallSet?: number | undefined;
  /** MiB of the heap of the worker thread; {@link checkMemory} by default. */
  readonly memory?: number | undefined;
  /** Called with valid rules and what they were loaded from, for another process that has to load the same ones. */
  readonly onLoaded?: ((ruleset: Ruleset, raw: RawRules) => void) | undefined;
}

/** What the thread checks. */
export interface ThreadInput extends Pick<LoadOptions, 'form'> {
  readonly raw: RawRules;
  readonly mergeDomainConfigs: boolean;
}

/** From the thread: first whether the rules are valid. Only then do chunks follow; an empty one is the last. */
export type RulesMessage =
  | ({ readonly kind: 'checked' } & Omit<CheckedRules, 'configs'>)
  | { readonly kind: 'chunk'; readonly rows: readonly RuleRow[] };

export interface ValidRules {
  readonly ruleset: Ruleset;
  readonly warnings: readonly string[];
}

/** The outcome of loading rules: a ruleset, or lines that describe the errors. */
export type LoadedRules =
  | ValidRules
  | {
      readonly ruleset: undefined;
      readonly errors: readonly string[];
      readonly report?: readonly string[] | undefined;
      /** Whether the thread failed instead of the rules, which may therefore be valid: they are to be loaded again. */
      readonly isUnchecked?: boolean;
    };

const WORKER_FILE = join(__dirname, 'rule-thread.js');
/** Checking this many bytes blocks this thread for less time than starting a worker thread does. */
const SMALL_SET = { files: 32 * 1024, response: 16 * 1024 };
const MIB = 1024 * 1024;
/**
 * How many times their size rules may take of the heap of the thread: most take 6 to 9 times, and those that need the
 * YAML library 80 to 100 times. The copies of their bytes and the ruleset come on top: 10 to 16 times in all (`npm run
 * bench:rules`).
 */
const HEAP_FACTOR = 9;
/** Less than V8's 48 MiB: what rules are read into survives, so that more room for young objects saves no work. */
const YOUNG_MIB = 12;

/**
 * The memory of the thread's heap, in MiB: what the largest file may take, also for fewer bytes; and half of what this
 * process may use, as the other half is for the ruleset and for decisions. V8 ends the thread when many small objects
 * exceed it, as those of a document do; a single large one that exceeds it can end the process.
 */
export function checkMemory(bytes: number, usable = usableMemory()): number {
  return Math.floor(Math.min(HEAP_FACTOR * Math.max(bytes, MAX_FILE_BYTES), usable / 2) / MIB);
}

/**
 * Checks rules and builds the ruleset. A small set is loaded synchronously, a large one in a worker thread so that
 * decisions continue meanwhile. Emits once and completes; never fails. Unsubscribing terminates the thread.
 */
export function loadRules(raw: RawRules, options: LoadOptions): Observable<LoadedRules> {
  const { form, settings, workerFile = WORKER_FILE, smallSet = SMALL_SET[form], onLoaded } = options;
  const bytes = raw.reduce((sum, { content }) => sum + content.length, 0);
  const input: ThreadInput = { raw, form, mergeDomainConfigs: settings.mergeDomainConfig };
  const { memory = checkMemory(bytes) } = options;
  const loaded$ =
    bytes > smallSet ? loadInThread(workerFile, input, { bytes, memory }) : defer(() => of(loadHere(input)));
  return loaded$.pipe(
    map((loaded) => withinAbilities(loaded, storeAbilities(settings))),
    map((loaded) => {
      if (loaded.ruleset === undefined) return loaded;
      return { ...loaded, warnings: [...loaded.warnings, ...ineffectiveRules(loaded.ruleset, settings)] };
    }),
    tap(({ ruleset }) => ruleset !== undefined && onLoaded?.(ruleset, raw)),
  );
}

/** Rejects rules of which one needs what the store cannot do. */
function withinAbilities(loaded: LoadedRules, can: StoreAbilities): LoadedRules {
  const problem = loaded.ruleset && beyondStore(loaded.ruleset, can);
  return problem === undefined ? loaded : { ruleset: undefined, errors: [summarizeProblem(problem)] };
}

function loadHere(input: ThreadInput): LoadedRules {
  const { configs, errors, report, warnings } = checkRules(input);
  return errors.length > 0 ? { ruleset: undefined, errors, report } : { ruleset: buildRuleset(configs), warnings };
}

export function checkRules({ raw, form, mergeDomainConfigs }: ThreadInput): CheckedRules {
  if (form === 'files') return checkFiles(raw, mergeDomainConfigs);
  // Only then are the 28 modules of the protocol loaded: a thread that reads files would take about 45 ms longer.
  const { checkResources } = require('../xds/check-resources') as typeof CheckResources;
  return checkResources(raw[0]?.content ?? new Uint8Array(), mergeDomainConfigs);
}

/**
 * Parses and checks rules in a worker thread, so that decisions continue meanwhile, and builds the ruleset from the
 * chunks that the thread transfers. Emits once and completes; never fails. Unsubscribing terminates the thread.
 *
 * @param module the path of the thread's compiled module; it sends a {@link RulesMessage} first, and then one for each
 * message
 * @param size the bytes of the rules, and the MiB of the heap
 */
function loadInThread(
  module: string,
  input: ThreadInput,
  { bytes, memory }: { readonly bytes: number; readonly memory: number },
): Observable<LoadedRules> {
  return new Observable((subscriber) => {
    const builder = new RulesetBuilder();
    let warnings: readonly string[] = [];
    const resourceLimits = { maxOldGenerationSizeMb: memory, maxYoungGenerationSizeMb: YOUNG_MIB };
    const worker = new Worker(module, { resourceLimits });
    // Not `workerData`, which the thread would keep until its end.
    worker.postMessage(input);
    function finish(result: LoadedRules) {
      subscriber.next(result);
      subscriber.complete();
    }
    function fail(reason: string, isUnchecked: boolean) {
      const errors = [`cannot check the rules: ${reason}`];
      finish({ ruleset: undefined, errors, ...(isUnchecked && { isUnchecked }) });
    }
    worker.on('message', (message: RulesMessage) => {
      if (message.kind === 'checked') {
        const { errors, report } = message;
        if (errors.length > 0) return finish({ ruleset: undefined, errors, report });
        warnings = message.warnings;
      } else if (message.rows.length === 0) {
        return finish({ ruleset: builder.done(), warnings });
      } else {
        builder.addRows(message.rows);
        collectGarbage({ type: 'minor' });
      }
      worker.postMessage('next');
    });
    worker.on('error', (error) => {
      const code = codeOf(error);
      // Not retried: these rules would need as much memory again.
      if (code === 'ERR_WORKER_OUT_OF_MEMORY') fail(outOfMemory(bytes, memory), false);
      // Other errors were thrown by the check, which would throw them again for the same rules.
      else fail(error.message, code.startsWith('ERR_WORKER_'));
    });
    worker.on('exit', (code) => fail(`the worker thread exited with code ${code}`, true));
    return () => void worker.terminate();
  });
}

/**
 * Collects garbage of this thread. After each chunk of rules, the young objects: all rules that are built stay alive,
 * so that a collection that V8 begins by itself, when 16 MiB are full, copies them for up to 40 ms, in which no call is
 * decided; after a chunk it is a millisecond (`npm run bench:reload`). To keep V8's room for young objects small
 * instead costs decisions a tenth of their CPU time.
 */
export function collectGarbage(options?: CollectOptions): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as typeof collect & {};
  }
  collect(options);
}

/** Without one: all objects. */
interface CollectOptions {
  readonly type: 'minor';
}
/** Made at the first use. */
let collect: ((options?: CollectOptions) => void) | undefined;

function outOfMemory(bytes: number, memory: number): string {
  const advice = memory < checkMemory(bytes, Infinity) ? ', or give this process more memory' : '';
  const plain = 'write them without anchors and tags, which takes a tenth';
  return (
    `${bytes} bytes of rules need more than the ${memory} MiB that checking them may take: write fewer ` +
    `rules, ${plain}${advice}`
  );
}
