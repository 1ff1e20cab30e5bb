import {
  type MonoTypeOperatorFunction,
  type SchedulerLike,
  connect,
  endWith,
  ignoreElements,
  merge,
  startWith,
  switchMap,
  takeUntil,
  tap,
} from 'rxjs';
import { patientTimer } from '../patient-timer';

export interface AnswerLimit {
  /** Milliseconds without a value. */
  readonly limit: number;
  readonly scheduler: SchedulerLike;
  readonly onSilence: () => void;
}

/** Calls `onSilence` once when the source has neither emitted nor completed for a time. The source stays subscribed to. */
export function awaitAnswer<T>({ limit, scheduler, onSilence }: AnswerLimit): MonoTypeOperatorFunction<T> {
  return connect((answers$) => {
    const end$ = answers$.pipe(ignoreElements(), endWith(undefined));
    const silence$ = answers$.pipe(
      startWith(undefined),
      switchMap(() => patientTimer(limit, scheduler)),
      takeUntil(end$),
      tap(() => onSilence()),
      ignoreElements(),
    );
    return merge(silence$, answers$);
  });
}
