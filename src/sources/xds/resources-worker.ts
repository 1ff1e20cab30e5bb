// Runs in a thread of its own: decodes and checks the resources of a response, and hands the rules over.
import { parentPort, workerData } from 'node:worker_threads';
import { lowerPriority } from '../rule-thread/lower-priority';
import { transferRules } from '../rule-thread/transfer-rules';
import { checkResources } from './check-resources';

export interface ResourcesWorkerData {
  /** A DiscoveryResponse, encoded. */
  readonly message: Uint8Array;
  readonly mergeDomainConfigs: boolean;
}

if (parentPort !== null) {
  lowerPriority();
  const { message, mergeDomainConfigs }: ResourcesWorkerData = workerData;
  transferRules(checkResources(message, mergeDomainConfigs), parentPort);
}
