import {
  type Observable,
  type SchedulerLike,
  Subject,
  debounceTime,
  groupBy,
  map,
  mergeMap,
  takeLast,
  tap,
} from 'rxjs';
import type { Log, LogFields } from './log';

/** How many different reasons are logged while a condition lasts. */
const MAX_REASONS = 8;
/** Milliseconds without an event after which one of {@link PassingConditions} has ended. */
const QUIET = 5_000;

export interface ConditionLines {
  readonly begins: string;
  /** Undefined: the end is not logged, and each reason is logged once in the life of the process. */
  readonly ends?: string | undefined;
  /** Fields of both lines. */
  readonly fields?: LogFields;
  /**
   * The level of the line that begins. The end is a notice, so that an alert on warnings or errors stays silent when a
   * fault ends.
   */
  readonly level?: 'notice' | 'warn' | 'error';
  /** Without an event for so many milliseconds of a clock the condition can end; undefined: at any time. */
  readonly quiet?: { readonly milliseconds: number; readonly now: () => number };
}

/** Logs a condition that lasts instead of all of its events: one line when it begins, one when it has ended. */
export class ConditionLog {
  readonly #log: Log;
  readonly #lines: ConditionLines;
  readonly #reasons = new Set<string>();
  #lastEvent = 0;

  constructor(log: Log, lines: ConditionLines) {
    this.#log = log;
    this.#lines = lines;
  }

  /** An event of the condition: one line if it begins with it. */
  occurred(fields?: LogFields): void {
    if (this.#reasons.size === 0) this.#begin(fields);
    this.#happened('');
  }

  /** An event with a reason: one line for each different one while the condition lasts. */
  because(reason: string): void {
    if (!this.#reasons.has(reason) && this.#reasons.size < MAX_REASONS) this.#begin({ reason });
    this.#happened(reason);
  }

  /** The condition does not exist, or no longer. */
  ended(fields?: LogFields): void {
    if (this.#reasons.size === 0) return;
    const { ends, quiet } = this.#lines;
    if (ends === undefined) return;
    if (quiet !== undefined && quiet.now() - this.#lastEvent < quiet.milliseconds) return;
    this.#reasons.clear();
    this.#log.notice(ends, { ...this.#lines.fields, ...fields });
  }

  #happened(reason: string): void {
    if (this.#reasons.size < MAX_REASONS) this.#reasons.add(reason);
    this.#lastEvent = this.#lines.quiet?.now() ?? 0;
  }

  #begin(fields: LogFields = {}): void {
    const { begins, level = 'warn', fields: common } = this.#lines;
    this.#log[level](begins, { ...common, ...fields });
  }
}

/** An event of a condition, such as a connection that is refused. */
export interface ConditionEvent {
  /** Events with the same name are of one condition. */
  readonly condition: string;
  readonly begins: string;
  readonly beginFields: LogFields;
  readonly ends: string;
  /** @param count the events of the condition */
  readonly endFields: (count: number) => LogFields;
}

/**
 * Logs conditions of which only the events are known: one line when one begins, and one when it has ended, five seconds
 * after its last event, so that a listener at its bound, which refuses some and accepts others, is logged once.
 */
export class PassingConditions {
  readonly #events = new Subject<ConditionEvent>();

  occurred(event: ConditionEvent): void {
    this.#events.next(event);
  }

  /** Logs while it is subscribed to. Never completes. */
  logTo(log: Log, scheduler: SchedulerLike): Observable<unknown> {
    return this.#events.pipe(
      groupBy(({ condition }) => condition, { duration: (events$) => events$.pipe(debounceTime(QUIET, scheduler)) }),
      mergeMap((events$) =>
        events$.pipe(
          map((event, index) => ({ event, count: index + 1 })),
          tap(({ event, count }) => count === 1 && log.warn(event.begins, event.beginFields)),
          takeLast(1),
          tap(({ event, count }) => log.notice(event.ends, event.endFields(count))),
        ),
      ),
    );
  }
}
