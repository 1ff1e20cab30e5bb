import {
  type MonoTypeOperatorFunction,
  type SchedulerLike,
  connect,
  endWith,
  ignoreElements,
  merge,
  repeat,
  startWith,
  switchMap,
  takeLast,
  takeUntil,
  tap,
  timer,
} from 'rxjs';

/** A time limit is measured by this many timers. */
const PARTS = 10;

export interface AnswerLimit {
  /** Milliseconds without a value. */
  readonly limit: number;
  readonly scheduler: SchedulerLike;
  readonly onSilence: () => void;
}

/**
 * Calls `onSilence` once when the source has neither emitted nor completed for a time. The source stays subscribed to.
 *
 * The time is measured by several timers one after the other: when this process itself stood still for long, answers that arrived
 * meanwhile are read between two of them.
 */
export function awaitAnswer<T>({ limit, scheduler, onSilence }: AnswerLimit): MonoTypeOperatorFunction<T> {
  return connect((answers$) => {
    const end$ = answers$.pipe(ignoreElements(), endWith(undefined));
    const silence$ = answers$.pipe(
      startWith(undefined),
      switchMap(() => timer(limit / PARTS, scheduler).pipe(repeat(PARTS), takeLast(1))),
      takeUntil(end$),
      tap(() => onSilence()),
      ignoreElements(),
    );
    return merge(silence$, answers$);
  });
}
