import { Observable, type OperatorFunction, type SchedulerLike, type Subscription } from 'rxjs';

export interface PipelineWindowOptions<T = never, R = never> {
  /** How long a window gathers, in milliseconds. What 0 means is the scheduler's: in the service, the event loop's turn. */
  readonly span: number;
  readonly scheduler: SchedulerLike;
  /** How many windows may be under way at once. While all are, the next one keeps gathering. */
  readonly windowsInFlight: number;
  /** What becomes of a window that has waited long for one of those under way; without it, it goes on waiting. */
  readonly overflow?: WindowOverflow<T, R> | undefined;
}

/** A way past the bound on windows under way; those that take it do not count among them. */
export interface WindowOverflow<T, R> {
  /** Milliseconds that a window waits from when it was due. */
  readonly after: number;
  readonly ship: (values: readonly T[]) => Observable<R>;
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
  { span, scheduler, windowsInFlight, overflow }: PipelineWindowOptions<T, R>,
  ship: (values: readonly T[]) => Observable<R>,
): OperatorFunction<T, R> {
  return (source) =>
    new Observable<R>((subscriber) => {
      let gathered: T[] = [];
      let closing: Subscription | undefined;
      let isDue = false;
      let waiting: Subscription | undefined;
      let inFlight = 0;
      let overflowing = 0;
      let isComplete = false;

      function close(carry: (values: readonly T[]) => Observable<R>, done: () => void): void {
        const values = gathered;
        gathered = [];
        isDue = false;
        closing = undefined;
        waiting?.unsubscribe();
        waiting = undefined;
        subscriber.add(
          carry(values).subscribe({
            next: (result) => subscriber.next(result),
            error: (error: unknown) => subscriber.error(error),
            complete: () => {
              done();
              proceed();
            },
          }),
        );
      }

      function proceed(): void {
        if (isDue && inFlight < windowsInFlight) {
          inFlight += 1;
          close(ship, () => (inFlight -= 1));
        }
        if (isComplete && !isDue && inFlight + overflowing === 0) subscriber.complete();
      }

      function due(): void {
        isDue = true;
        proceed();
        if (!isDue || overflow === undefined) return;
        waiting = scheduler.schedule(() => {
          overflowing += 1;
          close(overflow.ship, () => (overflowing -= 1));
        }, overflow.after);
      }

      subscriber.add(() => closing?.unsubscribe());
      subscriber.add(() => waiting?.unsubscribe());
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
            if (gathered.length > 0 && !isDue) due();
            else proceed();
          },
        }),
      );
    });
}
