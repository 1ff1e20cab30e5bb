import type { Decision } from '../limiter/decision';
import { DecisionError } from '../limiter/decision-error';
import type { Verdict } from '../limiter/verdict';
import type { Counter } from '../statistics/counter';
import type { CancelCause, DecisionObserver, PendingDecision } from './ports/decide';
import type { CallTrace } from './ports/tracer';
import type { WindowCall } from './window';

/** Delivers outcomes to observers, for all decisions of a service. */
export class Outcomes {
  readonly #storeErrors: Counter;
  readonly #onInternalError: (error: unknown) => void;

  /**
   * @param storeErrors counts the decisions that the store failed
   * @param onInternalError receives what an observer throws, and every error that is not a `DecisionError`
   */
  constructor(storeErrors: Counter, onInternalError: (error: unknown) => void) {
    this.#storeErrors = storeErrors;
    this.#onInternalError = onInternalError;
  }

  /** Calls the observer. What it throws is reported, so that the other calls of its window still get their outcome. */
  deliver(observer: DecisionObserver, outcome: Verdict | DecisionError): void {
    try {
      if (outcome instanceof DecisionError) observer.error(outcome);
      else observer.verdict(outcome);
    } catch (error) {
      this.#onInternalError(error);
    }
  }

  /** What was thrown, for a caller: the details of an internal error are reported, and the caller learns only that there was one. */
  errorOf(thrown: unknown): DecisionError {
    if (thrown instanceof DecisionError) return thrown;
    this.#onInternalError(thrown);
    return new DecisionError('store_failed', 'the decision failed with an internal error', { cause: thrown });
  }

  countStoreError(): void {
    this.#storeErrors.add(1);
  }
}

/** A decision from its request to its outcome: a call of a pipeline window, and the handle with which its caller cancels. */
export class Pending implements WindowCall, PendingDecision {
  isCancelled = false;
  readonly operations: Decision['operations'];
  readonly #decision: Decision;
  readonly #observer: DecisionObserver;
  readonly #outcomes: Outcomes;

  constructor(decision: Decision, observer: DecisionObserver, outcomes: Outcomes) {
    this.operations = decision.operations;
    this.#decision = decision;
    this.#observer = observer;
    this.#outcomes = outcomes;
  }

  get trace(): CallTrace | undefined {
    return this.#observer.trace;
  }

  cancel(cause: CancelCause): void {
    this.isCancelled = true;
    if (cause === 'deadline_exceeded') this.#outcomes.countStoreError();
  }

  settle(): void {
    let outcome: Verdict | DecisionError;
    try {
      outcome = this.#decision.verdict();
    } catch (error) {
      outcome = this.#outcomes.errorOf(error);
    }
    if (!this.isCancelled) this.#outcomes.deliver(this.#observer, outcome);
  }

  fail(error: DecisionError): void {
    if (this.isCancelled) return;
    this.#outcomes.countStoreError();
    this.#outcomes.deliver(this.#observer, error);
  }
}
