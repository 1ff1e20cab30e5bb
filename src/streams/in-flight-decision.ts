import type { Decision } from '../limiter/decision';
import { DecisionError, type DecisionErrorCode, timedOut } from '../counting/decision-error';
import { type Operation, areAnsweredByPolicies } from '../counting/operation';
import type { RateLimitRequest } from '../limiter/request';
import type { Verdict } from '../limiter/verdict';
import type { AnsweringPolicy } from '../rules/rule-config';
import type { Counter } from '../statistics/counter';
import type { Caller, DecisionObserver, PendingDecision, WindowCall } from './ports/decide';
import type { EndedReservation, ReserveCall } from './ports/reservations';
import type { CallTrace } from './ports/tracer';

/** Receives each outcome before its observer does, for logs. */
export interface DecisionLog {
  decided(decision: Decision, outcome: Verdict | DecisionError, source: DecisionSource): void;
  /** A request that was rejected before it was decided. */
  rejected(request: RateLimitRequest, error: DecisionError, source: DecisionSource): void;
  /** A reservation that was settled or cancelled. */
  ended(request: RateLimitRequest, reservation: EndedReservation, source: DecisionSource): void;
}

/** Where a decision comes from. */
export interface DecisionSource extends Pick<DecisionObserver, 'caller' | 'trace'> {
  /** The reservation that was asked for or has ended; undefined for other calls. */
  readonly reservation?: LoggedReservation | undefined;
}

/** A reservation in logs: its id, and how it was asked for. */
export interface LoggedReservation extends Partial<Pick<ReserveCall, 'ttl' | 'onExpiry'>> {
  readonly id: string;
}

export interface OutcomeCallbacks {
  /**
   * Receives what an observer throws, and every error that is not a `DecisionError`. Other decisions are not affected.
   */
  readonly onInternalError: (error: unknown) => void;
  /** Undefined when decisions are not logged, so that the decision path does not pay for it. */
  readonly decisionLog?: DecisionLog | undefined;
  /**
   * Receives each call that is rejected for its content, or because no rules are loaded, which `service_error` counts.
   */
  readonly onRejected?: ((reason: string, peer: Caller['peer']) => void) | undefined;
  /** Called when the store has not counted reports of a call, or perhaps not. */
  readonly onReportsLost?: (() => void) | undefined;
}

export interface OutcomeCounters {
  /** Counts the decisions that a policy has decided without counts, at least in part. */
  readonly byPolicy: Readonly<Record<AnsweringPolicy, Counter>>;
  /** Counts the decisions that the store failed, or that were cancelled while they needed it. */
  readonly storeErrors: Counter;
  /** Counts the decisions that the store rejected for their content. */
  readonly serviceErrors: Counter;
  /** Counts the reports that the store has not counted, or perhaps not. */
  readonly lostReports: Counter;
}

/** Why calls are rejected before they are decided. */
const REJECTIONS: ReadonlySet<DecisionErrorCode> = new Set(['invalid_request', 'no_configuration', 'too_much_work']);

/** Delivers outcomes to observers, for all decisions of a service. */
export class ResponseDelivery {
  readonly #counters: OutcomeCounters;
  readonly #callbacks: OutcomeCallbacks;
  #log: DecisionLog | undefined;

  constructor(counters: OutcomeCounters, callbacks: OutcomeCallbacks) {
    this.#counters = counters;
    this.#callbacks = callbacks;
    this.#log = callbacks.decisionLog;
  }

  /** Replaces the log of decisions; undefined: they are not logged. */
  readonly logTo = (log: DecisionLog | undefined): void => void (this.#log = log);

  /** Delivers the outcome of a decision, unless nobody waits for it any more. */
  // oxlint-disable-next-line max-params -- the decision path: an options object would be an allocation per call
  deliverDecided(
    decision: Decision,
    observer: DecisionObserver,
    outcome: Verdict | DecisionError,
    isAwaited: boolean,
  ): void {
    for (const policy of decision.policies) this.#counters.byPolicy[policy].add(1);
    if (outcome instanceof DecisionError || decision.policies.length > 0) this.#countLost(decision.lostReports);
    this.#log?.decided(decision, outcome, observer);
    if (isAwaited) this.#deliver(observer, outcome);
  }

  #countLost(reports: number): void {
    if (reports === 0) return;
    this.#counters.lostReports.add(reports);
    this.#callbacks.onReportsLost?.();
  }

  /** Delivers the error of a request that was rejected before it was decided. */
  reject(request: RateLimitRequest, observer: DecisionObserver, error: DecisionError): void {
    this.#log?.rejected(request, error, observer);
    if (REJECTIONS.has(error.code)) this.#callbacks.onRejected?.(error.message, observer.caller?.peer);
    this.#deliver(observer, error);
  }

