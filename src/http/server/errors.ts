import type { DecisionErrorCode } from '../../limiter/decision-error';

export interface ErrorResponse {
  readonly status: number;
  /** Machine-readable: lower-case letters and `_`. */
  readonly code: string;
  /** Human-readable: one sentence. */
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error that is sent to the caller. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly response: ErrorResponse;

  constructor(response: ErrorResponse, options?: ErrorOptions) {
    super(response.message, options);
    this.response = response;
  }
}

/** The caller has closed its connection: no response can be sent. */
export class CallerDisconnected extends Error {
  override readonly name = 'CallerDisconnected';
}

/** A body that is not a RateLimitRequest in proto3 JSON. The message, for the caller, states where and what is expected. */
export class MalformedBody extends Error {
  override readonly name = 'MalformedBody';
}

/** The HTTP status of a request without a verdict. */
export const DECISION_STATUS: Readonly<Record<DecisionErrorCode, number>> = {
  invalid_request: 400,
  no_configuration: 503,
  too_much_work: 413,
  store_failed: 503,
  store_timeout: 503,
  store_pool_empty: 503,
  shutting_down: 503,
};
