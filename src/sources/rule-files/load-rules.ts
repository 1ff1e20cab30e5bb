import { join } from 'node:path';
import { types } from 'node:util';
import { type Observable, defer, of } from 'rxjs';
import type { RuleFile } from '../../rules/files/read-rule-files';
import { buildRuleset } from '../../rules/ruleset';
import { type LoadedRules, loadInThread } from '../rule-thread/load-in-thread';
import { checkFiles } from './check-files';
import type { RulesWorkerData } from './rules-worker';

export interface LoadOptions {
  readonly mergeDomainConfigs: boolean;
  /** The compiled module of the worker thread. */
  readonly workerFile?: string | undefined;
  /** Bytes of rule files up to which no thread is started for them. */
  readonly smallSet?: number | undefined;
}

const WORKER_FILE = join(__dirname, 'rules-worker.js');
/** Reading and checking this much takes less time than starting a thread takes of this one. */
const SMALL_SET = 32 * 1024;

/**
 * Reads, checks and builds rules. A small set is done at once, a large one in a thread of its own, so that decisions go on
 * meanwhile. Emits once and completes; never fails. Unsubscribing ends the thread. Files handed in may be taken away: their
 * contents belong to the loading from here on.
 */
export function loadRules(files: readonly RuleFile[], options: LoadOptions): Observable<LoadedRules> {
  const { mergeDomainConfigs, workerFile = WORKER_FILE, smallSet = SMALL_SET } = options;
  const bytes = files.reduce((sum, { content }) => sum + content.length, 0);
  if (bytes > smallSet) {
    const workerData: RulesWorkerData = { files, mergeDomainConfigs };
    return loadInThread(workerFile, { workerData, transferList: buffersOf(files) });
  }
  return defer(() => {
    const { configs, errors, warnings } = checkFiles(files, mergeDomainConfigs);
    return of(errors.length > 0 ? { ruleset: undefined, errors } : { ruleset: buildRuleset(configs), warnings });
  });
}

/** Memory that can change hands instead of being copied: what belongs to one file alone. */
function buffersOf(files: readonly RuleFile[]): ArrayBuffer[] {
  const buffers: ArrayBuffer[] = [];
  for (const { content } of files) {
    if (types.isArrayBuffer(content.buffer) && content.byteLength === content.buffer.byteLength)
      buffers.push(content.buffer);
  }
  return buffers;
}
