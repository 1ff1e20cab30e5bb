// Runs in a thread of its own: reads and checks rule files, and hands the rules over.
import { parentPort, workerData } from 'node:worker_threads';
import type { RuleFile } from '../../rules/files/read-rule-files';
import { giveWay } from '../rule-thread/give-way';
import { handOver } from '../rule-thread/hand-over';
import { checkFiles } from './check-files';

export interface RulesWorkerData {
  readonly files: readonly RuleFile[];
  readonly mergeDomainConfigs: boolean;
}

if (parentPort !== null) {
  giveWay();
  const { files, mergeDomainConfigs }: RulesWorkerData = workerData;
  handOver(checkFiles(files, mergeDomainConfigs), parentPort);
}
