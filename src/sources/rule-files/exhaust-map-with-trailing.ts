import {
  type ObservableInput,
  type OperatorFunction,
  Subject,
  defer,
  exhaustMap,
  finalize,
  from,
  throttle,
} from 'rxjs';

/**
 * As `exhaustMap`, but what came while the inner observable ran is not lost: when that has ended, the latest of it is
 * projected. So there is never more than one inner observable, and one always starts after the last value.
 */
export function exhaustMapWithTrailing<T, R>(project: (value: T) => ObservableInput<R>): OperatorFunction<T, R> {
  return (source$) =>
    defer(() => {
      const idle$ = new Subject<void>();
      return source$.pipe(
        throttle(() => idle$, { leading: true, trailing: true }),
        exhaustMap((value) => from(project(value)).pipe(finalize(() => idle$.next()))),
      );
    });
}
