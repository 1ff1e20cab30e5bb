// The entry of a worker thread: parses and checks rule files, and transfers the rules to the main thread.
import { parentPort, workerData } from 'node:worker_threads';
import type { RuleFile } from '../../../rules/files/read-rule-files';
import { lowerPriority } from '../../rule-thread/lower-priority';
import { transferRules } from '../../rule-thread/transfer-rules';
import { checkFiles } from './check-files';

export interface RulesWorkerData {
  readonly files: readonly RuleFile[];
  readonly mergeDomainConfigs: boolean;
}

if (parentPort !== null) {
  lowerPriority();
  const { files, mergeDomainConfigs }: RulesWorkerData = workerData;
  transferRules(checkFiles(files, mergeDomainConfigs), parentPort);
}
