import { type Observable, concat, map, merge, of, take, takeUntil } from 'rxjs';

/**
 * `starting`: the listeners for decisions are not open yet. `serving`: they may be open. `draining`: the process is ending.
 */
export type Phase = 'starting' | 'serving' | 'draining';

export interface LifecycleInputs {
  /** Emits when the service may open its listeners: the store was reached, and the first rules are there or not required. */
  readonly ready$: Observable<unknown>;
  /** The signals that end the process. */
  readonly termination$: Observable<unknown>;
}

/**
 * The phases of the process: `starting` at once, `serving` at the first value of `ready$`, `draining` at the first termination,
 * which may come in either phase; then it completes. An error of an input is passed on.
 */
export function lifecycle({ ready$, termination$ }: LifecycleInputs): Observable<Phase> {
  const draining$ = termination$.pipe(
    take(1),
    map((): Phase => 'draining'),
  );
  const serving$ = ready$.pipe(
    take(1),
    map((): Phase => 'serving'),
    takeUntil(termination$),
  );
  return concat(of<Phase>('starting'), merge(serving$, draining$));
}
