import type { Count } from '../../../../limiter/counter-operation';
import type { DecisionError } from '../../../../limiter/decision-error';
import type { Connection } from '../connections/connection';
import { type Outcome, areCounts } from '../counting/outcome';
import { StateLog } from '../connections/state-log';
import type { StoreContext } from './store-context';
import { replyCode, storeError } from '../connections/store-error';

/** Milliseconds without an error reply after which a store counts as well again. */
const QUIET = 1000;

/** Codes that speak of one key and say nothing about the server. */
const KEY_ERRORS = new Set(['WRONGTYPE', 'INEXACT', 'ERR']);

/** Turns what connections answered into counts, and says in the log when a store begins and stops to refuse. */
export class Answers {
  readonly #context: StoreContext;
  readonly #onReadonly: () => void;
  readonly #replies: StateLog;
  readonly #keys: StateLog;
  readonly #scripts: StateLog;

  /** @param onReadonly told when a server has said that it is a read-only replica */
  constructor(context: StoreContext, onReadonly: () => void) {
    this.#context = context;
    this.#onReadonly = onReadonly;
    const { log, name } = context;
    function lines(bad: string, good?: string): StateLog {
      return new StateLog(log, { bad, good }, { store: name }, QUIET);
    }
    this.#replies = lines('the counter store answers with errors', 'the counter store counts again');
    this.#keys = lines('the key of a counter cannot be counted on');
    this.#scripts = lines('the counter store refuses scripts; counting goes on with plain commands, not atomically');
  }

  /** The counts of outcomes; the common case, in which everything went well, passes through. */
  counts(outcomes: readonly Outcome[], connection: Connection): readonly Count[] {
    if (areCounts(outcomes)) {
      this.good();
      return outcomes;
    }
    return outcomes.map((outcome) => (typeof outcome === 'number' ? outcome : this.error(outcome, connection)));
  }

  good(): void {
    this.#replies.good();
  }

  /** The error of an operation that was answered with an error, or lost its connection. */
  error(error: Error, connection: Connection): DecisionError {
    const code = replyCode(error);
    const failure = storeError(error);
    if (code === '') return failure;
    if (KEY_ERRORS.has(code)) {
      this.#keys.bad(failure.message);
      return failure;
    }
    this.#replies.bad(`${code}: ${failure.message}`);
    if (code === 'READONLY') {
      if (this.#context.closeConnectionOnReadonlyError) connection.destroy();
      this.#onReadonly();
    }
    return failure;
  }

  scriptsRefused(connection: Connection, error: Error): void {
    connection.refusesScripts = true;
    this.#scripts.bad(replyCode(error));
  }
}
