/** Why a call has no verdict. Being over a limit is a verdict, never an error. */
export type DecisionErrorCode =
  /** The request is invalid; a retry does not help. */
  | 'invalid_request'
  /** No configuration has been loaded yet. */
  | 'no_configuration'
  /** Deciding the request would take more work than one call may cause. */
  | 'too_much_work'
  /** The counter store failed. */
  | 'store_failed'
  /** The counter store did not reply in time. */
  | 'store_timeout'
  /** No connection to the counter store was free, and the settings require an error in that case. */
  | 'store_pool_empty'
  /** The process is shutting down. */
  | 'shutting_down';

/**
 * The error of a call without a verdict. The message is a short text for the caller and contains no credentials;
 * `cause` is only for the log.
 */
export class DecisionError extends Error {
  override readonly name = 'DecisionError';

  /** The store cannot count this key; the error says nothing about others. */
  readonly isKeyError: boolean;
  /** The store has certainly not counted: it was not sent anything, or has rejected it. */
  readonly isUncounted: boolean;
  /**
   * The store can count it soon: it is to be sent again after {@link TRY_AGAIN_AFTER}, until the error is another one.
   */
  readonly isTryAgain: boolean;

  constructor(
    readonly code: DecisionErrorCode,
    message: string,
    options?: { cause?: unknown; isKeyError?: boolean; isUncounted?: boolean; isTryAgain?: boolean },
  ) {
    super(message, options);
    this.isKeyError = options?.isKeyError ?? false;
    this.isUncounted = options?.isUncounted ?? false;
    this.isTryAgain = options?.isTryAgain ?? false;
  }
}

/** In milliseconds. */
export const TRY_AGAIN_AFTER = 20;

/** The store has not answered within the time of a call, a window or a connection. */
export function timedOut(options: { readonly isUncounted?: boolean } = {}): DecisionError {
  return new DecisionError('store_timeout', 'the counter store did not answer in time', options);
}

/** No connection of the pool was free in time, and the settings require an error then. */
export function poolEmpty(): DecisionError {
  return new DecisionError('store_pool_empty', 'every connection to the counter store was busy', { isUncounted: true });
}
