import { type Observable, type SchedulerLike, Subject, catchError, identity, map, of } from 'rxjs';
import { DecisionError } from '../limiter/decision-error';
import type { Decision } from '../limiter/decision';
import type { Limiter } from '../limiter/limiter';
import type { Ruleset } from '../rules/ruleset';
import type { Counter } from '../statistics/counter';
import { STORE_ERRORS, type Statistics } from '../statistics/statistics';
import type { Counters } from './ports/counters';
import type { DecisionObserver, CancelCause, Decide, PendingDecision } from './ports/decide';
import { pipelineWindow } from './pipeline-window';
import { tracedTrip } from './traced-trip';
import type { CallTrace, WindowTracer } from './ports/tracer';
import { type WindowCall, Window } from './window';

export interface DecisionsOptions {
  readonly limiter: Limiter;
  /** The rules in force, undefined before the first were loaded; read once for each request. */
  readonly ruleset: () => Ruleset | undefined;
  readonly counters: Counters;
  readonly statistics: Statistics;
  /** How long a pipeline window gathers, in milliseconds: KVSTORE_PIPELINE_WINDOW. */
  readonly windowSpan: number;
  readonly windowsInFlight: number;
  /** What becomes of calls while as many windows are under way; undefined: they wait for one to be done. */
  readonly whenFull?: WhenFull | undefined;
  /** Closes windows, and tells the time. */
  readonly scheduler: SchedulerLike;
  /** Traces windows that carry askers with a trace; without, nobody looks for one. */
  readonly tracer?: WindowTracer | undefined;
  /** Told of what must not happen: an asker that throws, a defect of ours. The decisions go on. */
  readonly onDefect: (error: unknown) => void;
}

/** KVSTORE_POOL_ON_EMPTY_BEHAVIOR and _WAIT_DURATION. */
export interface WhenFull {
  /** `exceed`: their window is handed to the store all the same; `fail`: they fail with `store_pool_empty`. */
  readonly behavior: 'exceed' | 'fail';
  /** Milliseconds that they wait before. */
  readonly after: number;
}

export interface Decisions {
  readonly decide: Decide;
  /**
   * The pipeline: decisions that need the store flow while somebody is subscribed, once. Emits when a window has been
   * answered, completes when all have been after {@link complete}. Never fails: a window that fails fails its calls.
   */
  readonly windows$: Observable<Window>;
  /** Takes no more questions, answering further ones with `shutting_down`; those under way are still answered. */
  complete(): void;
}

/**
 * The decision path: a request is resolved against the rules at once; what needs the store is gathered into pipeline windows
 * with the requests beside it; counts come back and become verdicts.
 */
export function decisions(options: DecisionsOptions): Decisions {
  const { limiter, ruleset, counters, statistics, scheduler, tracer, onDefect } = options;
  const storeErrors = statistics.counter(STORE_ERRORS);
  const mergedHits = statistics.counter('ratelimit.pipeline.merged_hits');
  let lastWindow = 0;
  statistics.gauge('ratelimit.pipeline.window_size', () => lastWindow);

  const waiting$ = new Subject<Pending>();
  let isOpen = true;

  function ship(calls: readonly WindowCall[]): Observable<Window> {
    const window = new Window(calls);
    lastWindow = window.batch.length;
    mergedHits.add(window.mergedHits);
    if (window.batch.length === 0) return of(window);
    return counters.apply(window.batch).pipe(
      tracer === undefined ? identity : tracedTrip(tracer, window, calls),
      map((counts) => {
        window.settle(counts);
        return window;
      }),
      catchError((error: unknown) => {
        window.fail(asDecisionError(error, onDefect));
        return of(window);
      }),
    );
  }

  const windows$ = waiting$.pipe(
    pipelineWindow(
      {
        span: options.windowSpan,
        scheduler,
        windowsInFlight: options.windowsInFlight,
        overflow: options.whenFull && {
          after: options.whenFull.after,
          ship: options.whenFull.behavior === 'exceed' ? ship : refuse,
        },
      },
      ship,
    ),
  );

  const decide: Decide = (request, asker) => {
    let decision: Decision;
    try {
      if (!isOpen) throw new DecisionError('shutting_down', 'the service is shutting down');
      decision = limiter.begin(request, ruleset(), scheduler.now());
    } catch (error) {
      answer(asker, asDecisionError(error, onDefect), onDefect);
      return ANSWERED;
    }
    const pending = new Pending(decision, asker, storeErrors, onDefect);
    if (decision.operations.length === 0) pending.settle();
    else waiting$.next(pending);
    return pending;
  };

  return {
    decide,
    windows$,
    complete: () => {
      isOpen = false;
      waiting$.complete();
    },
  };
}

/** Fails calls for which no window could be under way. */
function refuse(calls: readonly WindowCall[]): Observable<Window> {
  const window = new Window(calls);
  window.fail(new DecisionError('store_pool_empty', 'every connection to the counter store was busy'));
  return of(window);
}

/** A question that was answered before it could be cancelled. */
const ANSWERED: PendingDecision = { cancel: () => undefined };

/** A decision that waits for its window. */
class Pending implements WindowCall, PendingDecision {
  readonly #decision: Decision;
  readonly #asker: DecisionObserver;
  readonly #storeErrors: Counter;
  readonly #onDefect: (error: unknown) => void;
  isCancelled = false;
  readonly operations: Decision['operations'];

  constructor(decision: Decision, asker: DecisionObserver, storeErrors: Counter, onDefect: (error: unknown) => void) {
    this.#decision = decision;
    this.#asker = asker;
    this.#storeErrors = storeErrors;
    this.#onDefect = onDefect;
    this.operations = decision.operations;
  }

  get trace(): CallTrace | undefined {
    return this.#asker.trace;
  }

  cancel(cause: CancelCause): void {
    this.isCancelled = true;
    if (cause === 'deadline_exceeded') this.#storeErrors.add(1);
  }

  settle(): void {
    let outcome;
    try {
      outcome = this.#decision.verdict();
    } catch (error) {
      outcome = asDecisionError(error, this.#onDefect);
    }
    if (!this.isCancelled) answer(this.#asker, outcome, this.#onDefect);
  }

  fail(error: DecisionError): void {
    if (this.isCancelled) return;
    this.#storeErrors.add(1);
    answer(this.#asker, error, this.#onDefect);
  }
}

/** Tells the asker; one that throws must not take the rest of its window with it. */
function answer(
  asker: DecisionObserver,
  outcome: DecisionError | Parameters<DecisionObserver['verdict']>[0],
  onDefect: (error: unknown) => void,
): void {
  try {
    if (outcome instanceof DecisionError) asker.error(outcome);
    else asker.verdict(outcome);
  } catch (error) {
    onDefect(error);
  }
}

/** What is not a DecisionError is a defect of ours: the caller is told no more than that, the log the rest. */
function asDecisionError(error: unknown, onDefect: (error: unknown) => void): DecisionError {
  if (error instanceof DecisionError) return error;
  onDefect(error);
  return new DecisionError('store_failed', 'the decision failed for an internal reason', { cause: error });
}
