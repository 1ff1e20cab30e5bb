import type { DecisionError } from '../limiter/decision-error';
import type { RateLimitRequest } from '../limiter/request';
import type { Verdict } from '../limiter/verdict';

/** Who asked: called exactly once with either, now or later, unless the question was cancelled before. */
export interface Asker {
  verdict(verdict: Verdict): void;
  error(error: DecisionError): void;
}

/** A question on its way. */
export interface Question {
  /** The asker has gone. What has not been handed to the store yet is not counted; what has, stays counted. */
  cancel(): void;
}

/** Answers one request. Never throws: every failure reaches the asker as an error. */
export type Decide = (request: RateLimitRequest, asker: Asker) => Question;
