import { type Observable, combineLatest, map, startWith, take } from 'rxjs';

/** What the service waits for before it serves. */
export type Awaited = OwnAwaited | 'workers';

/** What a process that decides waits for itself. */
type OwnAwaited = 'rules' | 'counter store';

/** What is awaited at first. */
export const EVERYTHING: readonly Awaited[] = ['rules', 'counter store'];

/**
 * What is still awaited, at first everything: each item until its stream has emitted, at the end the empty list. Completes after
 * that; an error of an input is passed on.
 */
export function awaited(done: Readonly<Record<OwnAwaited, Observable<unknown>>>): Observable<readonly Awaited[]> {
  return combineLatest([until('rules', done['rules']), until('counter store', done['counter store'])]).pipe(
    map((items) => items.filter((item) => item !== undefined)),
  );
}

function until(item: Awaited, done$: Observable<unknown>): Observable<Awaited | undefined> {
  return done$.pipe(
    take(1),
    map(() => undefined),
    startWith(item),
  );
}
