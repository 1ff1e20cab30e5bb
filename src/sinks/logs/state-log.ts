import type { Log, LogFields } from '../../streams/ports/log';

/** How many different reasons are logged while a state lasts. */
const MAX_REASONS = 8;

export interface StateMessages {
  readonly bad: string;
  /** Undefined: the recovery is not logged, and each reason is logged once in the life of the process. */
  readonly good?: string | undefined;
  /**
   * Milliseconds without a bad event before a good one counts as recovery, so that a flapping state is not logged each time;
   * default 0.
   */
  readonly quietPeriod?: number;
}

/**
 * Logs the changes of a state instead of every event: one line when it turns bad, one for each further reason while it is
 * bad, one when it has recovered.
 */
export class StateLog {
  readonly #log: Log;
  readonly #messages: StateMessages;
  readonly #fields: LogFields;
  readonly #reasons = new Set<string>();
  #lastBad = 0;

  constructor(log: Log, messages: StateMessages, fields: LogFields) {
    this.#log = log;
    this.#messages = messages;
    this.#fields = fields;
  }

  bad(reason: string): void {
    this.#lastBad = performance.now();
    if (this.#reasons.has(reason) || this.#reasons.size >= MAX_REASONS) return;
    this.#reasons.add(reason);
    this.#log.warn(this.#messages.bad, { ...this.#fields, reason });
  }

  good(): void {
    if (this.#reasons.size === 0) return;
    const { good, quietPeriod = 0 } = this.#messages;
    if (good === undefined || performance.now() - this.#lastBad < quietPeriod) return;
    this.#reasons.clear();
    this.#log.warn(good, this.#fields);
  }
}
