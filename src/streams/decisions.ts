import { type Observable, type SchedulerLike, Subject, catchError, identity, map, of, tap } from 'rxjs';
import type { Decision } from '../limiter/decision';
import { DecisionError } from '../limiter/decision-error';
import type { Limiter } from '../limiter/limiter';
import type { Ruleset } from '../rules/ruleset';
import { STORE_ERRORS, type Statistics } from '../statistics/statistics';
import { Outcomes, Pending } from './pending';
import { type SendWindow, pipelineWindow } from './pipeline-window';
import type { Counters } from './ports/counters';
import type { Decide, DecisionObserver, PendingDecision } from './ports/decide';
import type { WindowTracer } from './ports/tracer';
import { tracedTrip } from './traced-trip';
import { Window, type WindowCall } from './window';

export interface DecisionsOptions {
  readonly limiter: Limiter;
  /** The active rules, undefined before the first were loaded; read once per request. */
  readonly ruleset: () => Ruleset | undefined;
  readonly counters: Counters;
  readonly statistics: Statistics;
  /** How long a pipeline window gathers, in milliseconds: KVSTORE_PIPELINE_WINDOW. */
  readonly windowSpan: number;
  readonly windowsInFlight: number;
  /** What happens to calls while `windowsInFlight` windows are in flight; undefined: they wait until one is done. */
  readonly whenFull?: WhenFull | undefined;
  /** Closes windows, and gives the time. */
  readonly scheduler: SchedulerLike;
  /** Traces windows that carry calls with a trace; undefined: no call is checked for one. */
  readonly tracer?: WindowTracer | undefined;
  /** Receives what must not happen: an observer that throws, a bug. Other decisions are not affected. */
  readonly onInternalError: (error: unknown) => void;
}

/** KVSTORE_POOL_ON_EMPTY_BEHAVIOR and _WAIT_DURATION. */
export interface WhenFull {
  /** `exceed`: their window goes to the store over the bound; `fail`: they fail with `store_pool_empty`. */
  readonly behavior: 'exceed' | 'fail';
  /** Milliseconds that they wait first. */
  readonly after: number;
}

export interface Decisions {
  readonly decide: Decide;
  /**
   * The pipeline. Decisions that need the store flow while there is a subscriber; there may be only one. Emits a window when it
   * has settled, completes when all have after {@link complete}. Never fails: a window that fails fails its own calls.
   */
  readonly windows$: Observable<Window>;
  /** Accepts no more requests: further ones fail with `shutting_down`, those in flight are still answered. */
  complete(): void;
}

/**
 * The decision path. A request is resolved against the rules at once; decisions that need the store are gathered into pipeline
 * windows, each window goes to the store as one batch, and its counts become verdicts.
 *
 * A request passes through plain calls up to `requests$` and from `settle` on, as an operator chain of its own per request would
 * cost more than the decision. RxJS carries windows.
 */
export function decisions(options: DecisionsOptions): Decisions {
  const { limiter, ruleset, scheduler, statistics, whenFull } = options;
  const outcomes = new Outcomes(statistics.counter(STORE_ERRORS), options.onInternalError);
  const requests$ = new Subject<Pending>();
  const send = sendToStore(options, outcomes);
  const windows$ = requests$.pipe(
    pipelineWindow(
      {
        span: options.windowSpan,
        scheduler,
        windowsInFlight: options.windowsInFlight,
        overflow: whenFull && { after: whenFull.after, send: whenFull.behavior === 'exceed' ? send : failPoolEmpty },
      },
      send,
    ),
  );
  let isOpen = true;

  function decide(...[request, observer]: Parameters<Decide>): PendingDecision {
    let decision: Decision;
    try {
      if (!isOpen) throw new DecisionError('shutting_down', 'the service is shutting down');
      decision = limiter.begin(request, ruleset(), scheduler.now());
    } catch (error) {
      return rejected(observer, error);
    }
    const pending = new Pending(decision, observer, outcomes);
    if (decision.operations.length === 0) pending.settle();
    else requests$.next(pending);
    return pending;
  }

  function rejected(observer: DecisionObserver, error: unknown): PendingDecision {
    outcomes.deliver(observer, outcomes.errorOf(error));
    return ANSWERED;
  }

  function complete(): void {
    isOpen = false;
    requests$.complete();
  }

  return { decide, windows$, complete };
}

/** A decision whose outcome was delivered before it could be cancelled. */
const ANSWERED: PendingDecision = { cancel: () => undefined };

/** Sends the calls of a closed window to the store as one batch. Emits the window when each call has its outcome; never fails. */
function sendToStore(
  { counters, statistics, tracer }: DecisionsOptions,
  outcomes: Outcomes,
): SendWindow<WindowCall, Window> {
  const mergedHits = statistics.counter('ratelimit.pipeline.merged_hits');
  let lastBatch = 0;
  statistics.gauge('ratelimit.pipeline.window_size', () => lastBatch);

  return (calls) => {
    const window = new Window(calls);
    lastBatch = window.batch.length;
    mergedHits.add(window.mergedHits);
    if (window.batch.length === 0) return of(window);
    return counters.apply(window.batch).pipe(
      tracer === undefined ? identity : tracedTrip(tracer, window, calls),
      tap((counts) => window.settle(counts)),
      catchError((error: unknown) => {
        window.fail(outcomes.errorOf(error));
        return of(window);
      }),
      map(() => window),
    );
  };
}

/** Fails the calls of a window for which the store had no free connection. */
function failPoolEmpty(calls: readonly WindowCall[]): Observable<Window> {
  const window = new Window(calls);
  window.fail(new DecisionError('store_pool_empty', 'every connection to the counter store was busy'));
  return of(window);
}
