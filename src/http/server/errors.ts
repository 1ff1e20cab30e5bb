import type { DecisionErrorCode } from '../../limiter/decision-error';

/** An answer that is an error of the caller's or a lack of ours: its status, and what the body says about it. */
export class HttpError extends Error {
  override readonly name = 'Refusal';

  /**
   * @param code for programs, one word of lower case letters and `_`
   * @param message for people, one sentence
   */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** The caller has closed its connection: nobody is left to answer. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
}

/** A body that is no RateLimitRequest in proto3 JSON. The message says where and what is allowed, for the caller. */
export class MalformedBody extends Error {
  override readonly name = 'MalformedBody';
}

/** The HTTP status of a call that got no verdict. A new code without a status does not compile. */
export const DECISION_STATUS: Readonly<Record<DecisionErrorCode, number>> = {
  invalid_request: 400,
  no_configuration: 503,
  store_failed: 503,
  store_timeout: 503,
  store_pool_empty: 503,
  shutting_down: 503,
};
