// Runs in a thread of its own: decodes and checks the resources of a response, and hands the rules over.
import { parentPort, workerData } from 'node:worker_threads';
import { handOver } from '../rule-thread/hand-over';
import { checkResources } from './check-resources';

export interface ResourcesWorkerData {
  /** A DiscoveryResponse, encoded. */
  readonly message: Uint8Array;
  readonly mergeDomainConfigs: boolean;
}

if (parentPort !== null) {
  const { message, mergeDomainConfigs }: ResourcesWorkerData = workerData;
  handOver(checkResources(message, mergeDomainConfigs), parentPort);
}
