import { type Observable, concat, map, merge, of, take, takeUntil } from 'rxjs';

/**
 * `starting`: the listeners for decisions are not open yet. `serving`: they are. `draining`: the process is ending.
 */
export type Phase = 'starting' | 'serving' | 'draining';

export interface LifecycleInputs {
  /** Emits when the service may open its listeners: the first good rules are there, or need not be waited for. */
  readonly ready$: Observable<unknown>;
  /** The signals that end the process. */
  readonly termination$: Observable<unknown>;
}

/**
 * The life of the process. Starts with `starting`, turns to `serving` when everything is ready, and to `draining` at the first
 * termination, whatever came before; then it completes. A failure of an input is passed on.
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
