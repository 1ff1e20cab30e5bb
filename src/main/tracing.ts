import { randomUUID } from 'node:crypto';
import { type Observable, defer, of, raceWith, timer } from 'rxjs';
import type { Settings } from '../settings/settings';
import type { Log } from '../streams/ports/log';
import type { Tracer } from '../streams/ports/tracer';
import { forwardGrpcLibraryLogs } from './grpc-library';

/** Milliseconds that the export of the last spans may take when the service stops. */
const SHUTDOWN_TIMEOUT = 2_000;

export interface ServiceTracing {
  /** Undefined when TRACING_ENABLED is not set. */
  readonly tracer: Tracer | undefined;
  /** Exports the remaining spans; completes after {@link SHUTDOWN_TIMEOUT} at the latest. */
  finish(): Observable<unknown>;
}

/** Starts tracing if the settings enable it; OpenTelemetry is not loaded otherwise. */
export async function startTracing(settings: Settings, log: Log): Promise<ServiceTracing> {
  if (!settings.tracingEnabled) return { tracer: undefined, finish: () => of(undefined) };
  if (settings.tracingExporterProtocol === 'grpc') forwardGrpcLibraryLogs(log);
  // The extension is that of the compiled file, as in an ES module.
  const { startOtlpTracing } = await import('../sinks/traces/otlp-tracing.js');
  const tracing = await startOtlpTracing({
    protocol: settings.tracingExporterProtocol,
    serviceName: settings.tracingServiceName,
    serviceNamespace: settings.tracingServiceNamespace,
    serviceInstanceId: settings.tracingServiceInstanceId ?? randomUUID(),
    samplingRate: settings.tracingSamplingRate,
    log,
  });
  return {
    tracer: tracing.tracer,
    finish: () => defer(() => tracing.shutdown()).pipe(raceWith(timer(SHUTDOWN_TIMEOUT))),
  };
}
