import { DiagLogLevel, diag } from '@opentelemetry/api';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import type { Log } from '../../streams/ports/log';
import type { Tracer } from '../../streams/ports/tracer';
import { OtlpTracer } from './otlp-tracer';
import { retriedExporter } from './retried-exporter';
import { unixClock } from './unix-clock';
import { watchedExporter } from './watched-exporter';

/** Milliseconds that an export may take where OTEL_EXPORTER_OTLP_TIMEOUT is not set: the standard's default. */
const EXPORTER_TIMEOUT = 10_000;

export interface TracingOptions {
  readonly protocol: 'http' | 'grpc';
  readonly serviceName: string;
  /** Empty: none. */
  readonly serviceNamespace: string;
  readonly serviceInstanceId: string;
  /** The share of calls that are traced where the caller has not decided, from 0 to 1. */
  readonly samplingRate: number;
  readonly log: Log;
}

export interface Tracing {
  readonly tracer: Tracer;
  /** Sends what is left, as far as there is time. Never rejects. */
  shutdown(): Promise<void>;
}

/**
 * Traces to an OpenTelemetry collector. What is not in the options comes from the standard variables of the exporters and of
 * the batches, `OTEL_EXPORTER_OTLP_*`, `OTEL_BSP_*`, `OTEL_RESOURCE_ATTRIBUTES`. To be loaded only when it is used.
 *
 * @throws when an exporter cannot be made of those
 */
export async function startOtlpTracing(options: TracingOptions): Promise<Tracing> {
  const provider = await complaining(options.log, () => newProvider(options));
  return {
    tracer: new OtlpTracer(provider.getTracer('weir'), options.samplingRate, unixClock()),
    // It rejects when the last batch could not be sent, which the log has been told.
    shutdown: () => provider.shutdown().catch(() => undefined),
  };
}

async function newProvider(options: TracingOptions): Promise<BasicTracerProvider> {
  const { protocol, serviceName, serviceNamespace, serviceInstanceId, log } = options;
  const exporter = watchedExporter(await loadExporter(protocol), log);
  const own = resourceFromAttributes({
    'service.name': serviceName,
    ...(serviceNamespace !== '' && { 'service.namespace': serviceNamespace }),
    'service.instance.id': serviceInstanceId,
  });
  return new BasicTracerProvider({
    resource: defaultResource()
      .merge(detectResources({ detectors: [envDetector] }))
      .merge(own),
    // Whoever is not traced never gets here: to make a span and drop it costs more than to decide without one.
    sampler: new AlwaysOnSampler(),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
}

async function loadExporter(protocol: 'http' | 'grpc'): Promise<SpanExporter> {
  if (protocol === 'grpc') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc');
    const { getSharedConfigurationFromEnvironment } = await import('@opentelemetry/otlp-exporter-base/node-http');
    const { timeoutMillis = EXPORTER_TIMEOUT } = getSharedConfigurationFromEnvironment('TRACES');
    return retriedExporter(new OTLPTraceExporter(), timeoutMillis);
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter();
}

/**
 * The standard variables are read while things are made. In place of a value that is not taken stands the default, which is said
 * to whoever listens: the log is to hear of it.
 *
 * @throws what a value is that nothing can stand in for
 */
async function complaining<T>(log: Log, make: () => Promise<T>): Promise<T> {
  const told = new Set<string>();
  function tell(reason: string): void {
    if (!told.has(reason)) log.warn('a setting of the OTLP exporter is not taken', { reason });
    told.add(reason);
  }
  const ignore = (): void => undefined;
  const listener = { error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(listener, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  try {
    return await make();
  } catch (error) {
    throw new Error('nothing can be made of the settings of the OTLP exporter (OTEL_EXPORTER_OTLP_*)', {
      cause: error,
    });
  } finally {
    // Of failed exports the watched exporter tells, once and not for each batch.
    diag.disable();
  }
}
