import { Observable, type OperatorFunction, type SchedulerLike, type Subscriber, type Subscription } from 'rxjs';

/** Sends the values of one closed window. Completes when the window is done; until then it is in flight. */
export type SendWindow<T, R> = (values: readonly T[]) => Observable<R>;

export interface PipelineWindowOptions<T, R> {
  /**
   * How long a window gathers, in milliseconds. What 0 means depends on the scheduler: in the service, one turn of the
   * event loop.
   */
  readonly span: number;
  readonly scheduler: SchedulerLike;
  /** How many windows may be in flight at once. While all are, the next one continues to gather. */
  readonly windowsInFlight: number;
  /** What happens to a window that has waited too long for another one to be done; without it, it waits on. */
  readonly overflow?: WindowOverflow<T, R> | undefined;
}

/** A way around the bound on windows in flight; windows that take it do not count towards the bound. */
export interface WindowOverflow<T, R> {
  /** Milliseconds that a window waits after it was due. */
  readonly after: number;
  readonly send: SendWindow<T, R>;
}

/**
 * Gathers values into windows and sends each window as one. The first value opens a window. It closes `span` later or,
 * when `windowsInFlight` are in flight by then, as soon as one of them is done. A window without values never closes:
 * nothing is sent.
 *
 * - Complete: the open window closes without waiting for its span or for one in flight; the result completes when all
 *   are done.
 * - Error of the source: passed on at once; the open window is dropped, windows in flight are unsubscribed from.
 * - Error of a sent window: passed on, and ends the stream. `send` should catch inside.
 * - Unsubscribe: as an error of the source.
 *
 * @param send its emissions are those of the result, as they come
 */
export function pipelineWindow<T, R>(
  options: PipelineWindowOptions<T, R>,
  send: SendWindow<T, R>,
): OperatorFunction<T, R> {
  return (source) =>
    new Observable<R>((subscriber) => {
      const windows = new Windows(options, send, subscriber);
      subscriber.add(() => windows.cancelTimers());
      subscriber.add(
        source.subscribe({
          next: (value) => windows.add(value),
          error: (error: unknown) => subscriber.error(error),
          complete: () => windows.complete(),
        }),
      );
    });
}

/** The open window of one subscription, and how many are in flight. */
class Windows<T, R> {
  readonly #options: PipelineWindowOptions<T, R>;
  readonly #send: SendWindow<T, R>;
  readonly #subscriber: Subscriber<R>;
  #gathered: T[] = [];
  /** The span of the open window is over: it closes when fewer than `windowsInFlight` are in flight. */
  #isDue = false;
  #spanTimer: Subscription | undefined;
  #overflowTimer: Subscription | undefined;
  #inFlight = 0;
  #overflowing = 0;
  #isComplete = false;

  constructor(options: PipelineWindowOptions<T, R>, send: SendWindow<T, R>, subscriber: Subscriber<R>) {
    this.#options = options;
    this.#send = send;
    this.#subscriber = subscriber;
  }

  add(value: T): void {
    this.#gathered.push(value);
    if (this.#gathered.length > 1) return;
    const { scheduler, span } = this.#options;
    this.#spanTimer = scheduler.schedule(() => this.#due(), span);
  }

  complete(): void {
    this.#isComplete = true;
    this.#spanTimer?.unsubscribe();
    if (this.#gathered.length > 0) this.#sendNow();
    this.#proceed();
  }

  cancelTimers(): void {
    this.#spanTimer?.unsubscribe();
    this.#overflowTimer?.unsubscribe();
  }

  #due(): void {
    this.#isDue = true;
    this.#proceed();
    const { overflow, scheduler } = this.#options;
    if (!this.#isDue || overflow === undefined) return;
    this.#overflowTimer = scheduler.schedule(() => {
      this.#overflowing += 1;
      this.#close(overflow.send, () => {
        this.#overflowing -= 1;
      });
    }, overflow.after);
  }

  #proceed(): void {
    if (this.#isDue && this.#inFlight < this.#options.windowsInFlight) this.#sendNow();
    if (this.#isComplete && !this.#isDue && this.#inFlight + this.#overflowing === 0) this.#subscriber.complete();
  }

  #sendNow(): void {
    this.#inFlight += 1;
    this.#close(this.#send, () => {
      this.#inFlight -= 1;
    });
  }

  #close(send: SendWindow<T, R>, done: () => void): void {
    const values = this.#gathered;
    this.#gathered = [];
    this.#isDue = false;
    this.#spanTimer = undefined;
    this.#overflowTimer?.unsubscribe();
    this.#overflowTimer = undefined;
    this.#subscriber.add(
      send(values).subscribe({
        next: (result) => this.#subscriber.next(result),
        error: (error: unknown) => this.#subscriber.error(error),
        complete: () => {
          done();
          this.#proceed();
        },
      }),
    );
  }
}
