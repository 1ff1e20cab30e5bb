import { filter } from 'rxjs';
import type { Log, LogFields } from '../../../../streams/ports/log';
import type { Pool } from './pool';
/** How many reasons are told apart while a state lasts. */
const MAX_REASONS = 8;
export interface StateLines {
  readonly bad: string;
  /** Undefined: nothing is said, and what is bad has been said for good. */
  readonly good: string | undefined;
}

/**
 * One line when something goes bad, one for each further reason while it is, one when it is good again; nothing in between,
 * however many calls meet it.
 */
export class StateLog {
  readonly #log: Log;
  readonly #lines: StateLines;
  readonly #fields: LogFields;
  /** Milliseconds without anything bad that it takes to be good again: what comes and goes is not worth a line each time. */
  readonly #quiet: number;
  readonly #reasons = new Set<string>();
  #lastBad = 0;

  constructor(log: Log, lines: StateLines, fields: LogFields, quiet = 0) {
    this.#log = log;
    this.#lines = lines;
    this.#fields = fields;
    this.#quiet = quiet;
  }

  bad(reason: string): void {
    this.#lastBad = performance.now();
    if (this.#reasons.has(reason) || this.#reasons.size >= MAX_REASONS) return;
    this.#reasons.add(reason);
    this.#log.warn(this.#lines.bad, { ...this.#fields, reason });
  }

  good(): void {
    const { good } = this.#lines;
    if (this.#reasons.size === 0 || good === undefined || performance.now() - this.#lastBad < this.#quiet) return;
    this.#reasons.clear();
    this.#log.info(good, this.#fields);
  }
}

/** One line when the last connection of a pool is lost or the first cannot be made, and one when there is one again. */
export function logConnections(pool: Pool, log: Log, fields: LogFields): void {
  const state = new StateLog(
    log,
    { bad: 'the counter store cannot be reached; trying until it can', good: 'connected to the counter store' },
    fields,
  );
  pool.failures$.subscribe((error) => {
    if (!pool.connected$.value) state.bad(error.message);
  });
  pool.connected$.pipe(filter((isConnected) => isConnected)).subscribe(() => state.good());
}
