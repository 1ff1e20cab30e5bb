import type { Rejection } from '../limits/rejections';
import { ErrorCode } from './protocol';

/**
 * A connection error (RFC 9113, section 5.4.1): the peer violated the protocol or exceeded a limit. It is thrown while a
 * frame is read and caught in one place, which sends GOAWAY with this code.
 */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';

  /** `message` becomes the debug data of GOAWAY. */
  constructor(
    readonly code: ErrorCode,
    readonly rejection: Rejection,
    message: string,
  ) {
    super(message);
  }
}

/** Ends the connection with PROTOCOL_ERROR. */
export function protocolError(message: string): never {
  throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', message);
}
