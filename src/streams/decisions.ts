import type { Observable } from 'rxjs';
import { type Batch, failCall } from '../counting/batch';
import { type Operation, areAnsweredByPolicies } from '../counting/operation';
import type { Decision } from '../limiter/decision';
import { DecisionError } from '../counting/decision-error';
import type { Limiter } from '../limiter/limiter';
import type { AnsweringPolicy } from '../rules/rule-config';
import type { Ruleset } from '../rules/ruleset';
import type { Counter } from '../statistics/counter';
import { SERVICE_ERRORS, STORE_ERRORS, type Statistics } from '../statistics/statistics';
import { dispatch } from './dispatch';
import { type DecisionTimeouts, Expiries } from './deadline';
import { Lanes } from './lanes';
import {
  type OutcomeCallbacks,
  type OutcomeCounters,
  ResponseDelivery,
  InFlightDecision,
  hasReport,
} from './in-flight-decision';
import type { Counters } from './ports/counters';
import type { ApplyOperations, Decide, PendingDecision, WindowCall } from './ports/decide';
import type { LaneTripsOptions } from './trip';

/** What decides, and sends what needs the store; `local` and `leases` are those of the limiter. */
export interface DecisionsOptions
  extends OutcomeCallbacks, Pick<LaneTripsOptions, 'local' | 'leases' | 'scheduler' | 'timeouts' | 'tracer'> {
  readonly limiter: Limiter;
  /** The active rules, undefined before the first were loaded; read once per request. */
  readonly ruleset: () => Ruleset | undefined;
  readonly counters: Counters;
  readonly statistics: Statistics;
}

export interface Decisions {
  readonly decide: Decide;
  /** See {@link ApplyOperations}. */
  readonly apply: ApplyOperations;
  /**
   * Gives back the leased hits of counters, by key, before they are changed in another way. Calls back when that is
   * done, or has failed.
   */
  readonly release: (keys: readonly string[], released: () => void) => void;
  /**
   * The pipeline. Decisions that are gathered flow while there is a subscriber; there may be only one. Emits a window
   * when it has settled, completes when all have after {@link complete}. Never fails: a window that fails fails its own
   * calls.
   */
  readonly windows$: Observable<Batch>;
  /** See {@link ResponseDelivery.logTo}. */
  readonly logTo: ResponseDelivery['logTo'];
  /** Accepts no more requests: further ones fail with `shutting_down`, those in flight are still answered. */
  complete(): void;
}

/**
 * The decision path. A request is resolved against the rules at once; decisions that need the store are gathered into
 * the pipeline windows of their lanes, each window goes to its server as one batch, and its counts become verdicts. A
 * store in this process counts each decision at once.
 *
 * A request passes through plain calls up to its lane and from `settle` on, as an operator chain per request would cost
 * more than the decision. RxJS carries windows.
 */
export function decisions(options: DecisionsOptions): Decisions {
  const { limiter, local, leases, ruleset, counters, scheduler, statistics, timeouts = {}, tracer } = options;
  const delivery = new ResponseDelivery(outcomeCounters(statistics), options);
  const expiries = new Expiries(scheduler);
  const lanes = new Lanes({
    ...{ scheduler, timeouts, expiries, tracer, local, leases },
    onBatch: countBatches(statistics),
    errorOf: (thrown) => delivery.errorOf(thrown),
    onRetired: (lane) => local?.removeServer(lane),
  });
  leases?.connect({ send: sendAlone, later: (work, milliseconds) => scheduler.schedule(work, milliseconds) });
  // Trips to the store are traced by window.
  const countNow = tracer === undefined ? counters.countNow : undefined;
  let isOpen = true;

  function decide(...[request, observer]: Parameters<Decide>): PendingDecision {
    const rules = ruleset();
    let decision: Decision;
    try {
      if (!isOpen) throw new DecisionError('shutting_down', 'the service is shutting down');
      decision = limiter.begin(request, rules, scheduler.now());
    } catch (error) {
      delivery.reject(request, observer, delivery.errorOf(error));
      return ANSWERED;
    }
    const operations = leases?.decide(decision.operations, rules) ?? decision.operations;
    const pending = new InFlightDecision(decision, operations, observer, delivery);
    if (operations.length === 0) pending.settle();
    else if (countNow !== undefined) pending.settleBy(countNow);
    else {
      if (expiresEarly(operations, observer.timeToAnswer, timeouts)) expiries.add(pending, observer.timeToAnswer!);
      const queue = leases?.queueFor(operations);
      if (queue === undefined) dispatch(pending, counters, lanes);
      // No arrow function: that would cost every call the memory for what it closes over.
      else queue.push(resume.bind(undefined, pending));
    }
    return pending;
  }

  /**
   * The lease that a call has waited for is there, or there is none. @param error the store has not answered that it
   * was asked for
   */
  function resume(pending: InFlightDecision, error?: DecisionError): void {
    if (pending.isOver) return;
    pending.operations = leases!.decide(pending.operations, ruleset());
    if (pending.operations.length === 0) pending.settle();
    // As if it had been sent with that, so that no call waits for the store twice.
    else if (error !== undefined) failCall(pending, error);
    else dispatch(pending, counters, lanes);
  }

  const apply: ApplyOperations = (operations, { settled, failed }) => {
    if (!isOpen) return failed(new DecisionError('shutting_down', 'the service is shutting down'));
    if (operations.length === 0) return settled();
    sendAlone(operations, settled, failed);
  };

  /** Sends operations of no call. */
  function sendAlone(operations: readonly Operation[], settle: () => void, fail: WindowCall['fail'] = settle): void {
    dispatch({ operations, isCancelled: false, settle, fail }, counters, lanes);
  }

  function complete(): void {
    isOpen = false;
    leases?.giveBackAll();
    lanes.complete();
  }

  const release: Decisions['release'] = (keys, released) => (leases ? leases.giveBack(keys, released) : released());

  return { decide, apply, release, logTo: delivery.logTo, windows$: lanes.windows$, complete };
}

/**
 * Whether policies answer a call before its caller has given up, because that is before they answer every call. What is
 * reported is to be counted, which is more than the answer.
 */
function expiresEarly(
  operations: readonly Operation[],
  timeToAnswer = Infinity,
  { byPolicy = 0 }: DecisionTimeouts,
): boolean {
  return timeToAnswer < byPolicy && areAnsweredByPolicies(operations) && !hasReport(operations);
}

function outcomeCounters(statistics: Statistics): OutcomeCounters {
  function answersBy(policy: AnsweringPolicy): Counter {
    return statistics.counter(`ratelimit.store.answers_by_policy.__policy=${policy}`);
  }
  return {
    storeErrors: statistics.counter(STORE_ERRORS),
    serviceErrors: statistics.counter(SERVICE_ERRORS),
    lostReports: statistics.counter('ratelimit.store.lost_reports'),
    byPolicy: { allow: answersBy('allow'), deny: answersBy('deny'), local: answersBy('local') },
  };
}

/** A decision whose outcome was delivered before it could be cancelled. */
const ANSWERED: PendingDecision = { cancel: () => undefined };

/** Counts what windows merge. @returns called with each batch */
function countBatches(statistics: Statistics): (batch: Batch) => void {
  const mergedHits = statistics.counter('ratelimit.pipeline.merged_hits');
  let lastBatch = 0;
  statistics.gauge('ratelimit.pipeline.window_size', () => lastBatch);
  return (batch) => {
    lastBatch = batch.operations.length;
    mergedHits.add(batch.mergedHits);
  };
}
