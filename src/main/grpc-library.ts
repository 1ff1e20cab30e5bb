import type { Log } from '../streams/ports/log';

/**
 * Has the gRPC library tell the log what GRPC_VERBOSITY and GRPC_TRACE ask it for. By itself it would write to standard error,
 * past the log's level and format, and without a mask on what servers quote. To be called only when the library is used.
 */
export async function tellOfGrpcLibrary(log: Log): Promise<void> {
  const { setLogger } = await import('@grpc/grpc-js');
  function tell(message: unknown): void {
    log.debug(`grpc-js: ${String(message)}`);
  }
  setLogger({ error: tell, info: tell, debug: tell });
}
