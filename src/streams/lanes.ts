import {
  BehaviorSubject,
  EMPTY,
  type Observable,
  type SchedulerLike,
  Subject,
  finalize,
  mergeMap,
  of,
  takeUntil,
  tap,
} from 'rxjs';
import { Batch, type RestOfCall, failCall } from '../counting/batch';
import { DecisionError, TRY_AGAIN_AFTER, poolEmpty, timedOut } from '../counting/decision-error';
import type { Operation } from '../counting/operation';
import { Breaker, type BreakerObserver } from './circuit-breaker';
import { type ClosedWindow, pipelineWindow } from './pipeline-window';
import type { CounterLane } from './ports/counters';
import type { WindowCall } from './ports/decide';

/**
 * Sends the calls of a closed window, which ends after so many milliseconds, if that is limited. Emits the window when
 * each call has its outcome; never fails.
 */
export type SendWithin = (calls: readonly WindowCall[], limit: number | undefined) => Observable<Batch>;

export interface LanesOptions {
  /** Closes windows. */
  readonly scheduler: SchedulerLike;
  /** How windows are sent to a lane. */
  readonly send: (lane: CounterLane) => SendWithin;
  /**
   * Most milliseconds that a window may take; undefined: the store has an end of its own. Probes never take more than a
   * second.
   */
  readonly limit?: number | undefined;
  /** Holds back the calls for lanes with a server that does not answer; undefined: none are. */
  readonly breaker?: LaneBreaker | undefined;
  /** Called with a lane whose server has left the store. */
  readonly onRetired?: (lane: CounterLane) => void;
}

export interface LaneBreaker {
  /** STORE_BREAKER_FAILURES; 0: it never opens. */
  readonly failures: number;
  /** Receives what becomes of a lane, which is named as by {@link CounterLane.server}. */
  readonly observe: (server: NonNullable<CounterLane['server']>) => BreakerObserver;
}

/** The pipeline windows of all lanes, each opened by the first call for it. */
export class Lanes {
  /**
   * Emits each window when it has settled. Calls flow while there is a subscriber; there may be only one. Completes
   * after {@link complete}, when every window is done.
   */
  readonly windows$: Observable<Batch>;
  readonly #options: LanesOptions;
  readonly #opened$ = new Subject<LaneWindows>();
  readonly #open = new Map<CounterLane, LaneWindows>();
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
    const opened = new LaneWindows(lane, this.#options, () => this.#retire(lane));
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
    const { scheduler, limit = Infinity } = this.#options;
    const now = scheduler.now();
    const rest = call instanceof RestCall ? call : new RestCall(call, now);
    rest.operations = operations;
    if (now + TRY_AGAIN_AFTER - rest.since >= limit) return failCall(rest, timedOut({ isUncounted: true }));
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

/** What is sent again of a call. */
class RestCall implements WindowCall {
  operations: readonly Operation[] = [];
  readonly #call: WindowCall;

  /** @param since when the store first asked to send it again, in milliseconds of the scheduler */
  constructor(
    call: WindowCall,
    readonly since: number,
  ) {
    this.#call = call;
  }

  get isCancelled(): boolean {
    return this.#call.isCancelled;
  }

  get trace(): WindowCall['trace'] {
    return this.#call.trace;
  }

  settle(): void {
    this.#call.settle();
  }

  fail(error: DecisionError): void {
    this.#call.fail(error);
  }
}

/** Milliseconds that a probe may take. */
const PROBE_LIMIT = 1_000;

const NOT_SENT = new DecisionError(
  'store_failed',
  'the counter store does not answer; calls fail immediately until it does',
);

/**
 * The pipeline windows of one lane. While its breaker is open, calls are refused at once, those too that were gathered
 * but not sent, and then one window is the probe. Each time it opens, other windows begin, so that those of the time
 * before have no say in what follows: they end by themselves.
 */
class LaneWindows {
  /** To be subscribed to before calls are added. Unsubscribing ends windows in flight. */
  readonly windows$: Observable<Batch>;
  readonly lane: CounterLane;
  readonly #options: LanesOptions;
  readonly #send: SendWithin;
  readonly #breaker: Breaker | undefined;
  /** Where calls go: the present one of `#periods$`. */
  #calls$ = new Subject<WindowCall>();
  readonly #periods$ = new BehaviorSubject(this.#calls$);
  #isComplete = false;

  constructor(lane: CounterLane, options: LanesOptions, onRetired: () => void) {
    this.lane = lane;
    this.#options = options;
    this.#send = options.send(lane);
    const { scheduler, breaker } = options;
    if (breaker !== undefined && breaker.failures > 0 && lane.server !== undefined) {
      this.#breaker = new Breaker({ failures: breaker.failures, scheduler, observer: breaker.observe(lane.server) });
    }
    const retired$ = lane.retired$.pipe(
      tap(() => {
        onRetired();
        this.complete();
      }),
    );
    this.windows$ = this.#periods$.pipe(
      takeUntil(retired$),
      mergeMap((calls$) => this.#windowsOf(calls$)),
      finalize(() => this.#breaker?.end()),
    );
  }

  add(call: WindowCall): void {
    if (this.#breaker?.isOpen) this.#refuse(call);
    else this.#calls$.next(call);
  }

  /** Sends the open window; no call follows. */
  complete(): void {
    this.#isComplete = true;
    this.#calls$.complete();
    this.#periods$.complete();
  }

  #windowsOf(calls$: Subject<WindowCall>): Observable<Batch> {
    const { span, windowsInFlight, whenFull } = this.lane.pipeline;
    const { scheduler } = this.#options;
    return calls$.pipe(
      pipelineWindow<WindowCall>({ span, scheduler, windowsInFlight, overflowAfter: whenFull?.after }),
      mergeMap((window) =>
        this.#sendIn(calls$, window).pipe(
          tap({
            next: (batch) => {
              if (calls$ === this.#calls$ && !this.#isComplete) this.#ended(batch);
            },
            complete: () => window.end(),
          }),
        ),
      ),
    );
  }

  #sendIn(calls$: Subject<WindowCall>, { values: calls, isOverflow }: ClosedWindow<WindowCall>): Observable<Batch> {
    if (isOverflow && this.lane.pipeline.whenFull?.behavior === 'fail') return failPoolEmpty(calls);
    if (calls$ !== this.#calls$) {
      for (const call of calls) this.#refuse(call);
      return EMPTY;
    }
    const { limit } = this.#options;
    const isProbe = this.#breaker?.beginsProbe() === true;
    return this.#send(calls, isProbe ? Math.min(limit ?? PROBE_LIMIT, PROBE_LIMIT) : limit);
  }

  #ended({ outcome, size }: Batch): void {
    this.#breaker?.ended(outcome, size);
    if (this.#breaker?.isOpen !== true) return;
    const before = this.#calls$;
    this.#periods$.next((this.#calls$ = new Subject()));
    before.complete();
  }

  #refuse(call: WindowCall): void {
    this.#breaker?.refused();
    failCall(call, NOT_SENT);
  }
}

/** Fails the calls of a window for which the lane had no free connection. */
function failPoolEmpty(calls: readonly WindowCall[]): Observable<Batch> {
  const batch = new Batch(calls);
  batch.fail(poolEmpty());
  return of(batch);
}
