import { join } from 'node:path';
import { type Observable, defer, of } from 'rxjs';
import { buildRuleset } from '../../../rules/ruleset';
import { type LoadedRules, loadInThread } from '../../rule-thread/load-in-thread';
import { checkResources } from './check-resources';
import type { ResourcesWorkerData } from './resources-worker';

export interface LoadResourcesOptions {
  /** MERGE_DOMAIN_CONFIG */
  readonly mergeDomainConfigs: boolean;
  /** The compiled module of the worker thread. */
  readonly workerFile?: string | undefined;
  /** Bytes up to which a response is loaded without a worker thread. */
  readonly smallSet?: number | undefined;
}

const WORKER_FILE = join(__dirname, 'resources-worker.js');
/** Decoding and checking this many bytes blocks this thread for less time than starting a worker thread does. */
const SMALL_SET = 16 * 1024;

/**
 * Decodes and checks the rules of a response and builds the ruleset: for a small response synchronously, for a large one in a
 * worker thread so that decisions continue meanwhile. Emits once and completes; never fails. Unsubscribing terminates the
 * thread.
 */
export function loadResources(response: Uint8Array, options: LoadResourcesOptions): Observable<LoadedRules> {
  const { mergeDomainConfigs, workerFile = WORKER_FILE, smallSet = SMALL_SET } = options;
  return defer(() => {
    if (response.length > smallSet) {
      // Copied, because the message may be a view of a buffer that is shared.
      const message = new Uint8Array(response);
      const workerData: ResourcesWorkerData = { message, mergeDomainConfigs };
      return loadInThread(workerFile, { workerData, transferList: [message.buffer] });
    }
    const { configs, placeOf, errors, warnings } = checkResources(response, mergeDomainConfigs);
    return of(
      errors.length > 0 ? { ruleset: undefined, errors } : { ruleset: buildRuleset(configs, placeOf), warnings },
    );
  });
}
