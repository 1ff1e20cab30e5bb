import type { MessagePort } from 'node:worker_threads';
import type { DomainConfig } from '../../rules/rule-config';
import { type RuleRow, rowsOf } from './rule-rows';

/** Rules and what is to be said of them, as lines for people. */
export interface CheckedRules {
  readonly configs: readonly DomainConfig[];
  /** Not empty: the rules are not to be used. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** The first answer of a thread: whether the rules are good. Only then there are pieces to ask for. */
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

export type RulesMessage = RulesChecked | RulesPiece;

/** Taking one piece over costs the thread that decides about 2 ms. */
const ROWS_IN_A_PIECE = 200;

/**
 * Called in the thread: hands rules over in pieces, each when it is asked for, so that the thread that decides is never busy
 * with more than one piece at a time.
 */
export function transferRules({ configs, errors, warnings }: CheckedRules, port: MessagePort): void {
  const rows = rowsOf(configs);
  function send(message: RulesMessage) {
    return port.postMessage(message);
  }
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
