import type { MessagePort } from 'node:worker_threads';
import type { DomainConfig } from '../../rules/rule-config';
import type { PlaceOf } from '../../rules/rule-config';
import { type RuleRow, rowsOf } from '../../rules/rows/rule-rows';

/** Rules, with their errors and warnings as human-readable lines. */
export interface CheckedRules {
  readonly configs: readonly DomainConfig[];
  /** Where the rules are. */
  readonly placeOf: PlaceOf;
  /** Not empty: the rules are rejected. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** The first message of the thread: whether the rules are valid. Only then do chunks follow. */
export interface RulesChecked {
  readonly kind: 'checked';
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** Some of the rules; an empty chunk is the last. */
export interface RulesChunk {
  readonly kind: 'chunk';
  readonly rows: readonly RuleRow[];
}

export type RulesMessage = RulesChecked | RulesChunk;

/** Receiving one chunk takes the main thread about 2 ms. */
const ROWS_PER_CHUNK = 200;

/**
 * Called in the worker thread: sends the rules in chunks, each when the main thread requests it, so that the main thread
 * processes one chunk per turn of its event loop.
 */
export function transferRules({ configs, placeOf, errors, warnings }: CheckedRules, port: MessagePort): void {
  const rows = rowsOf(configs, placeOf);
  function send(message: RulesMessage) {
    return port.postMessage(message);
  }
  port.on('message', () => send({ kind: 'chunk', rows: take(rows, ROWS_PER_CHUNK) }));
  send({ kind: 'checked', errors, warnings });
}

function take<T>(items: IterableIterator<T>, limit: number): T[] {
  const result: T[] = [];
  for (let next = items.next(); !next.done; next = items.next()) {
    if (result.push(next.value) === limit) break;
  }
  return result;
}
