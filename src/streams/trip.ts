import {
  BehaviorSubject,
  Observable,
  Subject,
  type Subscriber,
  type Unsubscribable,
  finalize,
  mergeMap,
  takeUntil,
  tap,
  using,
} from 'rxjs';
import { Batch, failCall } from '../counting/batch';
import { DecisionError, poolEmpty, timedOut } from '../counting/decision-error';
import type { Leases } from '../counting/leases';
import { type Result, areAnsweredByPolicies } from '../counting/operation';
import type { LocalCounts } from '../limiter/local-counts';
import { type DecisionTimeouts, type Expiries, type Expiring, type Timing, Trip, Trips } from './deadline';
import { type ClosedWindow, pipelineWindow } from './pipeline-window';
import type { CounterLane } from './ports/counters';
import type { WindowCall } from './ports/decide';
import type { CallTrace, WindowTrace, WindowTracer } from './ports/tracer';
import { NOT_SENT, type ServerState } from './server-state';

export interface LaneTripsOptions {
  /** Closes windows, and gives the time. */
  readonly scheduler: Timing;
  /** Most milliseconds that a window waits for its counts, by what answers its calls without them. */
  readonly timeouts?: DecisionTimeouts | undefined;
  /** Ends the waits of calls whose window cannot be sent. */
  readonly expiries?: Expiries | undefined;
  /** What the policy `local` has counted: hits that could not be sent are added when the server counts again. */
  readonly local?: LocalCounts | undefined;
  /** Takes leases with batches, and gives them back; undefined: every call is counted by the store. */
  readonly leases?: Leases | undefined;
  /** Traces windows that carry calls with a trace; undefined: no call is checked for one. */
  readonly tracer?: WindowTracer | undefined;
  /** Called with each batch before it is sent. */
  readonly onBatch?: ((batch: Batch) => void) | undefined;
  /** Reports what was thrown; returns the error for callers. */
  readonly errorOf: (thrown: unknown) => DecisionError;
}

/** The calls of a time in which the server was called, and what becomes of their windows. */
interface Epoch {
  readonly calls$: Subject<WindowCall>;
  /** Receives each window when it has settled. */
  readonly settled: Subscriber<Batch>;
  readonly unanswered: (trip: WindowTrip) => void;
}

/** The trip of a pipeline window. */
class WindowTrip extends Trip {
  trace: WindowTrace | undefined;
  /** Whether policies answer all its calls in the time that is their default, which says nothing of the server. */
  endsByPolicy = false;
  /** Whether the calls of the trip have their outcome. */
  isOver = false;
  /** The time to its answer, and the error with which it has failed. */
  milliseconds = 0;
  failure: DecisionError | undefined;

  constructor(
    readonly batch: Batch<WindowCall>,
    readonly window: ClosedWindow<WindowCall>,
    readonly epoch: Epoch,
  ) {
    super();
  }

  override unanswered(): void {
    this.epoch.unanswered(this);
  }

  override expire(): void {
    for (const call of this.batch.calls) call.expire?.();
  }
}

/** The trip of hits that could not be sent before. */
class UnsentTrip extends Trip {
  constructor(override readonly unanswered: () => void) {
    super();
  }
}

/** Milliseconds that a probe may take. */
const PROBE_LIMIT = 1_000;

/**
 * The pipeline windows of one lane, and their trips. While its breaker is open, calls are refused at once, those too
 * that were gathered but not sent, and then one window is the probe. Each time it opens, other windows begin, so that
 * those of the time before have no say in what follows: they end by themselves.
 */
export class LaneTrips {
  /**
   * Each window when all its calls have their outcome. To be subscribed to before calls are added; never fails.
   * Unsubscribing abandons windows in flight.
   */
  readonly windows$: Observable<Batch>;
  readonly lane: CounterLane;
  readonly #options: LaneTripsOptions;
  readonly #trips: Trips;
  /** The server that is fed, and holds calls back, here; undefined: the lane does that, or it is in this process. */
  readonly #server: ServerState | undefined;
  /** Where calls go: the present one of `#epochs$`. */
  #calls$ = new Subject<WindowCall>();
  readonly #epochs$ = new BehaviorSubject(this.#calls$);
  #isComplete = false;
  /** Hits that could not be sent before are being added. */
  #isAdding = false;
  #windowsInFlight = 0;

  constructor(lane: CounterLane, options: LaneTripsOptions, onRetired: () => void) {
    this.lane = lane;
    this.#options = options;
    const { server } = lane;
    const own = server === undefined ? new Trips({ scheduler: options.scheduler }) : undefined;
    this.#trips = server?.trips ?? own!;
    this.#server = lane.feedsServer === true ? undefined : server;
    if (server !== undefined) server.beforeResuming = (added) => this.#addAllUnsent(added);
    const retired$ = lane.retired$.pipe(
      tap(() => {
        onRetired();
        this.complete();
      }),
    );
    const windows$ = this.#epochs$.pipe(
      takeUntil(retired$),
      mergeMap((calls$) => this.#windowsOf(calls$)),
      finalize(() => {
        if (server !== undefined) server.beforeResuming = undefined;
        own?.close();
      }),
    );
    const beginEpochs = (): Unsubscribable | void =>
      this.#server?.reports$.subscribe(() => this.#server!.isHeldBack && this.#beginEpoch());
    this.windows$ = using(beginEpochs, () => windows$);
  }

