import {
  EMPTY,
  type ObservableInput,
  type OperatorFunction,
  concatMap,
  defer,
  exhaustMap,
  from,
  of,
  repeat,
  tap,
} from 'rxjs';

/**
 * Like `exhaustMap`, but the latest value that arrived while the inner observable ran is projected when that one
 * completes. At most one inner observable runs at a time, and one always starts after the last value of the source.
 * Completes when the source and the last inner observable have completed; fails as soon as either fails.
 */
export function exhaustMapWithTrailing<T, R>(project: (value: T) => ObservableInput<R>): OperatorFunction<T, R> {
  return (source$) =>
    defer(() => {
      /** Empty, or the latest value that has not been projected yet. */
      const waiting: T[] = [];
      const latest$ = defer(() => from(waiting.splice(0)).pipe(concatMap(project)));
      return source$.pipe(
        tap((value) => {
          waiting[0] = value;
        }),
        exhaustMap(() => latest$.pipe(repeat({ delay: () => (waiting.length > 0 ? of(undefined) : EMPTY) }))),
      );
    });
}
