import { join } from 'node:path';
import { type Observable, defer, of, tap } from 'rxjs';
import { type Ruleset, buildRuleset } from '../../../rules/ruleset';
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
  /** Called with valid rules and the response, for another process that has to load the same ones. */
  readonly onLoaded?: ((ruleset: Ruleset, response: Uint8Array) => void) | undefined;
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
  const { mergeDomainConfigs, workerFile = WORKER_FILE, smallSet = SMALL_SET, onLoaded } = options;
  // Copied, because the message may be a view of a buffer that is shared.
  const workerData: ResourcesWorkerData = { message: new Uint8Array(response), mergeDomainConfigs };
  const loaded$ =
    response.length > smallSet ? loadInThread(workerFile, { workerData }) : defer(() => of(load(workerData)));
  return loaded$.pipe(tap(({ ruleset }) => ruleset !== undefined && onLoaded?.(ruleset, workerData.message)));
}

function load({ message, mergeDomainConfigs }: ResourcesWorkerData): LoadedRules {
  const { configs, placeOf, errors, warnings } = checkResources(message, mergeDomainConfigs);
  return errors.length > 0 ? { ruleset: undefined, errors } : { ruleset: buildRuleset(configs, placeOf), warnings };
}
