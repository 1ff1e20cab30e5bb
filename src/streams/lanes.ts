import { type Observable, Subject, finalize, mergeMap, tap } from 'rxjs';
import { type Batch, type RestOfCall, failCall } from '../counting/batch';
import { type DecisionError, TRY_AGAIN_AFTER, timedOut } from '../counting/decision-error';
import type { Operation } from '../counting/operation';
import { elapsedBy } from './deadline';
import type { CounterLane } from './ports/counters';
import type { WindowCall } from './ports/decide';
import { LaneTrips, type LaneTripsOptions } from './trip';

export interface LanesOptions extends LaneTripsOptions {
  /** Called with a lane whose server has left the store. */
  readonly onRetired?: (lane: CounterLane) => void;
}

/** The pipeline windows of all lanes, each opened by the first call for it. */
export class Lanes {
  /**
   * Emits each window when it has settled. Calls flow while there is a subscriber; there may be only one. Completes
   * after {@link complete}, when every window is done.
   */
  readonly windows$: Observable<Batch>;
  readonly #options: LanesOptions;
  readonly #opened$ = new Subject<LaneTrips>();
  readonly #open = new Map<CounterLane, LaneTrips>();
  readonly #retired = new WeakSet<CounterLane>();
  #running = 0;
  #isCompleting = false;

  constructor(options: LanesOptions) {
    this.#options = options;
    this.windows$ = this.#opened$.pipe(
      mergeMap(({ lane, windows$ }) =>
        windows$.pipe(
          tap((batch) => {
            for (const rest of batch.rests) this.#sendAgain(lane, rest);
          }),
          finalize(() => {
            this.#running -= 1;
            this.#completeWhenIdle();
          }),
        ),
      ),
    );
  }

  /** Adds a call to the open window of a lane, or refuses it while the server does not answer. */
  add(lane: CounterLane, call: WindowCall): void {
    const open = this.#open.get(lane);
    if (open !== undefined && !this.#isCompleting) return open.add(call);
    const opened = new LaneTrips(lane, this.#options, () => this.#retire(lane));
    this.#running += 1;
    this.#opened$.next(opened);
    // Another part of a call that was in flight when completion began or the lane was retired: no more calls follow.
    const isLast = this.#isCompleting || this.#retired.has(lane);
    if (!isLast) this.#open.set(lane, opened);
    opened.add(call);
    if (isLast) opened.complete();
  }

  /** Closes the open windows without waiting for their spans; `windows$` completes when nothing is in flight. */
  complete(): void {
    this.#isCompleting = true;
    for (const open of this.#open.values()) open.complete();
    this.#completeWhenIdle();
  }

  /** Sends the rest of a call again, or fails it when the time of a window has passed since it was sent first. */
  #sendAgain(lane: CounterLane, { call, operations }: RestOfCall<WindowCall>): void {
    const { scheduler, timeouts } = this.#options;
    const now = elapsedBy(scheduler)();
    const rest = call instanceof RestOfOne ? call : new RestOfOne(call, now);
    rest.operations = operations;
    if (now + TRY_AGAIN_AFTER - rest.since >= (timeouts?.ofCalls ?? Infinity))
      return failCall(rest, timedOut({ isUncounted: true }));
    this.#running += 1;
    scheduler.schedule(() => {
      this.#running -= 1;
      this.add(lane, rest);
      this.#completeWhenIdle();
    }, TRY_AGAIN_AFTER);
  }

  #retire(lane: CounterLane): void {
    this.#open.delete(lane);
    this.#retired.add(lane);
    this.#options.onRetired?.(lane);
  }

  #completeWhenIdle(): void {
    if (this.#isCompleting && this.#running === 0) this.#opened$.complete();
  }
}

/** Operations of a call that go their own way: the call hears of what becomes of them, and says if they are needed. */
export class PartOfCall implements WindowCall {
  constructor(
    protected readonly call: WindowCall,
    public operations: readonly Operation[],
  ) {}

  get isCancelled(): boolean {
    return this.call.isCancelled;
  }

  get trace(): WindowCall['trace'] {
    return this.call.trace;
  }

  expire(): void {
    this.call.expire?.();
  }

  settle(): void {
    this.call.settle();
  }

  fail(error: DecisionError): void {
    this.call.fail(error);
  }
}

/** What is sent again of a call. */
class RestOfOne extends PartOfCall {
  /** @param since when the store first asked to send it again, in milliseconds by {@link elapsedBy} */
  constructor(
    call: WindowCall,
    readonly since: number,
  ) {
    super(call, []);
  }
}
