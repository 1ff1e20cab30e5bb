import { Observable, type OperatorFunction, type SchedulerLike, type Subscription } from 'rxjs';

export interface PipelineWindowOptions {
  /** How long a window gathers, in milliseconds. What 0 means is the scheduler's: in the service, the event loop's turn. */
  readonly span: number;
  readonly scheduler: SchedulerLike;
  /** How many windows may be under way at once. While all are, the next one keeps gathering. */
  readonly windowsInFlight: number;
}

/**
 * Gathers values into windows and ships each as one. The first value opens a window; it closes `span` later or, when
 * `windowsInFlight` are under way by then, as soon as one of them is done. Nothing waits for a window that has no values.
 *
 * - Complete: the open window closes without waiting for its span; the result completes when all are done.
 * - Error of the source: passed on at once; the open window is dropped, windows under way are unsubscribed from.
 * - Error of a shipped window: passed on, and ends the stream. Whoever ships catches inside.
 * - Unsubscribe: as an error of the source.
 *
 * @param ship what carries the values of one window; its emissions are the result's, as they come
 */
export function pipelineWindow<T, R>(
  { span, scheduler, windowsInFlight }: PipelineWindowOptions,
  ship: (values: readonly T[]) => Observable<R>,
): OperatorFunction<T, R> {
  return (source) =>
    new Observable<R>((subscriber) => {
      let gathered: T[] = [];
      let closing: Subscription | undefined;
      let isDue = false;
      let inFlight = 0;
      let isComplete = false;

      const close = (): void => {
        const values = gathered;
        gathered = [];
        isDue = false;
        closing = undefined;
        inFlight += 1;
        subscriber.add(
          ship(values).subscribe({
            next: (result) => subscriber.next(result),
            error: (error: unknown) => subscriber.error(error),
            complete: () => {
              inFlight -= 1;
              proceed();
            },
          }),
        );
      };

      const proceed = (): void => {
        if (isDue && inFlight < windowsInFlight) close();
        if (isComplete && !isDue && inFlight === 0) subscriber.complete();
      };

      const due = (): void => {
        isDue = true;
        proceed();
      };

      subscriber.add(() => closing?.unsubscribe());
      subscriber.add(
        source.subscribe({
          next: (value) => {
            gathered.push(value);
            if (gathered.length === 1) closing = scheduler.schedule(due, span);
          },
          error: (error: unknown) => subscriber.error(error),
          complete: () => {
            isComplete = true;
            closing?.unsubscribe();
            if (gathered.length > 0) isDue = true;
            proceed();
          },
        }),
      );
    });
}
