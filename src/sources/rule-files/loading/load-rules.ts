import { join } from 'node:path';
import { types } from 'node:util';
import { type Observable, defer, of } from 'rxjs';
import type { RuleFile } from '../../../rules/files/read-rule-files';
import { buildRuleset } from '../../../rules/ruleset';
import { type LoadedRules, loadInThread } from '../../rule-thread/load-in-thread';
import { checkFiles } from './check-files';
import type { RulesWorkerData } from './rules-worker';

export interface LoadOptions {
  readonly mergeDomainConfigs: boolean;
  /** The compiled module of the worker thread. */
  readonly workerFile?: string | undefined;
  /** Bytes up to which rule files are loaded without a worker thread. */
  readonly smallSet?: number | undefined;
}

const WORKER_FILE = join(__dirname, 'rules-worker.js');
/** Parsing and checking this many bytes blocks this thread for less time than starting a worker thread does. */
const SMALL_SET = 32 * 1024;

/**
 * Parses and checks rules and builds the ruleset. A small set is loaded synchronously, a large one in a worker thread so that
 * decisions continue meanwhile. Emits once and completes; never fails. Unsubscribing terminates the thread. The contents of
 * `files` may be transferred to the thread: the caller must not use them afterwards.
 */
export function loadRules(files: readonly RuleFile[], options: LoadOptions): Observable<LoadedRules> {
  const { mergeDomainConfigs, workerFile = WORKER_FILE, smallSet = SMALL_SET } = options;
  const bytes = files.reduce((sum, { content }) => sum + content.length, 0);
  if (bytes > smallSet) {
    const workerData: RulesWorkerData = { files, mergeDomainConfigs };
    return loadInThread(workerFile, { workerData, transferList: buffersOf(files) });
  }
  return defer(() => {
    const { configs, placeOf, errors, warnings } = checkFiles(files, mergeDomainConfigs);
    return of(
      errors.length > 0 ? { ruleset: undefined, errors } : { ruleset: buildRuleset(configs, placeOf), warnings },
    );
  });
}

/** The buffers that can be transferred instead of copied: those that hold one file and nothing else. Files without content share one. */
function buffersOf(files: readonly RuleFile[]): ArrayBuffer[] {
  const buffers: ArrayBuffer[] = [];
  for (const { content } of files) {
    const { buffer, byteLength } = content;
    if (byteLength > 0 && types.isArrayBuffer(buffer) && byteLength === buffer.byteLength) buffers.push(buffer);
  }
  return buffers;
}
