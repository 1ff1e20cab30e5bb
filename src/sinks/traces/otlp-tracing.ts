import {
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import type { LoadedSettings } from '../../settings/read-settings';
import { ConditionLog } from '../../log/condition-log';
import type { Log } from '../../log/log';
import type { Tracer } from '../../streams/ports/tracer';
import { type Exporter, hasSucceeded, headersInFiles, spanExporter } from '../otlp/exporters';
import { resourceOf, withDiagnostics } from '../otlp/setup';
import { OtlpTracer, unixClock } from './otlp-tracer';

export interface Tracing {
  readonly tracer: Tracer;
  /** Exports the remaining spans, within the exporter's timeout. Never rejects. */
  shutdown(): Promise<void>;
}

/**
 * Exports traces to an OpenTelemetry collector. Everything that is not a setting is configured by the standard
 * variables `OTEL_EXPORTER_OTLP_*`, `OTEL_BSP_*` and `OTEL_RESOURCE_ATTRIBUTES`. This module is imported only when
 * tracing is enabled.
 *
 * @throws when no exporter can be created from these variables
 */
export async function startOtlpTracing(reading: LoadedSettings, log: Log): Promise<Tracing> {
  const { settings } = reading;
  const headers = headersInFiles(reading, 'otelExporterOtlpTracesHeaders');
  const provider = await withDiagnostics(log, async () => {
    const exporter = await spanExporter(settings.tracingExporterProtocol, headers);
    return new BasicTracerProvider({
      resource: resourceOf(settings),
      // Sampling is decided before a span is created: creating and dropping one costs more.
      sampler: new AlwaysOnSampler(),
      spanProcessors: [new BatchSpanProcessor(loggingExporter(exporter, log))],
    });
  });
  return {
    tracer: new OtlpTracer(provider.getTracer('weir'), settings.tracingSamplingRate, unixClock()),
    // Shutting down rejects when the last batch could not be exported, which has been logged.
    shutdown: () => provider.shutdown().catch(() => undefined),
  };
}

/** Logs when exports begin to fail and when they succeed again: one line per change, not per failure. */
function loggingExporter(exporter: Exporter<ReadableSpan[]>, log: Log): SpanExporter {
  const failing = new ConditionLog(log, {
    begins: 'cannot export traces; further spans are queued up to a limit, then dropped',
    ends: 'resumed exporting traces',
  });
  const exportAndLog: SpanExporter['export'] = (spans, report) =>
    exporter.export(spans, (result) => {
      if (hasSucceeded(result)) failing.ended();
      else failing.occurred({ error: result.error });
      report(result);
    });
  return {
    export: exportAndLog,
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}
