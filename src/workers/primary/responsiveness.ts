import {
  type Observable,
  type SchedulerLike,
  concat,
  distinctUntilChanged,
  ignoreElements,
  map,
  merge,
  of,
  startWith,
  switchMap,
  tap,
  timer,
} from 'rxjs';
import { patientTimer } from './patient-timer';

/** Milliseconds between two questions to a worker. */
const INTERVAL = 1_000;
/** Milliseconds of silence after which a worker is `silent`: longer than a process waits for its turn on a busy machine. */
const SILENT_AFTER = 10_000;
/**
 * Milliseconds of silence after which a worker is `stuck`: far longer than a heap snapshot or a collection takes, or than a new worker
 * takes to load its program.
 */
export const STUCK_AFTER = 60_000;

/**
 * `responsive`: answers. `silent`: has not answered for ten seconds; it may recover. `stuck`: has not answered for a minute.
 */
export type Responsiveness = 'responsive' | 'silent' | 'stuck';

export interface ResponsivenessSources {
  /** Asks the worker for an answer. */
  readonly ask: () => void;
  readonly answers$: Observable<unknown>;
  readonly scheduler: SchedulerLike;
}

/** Asks a worker every second whether it is alive. Emits its state on subscription, then every change; does not complete. */
export function responsiveness({ ask, answers$, scheduler }: ResponsivenessSources): Observable<Responsiveness> {
  const questions$ = timer(0, INTERVAL, scheduler).pipe(tap(ask), ignoreElements());
  const states$ = answers$.pipe(
    startWith(undefined),
    switchMap(() =>
      concat(
        of('responsive' as const),
        patientTimer(SILENT_AFTER, scheduler).pipe(map(() => 'silent' as const)),
        patientTimer(STUCK_AFTER - SILENT_AFTER, scheduler).pipe(map(() => 'stuck' as const)),
      ),
    ),
    distinctUntilChanged(),
  );
  return merge(states$, questions$);
}