  /** What the observer throws is reported, so that the other calls of its window still get their outcome. */
  #deliver(observer: DecisionObserver, outcome: Verdict | DecisionError): void {
    try {
      if (outcome instanceof DecisionError) observer.error(outcome);
      else observer.verdict(outcome);
    } catch (error) {
      this.#callbacks.onInternalError(error);
    }
  }

  /**
   * What was thrown, for a caller: the details of an internal error are reported, and the caller learns only that there
   * was one.
   */
  errorOf(thrown: unknown): DecisionError {
    if (thrown instanceof DecisionError) return thrown;
    this.#callbacks.onInternalError(thrown);
    return new DecisionError('store_failed', 'the decision failed with an internal error', { cause: thrown });
  }

  countStoreError(): void {
    this.#counters.storeErrors.add(1);
  }

  /** Counts a decision that failed on its way to the store and back. */
  countFailure({ code, message }: DecisionError, observer: DecisionObserver): void {
    const isRejected = code === 'invalid_request';
    (isRejected ? this.#counters.serviceErrors : this.#counters.storeErrors).add(1);
    if (isRejected) this.#callbacks.onRejected?.(message, observer.caller?.peer);
  }
}

/** Once for all: while a store hangs, every call needs it. */
const NOT_IN_TIME = timedOut();

/**
 * A decision from its request to its outcome: a call of a pipeline window, and the handle with which its caller
 * cancels.
 */
export class InFlightDecision implements WindowCall, PendingDecision {
  /** Parts that are not sent yet are not needed any more. */
  isCancelled = false;
  /** The caller does not wait any more. */
  #isAbandoned = false;
  #isAnswered = false;
  /** Policies have answered before the store: what it had neither counted nor failed by then. */
  #late: readonly Operation[] | undefined;
  /** The operations of the call that need the store. */
  operations: readonly Operation[];
  readonly #decision: Decision;
  readonly #observer: DecisionObserver;
  readonly #delivery: ResponseDelivery;

  // oxlint-disable-next-line max-params -- the decision path: an options object would be an allocation per call
  constructor(
    decision: Decision,
    operations: readonly Operation[],
    observer: DecisionObserver,
    delivery: ResponseDelivery,
  ) {
    this.operations = operations;
    this.#decision = decision;
    this.#observer = observer;
    this.#delivery = delivery;
  }

  get trace(): CallTrace | undefined {
    return this.#observer.trace;
  }

  /** Whether nothing is to be decided any more. */
  get isOver(): boolean {
    return this.#isAnswered || this.isCancelled;
  }

  /**
   * Counts as a store error whatever the cause: a client that waits until its deadline may cancel just before it. What
   * is reported has been used, so that a call with a report is counted nevertheless.
   */
  cancel(): void {
    this.#isAbandoned = true;
    this.isCancelled = !hasReport(this.operations);
    this.#decision.failed();
    this.#delivery.countStoreError();
  }

  /** Counts the operations by a store that does so before it returns, and settles. */
  settleBy(countNow: (operations: readonly Operation[]) => void): void {
    try {
      countNow(this.operations);
    } catch (error) {
      this.fail(this.#delivery.errorOf(error));
      return;
    }
    this.settle();
  }

  /**
   * The call does not wait longer: what is not counted yet is decided by policy, if no policy is `error`, and not sent
   * if it was not.
   */
  expire(): void {
    if (this.#isAnswered || this.isCancelled || !areAnsweredByPolicies(this.operations)) return;
    for (const operation of this.operations) if (operation.countAfter < 0) operation.failure ??= NOT_IN_TIME;
    const late = this.operations.filter(({ failure }) => failure === NOT_IN_TIME);
    this.settle();
    this.isCancelled = true;
    this.#late = late;
  }

  /** All operations have their count or their failure. */
  settle(): void {
    if (this.#late !== undefined) this.#decision.endedLate(this.#late);
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    let outcome: Verdict | DecisionError;
    try {
      outcome = this.#decision.verdict();
    } catch (error) {
      outcome = this.#delivery.errorOf(error);
    }
    this.#deliver(outcome);
  }

  fail(error: DecisionError): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#decision.failed();
    // One that is abandoned was counted as a failure then.
    if (!this.#isAbandoned) this.#delivery.countFailure(error, this.#observer);
    this.#deliver(error);
  }

  #deliver(outcome: Verdict | DecisionError): void {
    if (this.#isAbandoned && !hasReport(this.operations)) return;
    this.#delivery.deliverDecided(this.#decision, this.#observer, outcome, !this.#isAbandoned);
  }
}

/** Whether the operations of a call count hits that have been used. */
export function hasReport(operations: readonly Operation[]): boolean {
  for (const { purpose } of operations) if (purpose === 'report') return true;
  return false;
}
