import type { ErrorCode } from './protocol';
import type { Refusal } from '../limits/refusals';

/**
 * The peer broke the protocol, or a limit, in a way that ends the connection (RFC 9113, section 5.4.1). Thrown while a
 * frame is read, caught in one place, which sends GOAWAY with this code.
 */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';

  /** `message` becomes the debug data of GOAWAY: it tells the peer's people what was wrong. */
  constructor(
    readonly code: ErrorCode,
    readonly refusal: Refusal,
    message: string,
  ) {
    super(message);
  }
}
