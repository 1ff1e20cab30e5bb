import { type Observable, defer, of, raceWith, timer } from 'rxjs';
import type { LoadedSettings } from '../settings/read-settings';
import type { Log } from '../log/log';
import type { Tracer } from '../streams/ports/tracer';

/** Milliseconds that the export of the last spans may take when the service stops. */
const SHUTDOWN_TIMEOUT = 2_000;

export interface ServiceTracing {
  /** Undefined when TRACING_ENABLED is not set. */
  readonly tracer: Tracer | undefined;
  /** Exports the remaining spans; completes after {@link SHUTDOWN_TIMEOUT} at the latest. */
  finish(): Observable<unknown>;
}

/** Starts tracing if the settings enable it; OpenTelemetry is not loaded otherwise. */
export async function startTracing(reading: LoadedSettings, log: Log): Promise<ServiceTracing> {
  if (!reading.settings.tracingEnabled) return { tracer: undefined, finish: () => of(undefined) };
  // The extension is that of the compiled file, as in an ES module.
  const { startOtlpTracing } = await import('../sinks/traces/otlp-tracing.js');
  const tracing = await startOtlpTracing(reading, log);
  return {
    tracer: tracing.tracer,
    finish: () => defer(() => tracing.shutdown()).pipe(raceWith(timer(SHUTDOWN_TIMEOUT))),
  };
}
