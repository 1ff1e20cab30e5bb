import { randomUUID } from 'node:crypto';
import { type Observable, defer, of, raceWith, timer } from 'rxjs';
import type { Settings } from '../settings/settings';
import type { Log } from '../streams/ports/log';
import type { Tracer } from '../streams/ports/tracer';
import { tellOfGrpcLibrary } from './grpc-library';

/** Milliseconds for the last spans at the end of the service. */
const LAST_SPANS = 2_000;

export interface ServiceTracing {
  /** Undefined when TRACING_ENABLED is not set. */
  readonly tracer: Tracer | undefined;
  finish(): Observable<unknown>;
}

/** Starts tracing when the settings ask for it; nothing of it is loaded otherwise. */
export async function startTracing(settings: Settings, log: Log): Promise<ServiceTracing> {
  if (!settings.tracingEnabled) return { tracer: undefined, finish: () => of(undefined) };
  if (settings.tracingExporterProtocol === 'grpc') await tellOfGrpcLibrary(log);
  // An import of this form names what the file is compiled to, as an ES module would.
  const { startOtlpTracing } = await import('../sinks/traces/otlp-tracing.js');
  const tracing = await startOtlpTracing({
    protocol: settings.tracingExporterProtocol,
    serviceName: settings.tracingServiceName,
    serviceNamespace: settings.tracingServiceNamespace,
    serviceInstanceId: settings.tracingServiceInstanceId ?? randomUUID(),
    samplingRate: settings.tracingSamplingRate,
    log,
  });
  return { tracer: tracing.tracer, finish: () => defer(() => tracing.shutdown()).pipe(raceWith(timer(LAST_SPANS))) };
}
