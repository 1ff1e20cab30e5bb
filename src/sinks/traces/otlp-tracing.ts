import { randomUUID } from 'node:crypto';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import type { Section } from '../../settings/settings';
import type { Log } from '../../streams/ports/log';
import type { Tracer } from '../../streams/ports/tracer';
import { loggingExporter, retryingExporter } from './exporters';
import { OtlpTracer, unixClock } from './otlp-tracer';

/** Milliseconds that an export may take without OTEL_EXPORTER_OTLP_TIMEOUT: the default of the OpenTelemetry specification. */
const EXPORTER_TIMEOUT = 10_000;

/** Headers by name. */
export type ExporterHeaders = Readonly<Record<string, string>>;

export interface TracingOptions {
  readonly settings: Section<'tracing'>;
  /** Undefined: the exporter takes them from its variables. */
  readonly headers: ExporterHeaders | undefined;
  readonly log: Log;
}

export interface Tracing {
  readonly tracer: Tracer;
  /** Exports the remaining spans, within the exporter's timeout. Never rejects. */
  shutdown(): Promise<void>;
}

/**
 * Exports traces to an OpenTelemetry collector. Everything that is not an option is configured by the standard variables
 * `OTEL_EXPORTER_OTLP_*`, `OTEL_BSP_*` and `OTEL_RESOURCE_ATTRIBUTES`. This module is imported only when tracing is enabled.
 *
 * @throws when no exporter can be created from these variables
 */
export async function startOtlpTracing(options: TracingOptions): Promise<Tracing> {
  const provider = await withDiagnostics(options.log, () => newProvider(options));
  return {
    tracer: new OtlpTracer(provider.getTracer('weir'), options.settings.samplingRate, unixClock()),
    // It rejects when the last batch could not be exported, which has been logged.
    shutdown: () => provider.shutdown().catch(() => undefined),
  };
}

async function newProvider({ settings, headers, log }: TracingOptions): Promise<BasicTracerProvider> {
  const { exporterProtocol, serviceName, serviceNamespace, serviceInstanceId = randomUUID() } = settings;
  const exporter = loggingExporter(await loadExporter(exporterProtocol, headers), log);
  const own = resourceFromAttributes({
    'service.name': serviceName,
    ...(serviceNamespace !== '' && { 'service.namespace': serviceNamespace }),
    'service.instance.id': serviceInstanceId,
  });
  return new BasicTracerProvider({
    resource: defaultResource()
      .merge(detectResources({ detectors: [envDetector] }))
      .merge(own),
    // Sampling is decided before a span is created: creating and dropping one costs more.
    sampler: new AlwaysOnSampler(),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
}

async function loadExporter(protocol: 'http' | 'grpc', headers: ExporterHeaders | undefined): Promise<SpanExporter> {
  if (protocol === 'http') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
    return new OTLPTraceExporter({ ...(headers && { headers }) });
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc');
  const { getSharedConfigurationFromEnvironment } = await import('@opentelemetry/otlp-exporter-base/node-http');
  const { Metadata } = await import('@grpc/grpc-js');
  const { timeoutMillis = EXPORTER_TIMEOUT } = getSharedConfigurationFromEnvironment('TRACES');
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers ?? {})) metadata.set(name, value);
  return retryingExporter(new OTLPTraceExporter({ metadata }), timeoutMillis);
}

/**
 * Logs what OpenTelemetry reports while it reads the standard variables: it replaces an invalid value by its default and reports
 * that only to its diagnostic logger.
 *
 * @throws when a variable has an invalid value and no default
 */
async function withDiagnostics<T>(log: Log, create: () => Promise<T>): Promise<T> {
  const logged = new Set<string>();
  function warn(reason: string): void {
    if (!logged.has(reason)) log.warn('invalid OTLP exporter setting; using its default', { reason });
    logged.add(reason);
  }
  function ignore(): void {}
  const logger = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  try {
    return await create();
  } catch (error) {
    throw new Error('cannot create the OTLP exporter from its settings (OTEL_EXPORTER_OTLP_*)', { cause: error });
  } finally {
    // The logging exporter reports failed exports, once instead of for each batch.
    diag.disable();
  }
}
