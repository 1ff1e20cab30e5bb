// The entry of a worker thread: checks rules, and transfers them to the main thread.
import { setPriority } from 'node:os';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { rowsOf } from '../../rules/ruleset';
import type { CheckedRules } from './check-files';
import { type RulesMessage, type ThreadInput, checkRules, collectGarbage } from './load-rules';

/**
 * A nice value: next to a main thread that needs a whole core, the thread still gets a quarter of it, and so it
 * finishes.
 */
const PRIORITY = 5;
/** Receiving one chunk takes the main thread about 2 ms. */
const ROWS_PER_CHUNK = 200;

if (parentPort !== null) {
  lowerPriority();
  const port = parentPort;
  port.once('message', (input: ThreadInput) => transferRules(checkRules(input), port));
}

/**
 * Lowers the priority of this thread, so that the main thread, which decides requests, is scheduled first when both
 * need the same core. Only Linux has priorities of single threads; elsewhere this does nothing.
 */
function lowerPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(PRIORITY);
  } catch {
    // Without the permission both threads have the same priority.
  }
}

/**
 * Sends the rules in chunks, each when the main thread requests it, so that the main thread processes one chunk per
 * turn of its event loop.
 */
function transferRules({ configs, ...checked }: CheckedRules, port: MessagePort): void {
  const rows = rowsOf(configs);
  function send(message: RulesMessage) {
    return port.postMessage(message);
  }
  port.on('message', () => send({ kind: 'chunk', rows: take(rows, ROWS_PER_CHUNK) }));
  // This thread allocates little from here on, so that V8 would keep what the check has used while the ruleset grows in
  // the other thread.
  collectGarbage();
  send({ kind: 'checked', ...checked });
}

function take<T>(items: IterableIterator<T>, limit: number): T[] {
  const result: T[] = [];
  for (let next = items.next(); !next.done; next = items.next()) {
    if (result.push(next.value) === limit) break;
  }
  return result;
}
