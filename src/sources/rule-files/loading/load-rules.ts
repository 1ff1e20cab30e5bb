import { join } from 'node:path';
import { type Observable, defer, of, tap } from 'rxjs';
import type { RuleFile } from '../../../rules/files/read-rule-files';
import { type Ruleset, buildRuleset } from '../../../rules/ruleset';
import { type LoadedRules, loadInThread } from '../../rule-thread/load-in-thread';
import { checkFiles } from './check-files';
import type { RulesWorkerData } from './rules-worker';

export interface LoadOptions {
  readonly mergeDomainConfigs: boolean;
  /** The compiled module of the worker thread. */
  readonly workerFile?: string | undefined;
  /** Bytes up to which rule files are loaded without a worker thread. */
  readonly smallSet?: number | undefined;
  /** Called with valid rules and what they were loaded from, for another process that has to load the same ones. */
  readonly onLoaded?: ((ruleset: Ruleset, files: readonly RuleFile[]) => void) | undefined;
}

const WORKER_FILE = join(__dirname, 'rules-worker.js');
/** Parsing and checking this many bytes blocks this thread for less time than starting a worker thread does. */
const SMALL_SET = 32 * 1024;

/**
 * Parses and checks rules and builds the ruleset. A small set is loaded synchronously, a large one in a worker thread so that
 * decisions continue meanwhile. Emits once and completes; never fails. Unsubscribing terminates the thread.
 */
export function loadRules(files: readonly RuleFile[], options: LoadOptions): Observable<LoadedRules> {
  const { mergeDomainConfigs, workerFile = WORKER_FILE, smallSet = SMALL_SET, onLoaded } = options;
  const bytes = files.reduce((sum, { content }) => sum + content.length, 0);
  const workerData: RulesWorkerData = { files, mergeDomainConfigs };
  const loaded$ = bytes > smallSet ? loadInThread(workerFile, { workerData }) : defer(() => of(load(workerData)));
  return loaded$.pipe(tap(({ ruleset }) => ruleset !== undefined && onLoaded?.(ruleset, files)));
}

function load({ files, mergeDomainConfigs }: RulesWorkerData): LoadedRules {
  const { configs, placeOf, errors, warnings } = checkFiles(files, mergeDomainConfigs);
  return errors.length > 0 ? { ruleset: undefined, errors } : { ruleset: buildRuleset(configs, placeOf), warnings };
}
