import type { Count } from '../../../limiter/counter-operation';
import type { DecisionError } from '../../../limiter/decision-error';
import type { Connection } from './connection';
import type { ConditionLog } from '../../../streams/condition-log';
import { replyCode, storeError } from './store-error';
import { type StepResult, areCounts } from './commands';
import type { Instance } from './instance';

/** The time without an error reply after which a store counts as recovered. */
const QUIET = { milliseconds: 1000, now: () => performance.now() };

/** Codes of errors that concern one key and not the server. */
const KEY_ERRORS = new Set(['WRONGTYPE', 'ERR']);

/** Called with the name of a server that has replied that it is a read-only replica. */
export type OnReadonly = (server: string) => void;

/** Turns the replies of a store into counts and errors for callers, and logs when it begins and stops to reply with errors. */
export class ReplyHandler {
  readonly #instance: Instance;
  readonly #onReadonly: OnReadonly;
  readonly #replyLog: ConditionLog;
  readonly #keyLog: ConditionLog;
  readonly #scriptLog: ConditionLog;

  constructor(instance: Instance, onReadonly: OnReadonly) {
    this.#instance = instance;
    this.#onReadonly = onReadonly;
    function conditionLog(begins: string, ends?: string): ConditionLog {
      return instance.conditionLog({ begins, ends, quiet: QUIET });
    }
    this.#replyLog = conditionLog(
      'the counter store replies with errors; the calls fail',
      'the counter store no longer replies with errors',
    );
    this.#keyLog = conditionLog('cannot count on the key of a counter; its calls fail');
    this.#scriptLog = conditionLog(
      'the counter store rejects scripts; counting with plain commands, not atomically',
      'the counter store accepts scripts again on new connections',
    );
  }

  /** The counts of results. Returns the same list in the common case, in which no step failed. */
  counts(results: readonly StepResult[], connection: Connection): readonly Count[] {
    if (connection.scriptRejection === undefined) this.#scriptLog.ended();
    else this.scriptsRejected(connection.scriptRejection);
    if (areCounts(results)) {
      this.succeeded();
      return results;
    }
    return results.map((result) => (typeof result === 'number' ? result : this.failed(result, connection)));
  }

  /** The server rejects scripts on a connection. */
  scriptsRejected(error: Error): void {
    this.#scriptLog.because(replyCode(error));
  }

  /** All steps of a window or of its part were counted. */
  succeeded(): void {
    this.#replyLog.ended();
  }

  /** @returns the error for the caller of an operation that got an error reply, or whose connection was lost */
  failed(error: Error, connection: Connection): DecisionError {
    const code = replyCode(error);
    const failure = storeError(error);
    if (code === '') return failure;
    if (KEY_ERRORS.has(code)) {
      this.#keyLog.because(failure.message);
      return failure;
    }
    this.#replyLog.because(`${code}: ${failure.message}`);
    if (code === 'READONLY') {
      if (this.#instance.closeConnectionOnReadonlyError) connection.cut(error);
      this.#onReadonly(connection.server);
    }
    return failure;
  }
}
