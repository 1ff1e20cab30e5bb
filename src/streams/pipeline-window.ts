import { Observable, type OperatorFunction, type SchedulerLike, type Subscriber, type Subscription } from 'rxjs';

export interface PipelineWindowOptions {
  /**
   * How long a window gathers, in milliseconds. What 0 means depends on the scheduler: in the service, one turn of the
   * event loop.
   */
  readonly span: number;
  readonly scheduler: SchedulerLike;
  /** How many windows may be in flight at once. While all are, the next one continues to gather. */
  readonly windowsInFlight: number;
  /**
   * Milliseconds that a due window waits for one in flight, before it closes beyond the bound; undefined: it waits on.
   */
  readonly overflowAfter?: number | undefined;
}

/** The values of a window that gathers no more. It is in flight until {@link end} is called. */
export class ClosedWindow<T> {
  readonly #onEnd: (window: ClosedWindow<T>) => void;

  /** @param isOverflow whether it has waited too long for one in flight; it does not count towards the bound */
  constructor(
    readonly values: readonly T[],
    readonly isOverflow: boolean,
    onEnd: (window: ClosedWindow<T>) => void,
  ) {
    this.#onEnd = onEnd;
  }

  /** To be called once, when its work is done. */
  end(): void {
    this.#onEnd(this);
  }
}

/**
 * Gathers values into windows, and emits each when it closes. The first value opens a window. It closes `span` later
 * or, when `windowsInFlight` are in flight by then, as soon as one of them has ended. A window without values never
 * closes.
 *
 * - Complete: the open window closes without waiting for its span or for one in flight; the result completes when all
 *   have ended.
 * - Error of the source: passed on at once; the open window is dropped.
 * - Unsubscribe: as an error of the source.
 */
export function pipelineWindow<T>(options: PipelineWindowOptions): OperatorFunction<T, ClosedWindow<T>> {
  return (source) =>
    new Observable((subscriber) => {
      const windows = new Windows(options, subscriber);
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
class Windows<T> {
  readonly #options: PipelineWindowOptions;
  readonly #subscriber: Subscriber<ClosedWindow<T>>;
  readonly #onEnd = this.#ended.bind(this);
  #gathered: T[] = [];
  /** The span of the open window is over: it closes when fewer than `windowsInFlight` are in flight. */
  #isDue = false;
  #spanTimer: Subscription | undefined;
  #overflowTimer: Subscription | undefined;
  #inFlight = 0;
  #overflowing = 0;
  #isComplete = false;

  constructor(options: PipelineWindowOptions, subscriber: Subscriber<ClosedWindow<T>>) {
    this.#options = options;
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
    if (this.#gathered.length > 0) this.#close();
    else this.#completeWhenIdle();
  }

  cancelTimers(): void {
    this.#spanTimer?.unsubscribe();
    this.#overflowTimer?.unsubscribe();
  }

  #due(): void {
    const { overflowAfter, scheduler, windowsInFlight } = this.#options;
    if (this.#inFlight < windowsInFlight) return this.#close();
    this.#isDue = true;
    if (overflowAfter === undefined) return;
    this.#overflowTimer = scheduler.schedule(() => this.#close(true), overflowAfter);
  }

  #close(isOverflow = false): void {
    const values = this.#gathered;
    this.#gathered = [];
    this.#isDue = false;
    this.#spanTimer = undefined;
    this.#overflowTimer?.unsubscribe();
    this.#overflowTimer = undefined;
    if (isOverflow) this.#overflowing += 1;
    else this.#inFlight += 1;
    this.#subscriber.next(new ClosedWindow(values, isOverflow, this.#onEnd));
  }

  #ended({ isOverflow }: ClosedWindow<T>): void {
    if (isOverflow) this.#overflowing -= 1;
    else this.#inFlight -= 1;
    if (this.#isDue && this.#inFlight < this.#options.windowsInFlight) this.#close();
    this.#completeWhenIdle();
  }

  #completeWhenIdle(): void {
    if (this.#isComplete && !this.#isDue && this.#inFlight + this.#overflowing === 0) this.#subscriber.complete();
  }
}
