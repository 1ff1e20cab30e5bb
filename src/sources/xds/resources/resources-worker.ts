// The entry of a worker thread: decodes and checks the resources of a response, and transfers the rules to the main thread.
import { parentPort, workerData } from 'node:worker_threads';
import { lowerPriority } from '../../rule-thread/lower-priority';
import { transferRules } from '../../rule-thread/transfer-rules';
import { checkResources } from './check-resources';

export interface ResourcesWorkerData {
  /** An encoded `DiscoveryResponse`. */
  readonly message: Uint8Array;
  readonly mergeDomainConfigs: boolean;
}

if (parentPort !== null) {
  lowerPriority();
  const { message, mergeDomainConfigs }: ResourcesWorkerData = workerData;
  transferRules(checkResources(message, mergeDomainConfigs), parentPort);
}
