import { setLogger } from '@grpc/grpc-js';
import type { Log } from '../streams/ports/log';

/**
 * Forwards what grpc-js logs under GRPC_VERBOSITY and GRPC_TRACE to the log, at debug level. By default grpc-js writes to standard
 * error, which bypasses the level and format of the log and the masking of secrets that servers quote. Called by every
 * user of the library; setting it again has no effect.
 */
export function forwardGrpcLibraryLogs(log: Log): void {
  function forward(message: unknown): void {
    log.debug(`grpc-js: ${String(message)}`);
  }
  setLogger({ error: forward, info: forward, debug: forward });
}
