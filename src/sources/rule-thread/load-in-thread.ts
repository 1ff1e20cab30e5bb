import { getHeapStatistics } from 'node:v8';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { Observable } from 'rxjs';
import type { Ruleset } from '../../rules/ruleset';
import type { RulesMessage } from './transfer-rules';
import { RowsBuilder } from '../../rules/rows/rule-rows';

/** The outcome of loading rules: a ruleset, or lines that describe the errors. */
export type LoadedRules =
  | { readonly ruleset: Ruleset; readonly warnings: readonly string[] }
  | {
      readonly ruleset: undefined;
      readonly errors: readonly string[];
      /** Whether the thread failed instead of the rules, which may therefore be valid: they are to be loaded again. */
      readonly isUnchecked?: boolean;
    };

const MIB = 1024 * 1024;
/**
 * The memory of the thread's heap, in MiB: enough for the largest rule files, and never more than this process may use. V8 ends the thread
 * when many small objects exceed it, as those of a document do; a single large one that exceeds it can end the process.
 */
const MAX_HEAP = Math.min(2048, Math.floor(getHeapStatistics().heap_size_limit / MIB));

const OUT_OF_MEMORY = 'they need too much memory: write fewer rules, or smaller files';

/**
 * Parses and checks rules in a worker thread, so that decisions continue meanwhile, and builds the ruleset from the chunks that
 * the thread transfers. Emits once and completes; never fails. Unsubscribing terminates the thread.
 *
 * @param module the path of the thread's compiled module; it calls `transferRules`
 */
export function loadInThread(module: string, options: WorkerOptions): Observable<LoadedRules> {
  return new Observable((subscriber) => {
    const builder = new RowsBuilder();
    let warnings: readonly string[] = [];
    const worker = new Worker(module, { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP }, ...options });
    function finish(result: LoadedRules) {
      subscriber.next(result);
      subscriber.complete();
    }
    function fail(reason: string, isUnchecked: boolean) {
      finish({
        ruleset: undefined,
        errors: [`cannot check the rules: ${reason}`],
        ...(isUnchecked && { isUnchecked }),
      });
    }
    worker.on('message', (message: RulesMessage) => {
      if (message.kind === 'checked') {
        if (message.errors.length > 0) return finish({ ruleset: undefined, errors: message.errors });
        warnings = message.warnings;
      } else if (message.rows.length === 0) {
        return finish({ ruleset: builder.done(), warnings });
      } else {
        builder.add(message.rows);
      }
      worker.postMessage('next');
    });
    worker.on('error', (error) => fail(isOutOfMemory(error) ? OUT_OF_MEMORY : error.message, isThreadFailure(error)));
    worker.on('exit', (code) => fail(`the worker thread exited with code ${code}`, true));
    return () => void worker.terminate();
  });
}

type WorkerError = Error & { readonly code?: unknown };

function isOutOfMemory({ code }: WorkerError): boolean {
  return code === 'ERR_WORKER_OUT_OF_MEMORY';
}

/** Other errors were thrown by the check, which would throw them again for the same rules. */
function isThreadFailure({ code }: WorkerError): boolean {
  return typeof code === 'string' && code.startsWith('ERR_WORKER_');
}
