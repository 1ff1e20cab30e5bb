import { join } from 'node:path';
import { types } from 'node:util';
import { Worker } from 'node:worker_threads';
import { Observable, defer, of } from 'rxjs';
import type { RuleFile } from '../../rules/files/read-rule-files';
import { type Ruleset, buildRuleset } from '../../rules/ruleset';
import { checkFiles } from './check-files';
import { RowsBuilder } from './rule-rows';
import type { RulesWorkerData, RulesWorkerMessage } from './rules-worker';

/** What became of rule files: a ruleset, or lines that say what is wrong with them. */
export type LoadedRules =
  | { readonly ruleset: Ruleset; readonly warnings: readonly string[] }
  | { readonly ruleset: undefined; readonly errors: readonly string[] };

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
  if (bytes > smallSet) return loadInWorker({ files, mergeDomainConfigs }, workerFile);
  return defer(() => {
    const { configs, errors, warnings } = checkFiles(files, mergeDomainConfigs);
    return of(errors.length > 0 ? { ruleset: undefined, errors } : { ruleset: buildRuleset(configs), warnings });
  });
}

function loadInWorker(workerData: RulesWorkerData, workerFile: string): Observable<LoadedRules> {
  return new Observable((subscriber) => {
    const builder = new RowsBuilder();
    let warnings: readonly string[] = [];
    const worker = new Worker(workerFile, { workerData, transferList: buffersOf(workerData.files) });
    const finish = (result: LoadedRules) => {
      subscriber.next(result);
      subscriber.complete();
    };
    const fail = (why: string) => finish({ ruleset: undefined, errors: [`the rules could not be checked: ${why}`] });
    worker.on('message', (message: RulesWorkerMessage) => {
      if (message.kind === 'checked') {
        if (message.errors.length > 0) return finish({ ruleset: undefined, errors: message.errors });
        warnings = message.warnings;
      } else if (message.rows.length === 0) {
        return finish({ ruleset: builder.done(), warnings });
      } else {
        builder.add(message.rows);
      }
      worker.postMessage('more');
    });
    worker.on('error', (error) => fail(error.message));
    worker.on('exit', (code) => fail(`their thread ended with code ${code}`));
    return () => void worker.terminate();
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
