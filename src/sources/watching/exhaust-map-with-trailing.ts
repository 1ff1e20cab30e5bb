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
 * As `exhaustMap`, but what came while the inner observable ran is not lost: when that has ended, the latest of it is
 * projected. So there is never more than one inner observable, and one always starts after the last value.
 */
export function exhaustMapWithTrailing<T, R>(project: (value: T) => ObservableInput<R>): OperatorFunction<T, R> {
  return (source$) =>
    defer(() => {
      /** The latest value that nothing was started for. */
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
