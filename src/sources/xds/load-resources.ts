import { join } from 'node:path';
import { type Observable, defer, of } from 'rxjs';
import { buildRuleset } from '../../rules/ruleset';
import { type LoadedRules, loadInThread } from '../rule-thread/load-in-thread';
import { checkResources } from './check-resources';
import type { ResourcesWorkerData } from './resources-worker';

export interface LoadResourcesOptions {
  /** MERGE_DOMAIN_CONFIG */
  readonly mergeDomainConfigs: boolean;
  /** The compiled module of the worker thread. */
  readonly workerFile?: string | undefined;
  /** Bytes of a response up to which no thread is started for it. */
  readonly smallSet?: number | undefined;
}

const WORKER_FILE = join(__dirname, 'resources-worker.js');
/** Decoding and checking this much takes less time than starting a thread takes of this one. */
const SMALL_SET = 16 * 1024;

/**
 * Decodes, checks and builds the rules of a response: a small one at once, a large one in a thread of its own, so that decisions
 * go on meanwhile. Emits once and completes; never fails. Unsubscribing ends the thread.
 */
export function loadResources(response: Uint8Array, options: LoadResourcesOptions): Observable<LoadedRules> {
  const { mergeDomainConfigs, workerFile = WORKER_FILE, smallSet = SMALL_SET } = options;
  return defer(() => {
    if (response.length > smallSet) {
      // A copy, because a message may lie in memory that others use.
      const message = new Uint8Array(response);
      const workerData: ResourcesWorkerData = { message, mergeDomainConfigs };
      return loadInThread(workerFile, { workerData, transferList: [message.buffer] });
    }
    const { configs, errors, warnings } = checkResources(response, mergeDomainConfigs);
    return of(errors.length > 0 ? { ruleset: undefined, errors } : { ruleset: buildRuleset(configs), warnings });
  });
}
