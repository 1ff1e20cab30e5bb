import {
  type Observable,
  type OperatorFunction,
  type SchedulerLike,
  Subject,
  finalize,
  mergeMap,
  of,
  takeUntil,
  tap,
} from 'rxjs';
import { Batch, failCall } from '../counting/batch';
import { DecisionError, poolEmpty } from '../counting/decision-error';
import { type BreakerObserver, type SendWithin, circuitBreaker } from './circuit-breaker';
import { type SendWindow, pipelineWindow } from './pipeline-window';
import type { CounterLane } from './ports/counters';
import type { WindowCall } from './ports/decide';

export interface LanesOptions {
  /** Closes windows. */
  readonly scheduler: SchedulerLike;
  /** Sends the calls of a closed window to a lane. Emits the window when each call has its outcome; never fails. */
  readonly send: (lane: CounterLane) => SendWithin<WindowCall, Batch>;
  /** Most milliseconds that a window may take; undefined: the store has an end of its own. */
  readonly limit?: number | undefined;
  /** Holds back the calls for lanes with a server that does not answer; undefined: none are. */
  readonly breaker?: LaneBreaker | undefined;
  /** Called with a lane whose server has left the store. */
  readonly onRetired?: (lane: CounterLane) => void;
}

export interface LaneBreaker {
  /** STORE_BREAKER_FAILURES */
  readonly failures: number;
  /** Receives what becomes of a lane, which is named as by {@link CounterLane.server}. */
  readonly observe: (server: NonNullable<CounterLane['server']>) => BreakerObserver;
}

/** The calls of one lane on their way to its pipeline window. */
interface OpenLane {
  readonly lane: CounterLane;
  readonly calls$: Subject<WindowCall>;
}

/** The pipeline windows of all lanes: one operator per lane, opened by the first call for it. */
export class Lanes {
  /**
   * Emits each window when it has settled. Calls flow while there is a subscriber; there may be only one. Completes after
   * {@link complete}, when every window is done.
   */
  readonly windows$: Observable<Batch>;
  readonly #options: LanesOptions;
  readonly #opened$ = new Subject<OpenLane>();
  readonly #open = new Map<CounterLane, Subject<WindowCall>>();
  readonly #retired = new WeakSet<CounterLane>();
  #running = 0;
  #isCompleting = false;

  constructor(options: LanesOptions) {
    this.#options = options;
    this.windows$ = this.#opened$.pipe(mergeMap((open) => this.#windowsOf(open)));
  }

  /** Adds a call to the open window of a lane. */
  add(lane: CounterLane, call: WindowCall): void {
    const open = this.#open.get(lane);
    if (open !== undefined && !this.#isCompleting) return open.next(call);
    const calls$ = this.#openLane(lane);
    // Another part of a call that was in flight when completion began or the lane was retired: no more calls follow.
    const isLast = this.#isCompleting || this.#retired.has(lane);
    if (!isLast) this.#open.set(lane, calls$);
    calls$.next(call);
    if (isLast) calls$.complete();
  }

  /** Closes the open windows without waiting for their spans; `windows$` completes when nothing is in flight. */
  complete(): void {
    this.#isCompleting = true;
    for (const calls$ of this.#open.values()) calls$.complete();
    this.#completeWhenIdle();
  }

  #openLane(lane: CounterLane): Subject<WindowCall> {
    const calls$ = new Subject<WindowCall>();
    this.#running += 1;
    this.#opened$.next({ lane, calls$ });
    return calls$;
  }

  #windowsOf({ lane, calls$ }: OpenLane): Observable<Batch> {
    const { span, windowsInFlight, whenFull } = lane.pipeline;
    const { scheduler, breaker, limit, send: sendTo } = this.#options;
    function windows(send: SendWindow<WindowCall, Batch>): OperatorFunction<WindowCall, Batch> {
      const overflow = whenFull && {
        after: whenFull.after,
        send: whenFull.behavior === 'exceed' ? send : failPoolEmpty,
      };
      return pipelineWindow({ span, scheduler, windowsInFlight, overflow }, send);
    }
    const send = sendTo(lane);
    return calls$.pipe(
      takeUntil(lane.retired$.pipe(tap(() => this.#retire(lane)))),
      breaker === undefined || lane.server === undefined
        ? windows((calls) => send(calls, limit))
        : circuitBreaker(
            {
              failures: breaker.failures,
              scheduler,
              limit,
              refuse: (call) => failCall(call, NOT_SENT),
              observer: breaker.observe(lane.server),
            },
            send,
            windows,
          ),
      finalize(() => {
        this.#running -= 1;
        this.#completeWhenIdle();
      }),
    );
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

const NOT_SENT = new DecisionError(
  'store_failed',
  'the counter store does not answer; calls fail immediately until it does',
);

/** Fails the calls of a window for which the lane had no free connection. */
function failPoolEmpty(calls: readonly WindowCall[]): Observable<Batch> {
  const batch = new Batch(calls);
  batch.fail(poolEmpty());
  return of(batch);
}
