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
import { type Exporter, grpcOptions, hasSucceeded, retryingExporter } from '../otlp/exporters';
import { type ExporterHeaders, headersInFiles } from '../otlp/headers';
import { resourceOf, withDiagnostics } from '../otlp/setup';
import { OtlpTracer, unixClock } from './otlp-tracer';

export interface Tracing {
  readonly tracer: Tracer;
  /** Exports the remaining spans, within the exporter's timeout. Never rejects. */
  shutdown(): Promise<void>;
}

/**
 * Exports traces to an OpenTelemetry collector. Everything that is not a setting is configured by the standard variables
 * `OTEL_EXPORTER_OTLP_*`, `OTEL_BSP_*` and `OTEL_RESOURCE_ATTRIBUTES`. This module is imported only when tracing is enabled.
 *
 * @throws when no exporter can be created from these variables
 */
export async function startOtlpTracing(reading: LoadedSettings, log: Log): Promise<Tracing> {
  const { settings } = reading;
  const headers = headersInFiles(reading, 'otelExporterOtlpTracesHeaders');
  const provider = await withDiagnostics(log, async () => {
    const exporter = await loadExporter(settings.tracingExporterProtocol, headers);
    return new BasicTracerProvider({
      resource: resourceOf(settings),
      // Sampling is decided before a span is created: creating and dropping one costs more.
      sampler: new AlwaysOnSampler(),
      spanProcessors: [new BatchSpanProcessor(loggingExporter(exporter, log))],
    });
  });
  return {
    tracer: new OtlpTracer(provider.getTracer('weir'), settings.tracingSamplingRate, unixClock()),
    // It rejects when the last batch could not be exported, which has been logged.
    shutdown: () => provider.shutdown().catch(() => undefined),
  };
}

async function loadExporter(
  protocol: 'http' | 'grpc',
  headers: ExporterHeaders | undefined,
): Promise<Exporter<ReadableSpan[]>> {
  if (protocol === 'http') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
    return new OTLPTraceExporter({ ...(headers && { headers }) });
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc');
  const { metadata, timeout } = await grpcOptions('TRACES', headers);
  // Spans that end during a retry are queued by the batch processor.
  return retryingExporter(new OTLPTraceExporter({ metadata }), timeout);
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
