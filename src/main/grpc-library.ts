import type { App } from './app';

/**
 * Forwards what grpc-js logs under GRPC_VERBOSITY and GRPC_TRACE to the log, at debug level, if the settings make this process use the
 * library. By default grpc-js writes to standard error, which bypasses the level and format of the log and the masking of secrets
 * that servers quote.
 */
export async function forwardGrpcLibraryLogs({ settings, log }: App): Promise<void> {
  const exports = settings.tracingEnabled && settings.tracingExporterProtocol === 'grpc';
  if (!exports && settings.configType === 'FILE') return;
  const { setLogger } = await import('@grpc/grpc-js');
  function forward(message: unknown): void {
    log.debug(`grpc-js: ${String(message)}`);
  }
  setLogger({ error: forward, info: forward, debug: forward });
}
