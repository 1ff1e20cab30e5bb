// Runs in a thread of its own: reads and checks rule files, and hands the rules over in pieces, each when it is asked for, so
// that the thread that decides is never busy with more than one piece at a time.
import { parentPort, workerData } from 'node:worker_threads';
import type { RuleFile } from '../../rules/files/read-rule-files';
import { checkFiles } from './check-files';
import { type RuleRow, rowsOf } from './rule-rows';

export interface RulesWorkerData {
  readonly files: readonly RuleFile[];
  readonly mergeDomainConfigs: boolean;
}

/** The first answer: whether the rules are good. Only then there are pieces to ask for. */
export interface RulesChecked {
  readonly kind: 'checked';
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** A piece of the rules; an empty one is the last. */
export interface RulesPiece {
  readonly kind: 'piece';
  readonly rows: readonly RuleRow[];
}

export type RulesWorkerMessage = RulesChecked | RulesPiece;

/** Taking one piece over costs the thread that decides about 2 ms. */
const ROWS_IN_A_PIECE = 200;

const port = parentPort;
if (port !== null) {
  const { files, mergeDomainConfigs }: RulesWorkerData = workerData;
  const { configs, errors, warnings } = checkFiles(files, mergeDomainConfigs);
  const rows = rowsOf(configs);
  const send = (message: RulesWorkerMessage) => port.postMessage(message);
  port.on('message', () => send({ kind: 'piece', rows: take(rows, ROWS_IN_A_PIECE) }));
  send({ kind: 'checked', errors, warnings });
}

function take<T>(items: IterableIterator<T>, most: number): T[] {
  const taken: T[] = [];
  for (let next = items.next(); !next.done; next = items.next()) {
    if (taken.push(next.value) === most) break;
  }
  return taken;
}