  add(call: WindowCall): void {
    if (this.#server?.isHeldBack === true) return this.#refuse(call);
    if (this.#windowsInFlight >= this.lane.pipeline.windowsInFlight) this.#limitWait(call);
    this.#calls$.next(call);
  }

  /** The window of the call may wait for one in flight, before its own time begins. */
  #limitWait(call: WindowCall): void {
    const { expiries, timeouts } = this.#options;
    if (timeouts?.byPolicy === undefined || call.expire === undefined) return;
    if (areAnsweredByPolicies(call.operations)) expiries?.add(call as Expiring, timeouts.byPolicy);
  }

  /** Sends the open window; no call follows. */
  complete(): void {
    this.#isComplete = true;
    this.#calls$.complete();
    this.#epochs$.complete();
  }

  #windowsOf(calls$: Subject<WindowCall>): Observable<Batch> {
    const { span, windowsInFlight, whenFull } = this.lane.pipeline;
    const { scheduler } = this.#options;
    return new Observable((settled) => {
      const epoch = { calls$, settled, unanswered: (trip: WindowTrip) => this.#unanswered(trip) };
      return calls$
        .pipe(pipelineWindow({ span, scheduler, windowsInFlight, overflowAfter: whenFull?.after }))
        .subscribe({ next: this.#send.bind(this, epoch), complete: () => settled.complete() });
    });
  }

  #send(epoch: Epoch, window: ClosedWindow<WindowCall>): void {
    this.#windowsInFlight += 1;
    if (epoch.calls$ !== this.#calls$) {
      for (const call of window.values) this.#refuse(call);
      return this.#leave(window);
    }
    const batch = new Batch(window.values);
    const trip = new WindowTrip(batch, window, epoch);
    if (window.isOverflow && this.lane.pipeline.whenFull?.behavior === 'fail') {
      batch.fail(poolEmpty());
      return this.#end(trip);
    }
    const { timeouts = {}, tracer, leases, onBatch } = this.#options;
    onBatch?.(batch);
    if (batch.operations.length === 0) return this.#end(trip);
    leases?.prepare(batch.operations);
    if (tracer !== undefined) trip.trace = traceOf(tracer, batch);
    const isProbe = this.lane.server?.sent() === true;
    trip.endsByPolicy = timeouts.ofCalls === undefined && !isProbe && areAnsweredByPolicies(batch.operations);
    const { byPolicy, ofCalls = trip.endsByPolicy ? byPolicy : undefined } = timeouts;
    const answerWithin = isProbe ? Math.min(ofCalls ?? PROBE_LIMIT, PROBE_LIMIT) : ofCalls;
    this.#trips.begin(trip, answerWithin, byPolicy === answerWithin ? undefined : byPolicy);
    // `then` calls back in virtual time, too, where nothing may be awaited.
    this.lane.apply(batch.operations, trip).then(
      (results) => this.#answered(trip, results),
      (error: unknown) => this.#failed(trip, error),
    );
    return undefined;
  }

  #answered(trip: WindowTrip, results: readonly Result[]): void {
    trip.milliseconds = this.#trips.ended(trip);
    if (trip.isOver) return this.#answeredLate(trip, results);
    if (trip.epoch.settled.closed) return;
    const { batch } = trip;
    const { scheduler, local, leases, errorOf } = this.#options;
    trip.trace?.ended(results.find((result) => result instanceof DecisionError)?.code);
    try {
      batch.settle(local?.recordStoreCounts(batch.operations, results, scheduler.now()) ?? results);
      leases?.answered(batch.operations, results);
    } catch (error) {
      return this.#fail(trip, errorOf(error));
    }
    if (batch.outcome === 'bad') trip.failure = results.find((result) => result instanceof DecisionError);
    this.#settled(trip);
    return undefined;
  }

  /** A policy has answered the calls, if that was not the failure of a request. */
  #answeredLate({ endsByPolicy, epoch, milliseconds }: WindowTrip, results: readonly Result[]): void {
    // A cluster gives an error for each, if there was no connection in time.
    if (!results.some((result) => !(result instanceof DecisionError))) return;
    if (endsByPolicy && epoch.calls$ === this.#calls$) this.#server?.tookTime(milliseconds);
    this.#server?.heard();
  }

  #failed(trip: WindowTrip, error: unknown): void {
    this.#trips.ended(trip);
    if (trip.isOver || trip.epoch.settled.closed) return;
    const failure = this.#options.errorOf(error);
    trip.trace?.ended(failure.code);
    this.#fail(trip, failure);
  }

