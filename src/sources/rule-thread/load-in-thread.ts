import { Worker, type WorkerOptions } from 'node:worker_threads';
import { Observable } from 'rxjs';
import type { Ruleset } from '../../rules/ruleset';
import type { RulesMessage } from './transfer-rules';
import { RowsBuilder } from './rule-rows';

/** What became of rules: a ruleset, or lines that say what is wrong with them. */
export type LoadedRules =
  | { readonly ruleset: Ruleset; readonly warnings: readonly string[] }
  | { readonly ruleset: undefined; readonly errors: readonly string[] };

/**
 * Has rules read and checked in a thread of their own, so that decisions go on meanwhile, and builds the ruleset of the pieces
 * that it hands over. Emits once and completes; never fails. Unsubscribing ends the thread.
 * @param module the compiled module of the thread; it calls `handOver`
 */
export function loadInThread(module: string, options: WorkerOptions): Observable<LoadedRules> {
  return new Observable((subscriber) => {
    const builder = new RowsBuilder();
    let warnings: readonly string[] = [];
    const worker = new Worker(module, options);
    function finish(result: LoadedRules) {
      subscriber.next(result);
      subscriber.complete();
    }
    function fail(why: string) {
      return finish({ ruleset: undefined, errors: [`the rules could not be checked: ${why}`] });
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
      worker.postMessage('more');
    });
    worker.on('error', (error) => fail(error.message));
    worker.on('exit', (code) => fail(`their thread ended with code ${code}`));
    return () => void worker.terminate();
  });
}
