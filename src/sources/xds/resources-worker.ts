// Runs in a thread of its own: decodes and checks the resources of a response, and hands the rules over.
import { parentPort, workerData } from 'node:worker_threads';
import { giveWay } from '../rule-thread/give-way';
import { handOver } from '../rule-thread/hand-over';
import { checkResources } from './check-resources';

export interface ResourcesWorkerData {
  /** A DiscoveryResponse, encoded. */
  readonly message: Uint8Array;
  readonly mergeDomainConfigs: boolean;
}

if (parentPort !== null) {
  giveWay();
  const { message, mergeDomainConfigs }: ResourcesWorkerData = workerData;
  handOver(checkResources(message, mergeDomainConfigs), parentPort);
}
