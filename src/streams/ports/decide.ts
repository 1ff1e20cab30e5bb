import type { DecisionError } from '../../limiter/decision-error';
import type { RateLimitRequest } from '../../limiter/request';
import type { Verdict } from '../../limiter/verdict';
import type { CallTrace } from './tracer';

/** Who asked: called exactly once with either, now or later, unless the question was cancelled before. */
export interface DecisionObserver {
  verdict(verdict: Verdict): void;
  error(error: DecisionError): void;
  /** Told of what the store is asked for this question, when somebody wants to know. */
  readonly trace?: CallTrace | undefined;
}

/** Why nobody waits for an answer any more: the caller's deadline has passed, or the caller has gone. */
export type CancelCause = 'deadline_exceeded' | 'cancelled';

/** A question on its way. */
export interface PendingDecision {
  /**
   * Takes the question back; called at most once, and not after the answer. What has not been handed to the store yet is not
   * counted there; what has, stays counted.
   */
  cancel(cause: CancelCause): void;
}

/** Answers one request. Never throws: every failure reaches the asker as an error. */
export type Decide = (request: RateLimitRequest, asker: DecisionObserver) => PendingDecision;
