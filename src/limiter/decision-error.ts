/** Why a call got no verdict. Being over a limit is a verdict, never an error. */
export type DecisionErrorCode =
  /** The request itself is wrong; asking again does not help. */
  | 'invalid_request'
  /** No configuration has been loaded yet. */
  | 'no_configuration'
  /** The counter store failed. */
  | 'store_failed'
  /** The counter store did not answer in time. */
  | 'store_timeout'
  /** No connection to the counter store was free, and the settings ask for an error then. */
  | 'store_pool_empty'
  /** The process is ending. */
  | 'shutting_down';

/**
 * A call that got no verdict. The message is one sentence for the caller and holds no credentials; `cause` is for the
 * log alone.
 */
export class DecisionError extends Error {
  override readonly name = 'DecisionError';

  constructor(
    readonly code: DecisionErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}
