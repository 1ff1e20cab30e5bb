import { type Observable, defer, of, raceWith, timer } from 'rxjs';
import type { LoadedSettings } from '../settings/read-settings';
import { sectionOf } from '../settings/settings';
import type { ExporterHeaders } from '../sinks/traces/otlp-tracing';
import type { Log } from '../streams/ports/log';
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
  const { settings } = reading;
  if (!settings.tracingEnabled) return { tracer: undefined, finish: () => of(undefined) };
  // The extension is that of the compiled file, as in an ES module.
  const { startOtlpTracing } = await import('../sinks/traces/otlp-tracing.js');
  const tracing = await startOtlpTracing({
    settings: sectionOf(reading, 'tracing'),
    headers: headersInFiles(reading),
    log,
  });
  return {
    tracer: tracing.tracer,
    finish: () => defer(() => tracing.shutdown()).pipe(raceWith(timer(SHUTDOWN_TIMEOUT))),
  };
}

/**
 * The headers of the exporter, if any of them are in files; otherwise undefined: the exporter reads its variables itself.
 *
 * @throws Error that names the variable whose file contains no headers
 */
function headersInFiles({ files, settings, nameOf }: LoadedSettings): ExporterHeaders | undefined {
  const fields = ['otelExporterOtlpHeaders', 'otelExporterOtlpTracesHeaders'] as const;
  for (const field of fields) {
    const problem = files.has(field) ? problemOf(settings[field]) : undefined;
    if (problem !== undefined) throw new Error(`cannot use the file of ${nameOf(field)}: ${problem}`);
  }
  if (!fields.some((field) => files.has(field))) return undefined;
  return { ...settings.otelExporterOtlpHeaders, ...settings.otelExporterOtlpTracesHeaders };
}

/** Both protocols would leave out such headers, or fail, without a message that names them. */
function problemOf(headers: ExporterHeaders = {}): string | undefined {
  const entries = Object.entries(headers);
  if (entries.length === 0) return 'it contains no key=value';
  const isValid = entries.every(([name, value]) => /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\x20-\x7e]*$/.test(value));
  return isValid ? undefined : 'it contains characters that are not allowed in headers';
}