  /** The calls wait no longer; a reply may still come. */
  #unanswered(trip: WindowTrip): void {
    if (trip.epoch.settled.closed) return;
    trip.trace?.ended('store_timeout');
    this.#fail(trip, timedOut({ isUncounted: !trip.mayHaveCounted }));
  }

  #fail(trip: WindowTrip, failure: DecisionError): void {
    const { batch } = trip;
    batch.fail(failure);
    this.#options.leases?.answered(batch.operations, failure);
    trip.failure = failure;
    this.#settled(trip);
  }

  /** All calls have their outcome. */
  #settled(trip: WindowTrip): void {
    const { writing } = trip;
    trip.isOver = true;
    if (writing === undefined) this.#written(trip);
    else this.#endAfter(trip, writing);
  }

  /** In a function of its own, because only what captures variables costs each call the memory for them. */
  #endAfter(trip: WindowTrip, writing: PromiseLike<unknown>): void {
    const written = (): void => this.#written(trip);
    writing.then(written, written);
  }

  /**
   * The window of a probe ends when what could not be sent before is added, so that calls are sent again after that.
   */
  #written(trip: WindowTrip): void {
    const mayAdd = trip.batch.outcome === 'ok' && !this.#isAdding;
    if (mayAdd && this.#options.local?.hasUnsent(this.lane) === true) this.#addThenEnd(trip);
    else this.#end(trip);
  }

  #addThenEnd(trip: WindowTrip): void {
    this.#addAllUnsent(() => this.#end(trip));
  }

  #end(trip: WindowTrip): void {
    const { batch, window, epoch, milliseconds, failure } = trip;
    if (epoch.settled.closed) return;
    const isOld = epoch.calls$ !== this.#calls$ || this.#isComplete;
    const isLate = failure?.code === 'store_timeout';
    const trouble = isLate ? undefined : 'failing';
    // What is certainly not counted had an error as its reply, or no connection: the store logs both.
    const why = { reason: failure?.message, isLogged: failure?.isUncounted, trouble } as const;
    if (isLate && trip.endsByPolicy) this.#server?.refused(batch.size);
    else this.#server?.ended(batch.outcome, { size: batch.size, milliseconds, isOld, ...why });
    if (this.lane.feedsServer === true && this.lane.server?.isHeldBack === true) this.lane.server.refused(batch.size);
    epoch.settled.next(batch);
    this.#leave(window);
  }

  #leave(window: ClosedWindow<WindowCall>): void {
    this.#windowsInFlight -= 1;
    window.end();
  }

  /** Windows of the time before have no say in what follows; what is gathered is refused. */
  #beginEpoch(): void {
    if (this.#isComplete) return;
    const before = this.#calls$;
    this.#epochs$.next((this.#calls$ = new Subject()));
    before.complete();
  }

  /** Adds what could not be sent before, and calls back when none is left, or the server does not count it. */
  #addAllUnsent(added: (isAdded: boolean) => void): void {
    const { local } = this.#options;
    if (this.#isAdding || local?.hasUnsent(this.lane) !== true) return added(true);
    this.#isAdding = true;
    this.#addUnsent(local, (isAdded) => {
      this.#isAdding = false;
      added(isAdded);
    });
  }

  /**
   * Adds hits that could not be sent before, a batch at a time, until none are left or the server does not count a
   * batch.
   */
  #addUnsent(local: LocalCounts, added: (isAdded: boolean) => void): void {
    const lane = this.lane;
    const { scheduler, timeouts = {} } = this.#options;
    const taken = local.take(lane, Math.floor(scheduler.now() / 1000));
    if (taken.length === 0) return added(true);
    const trips = this.#trips;
    let isOver = false;
    const ended = (results: readonly Result[]): void => {
      if (isOver) return;
      isOver = true;
      if (local.sent(taken, results, scheduler.now())) this.#addUnsent(local, added);
      else added(false);
    };
    function fail(failure: DecisionError): void {
      ended(taken.map(() => failure));
    }
    const trip = new UnsentTrip(() => fail(timedOut({ isUncounted: !trip.mayHaveCounted })));
    trips.begin(trip, timeouts.ofCalls ?? timeouts.byPolicy);
    lane.apply(taken, trip).then(
      (results) => {
        trips.ended(trip);
        ended(results);
      },
      (error: unknown) => {
        trips.ended(trip);
        fail(error instanceof DecisionError ? error : timedOut());
      },
    );
  }

  #refuse(call: WindowCall): void {
    this.#server?.refused();
    failCall(call, NOT_SENT);
  }
}

/** Begins the span of a trip in the traces of the calls that it carries; undefined: none is traced. */
function traceOf(tracer: WindowTracer, { operations, calls }: Batch<WindowCall>): WindowTrace | undefined {
  const traces = calls.flatMap(({ trace }): readonly CallTrace[] => (trace === undefined ? [] : [trace]));
  if (traces.length === 0) return undefined;
  return tracer.beginWindow({ operations: operations.length, calls: calls.length }, traces);
}
