import type { IExporterMetricsHelper, ISerializer } from '@opentelemetry/otlp-transformer';
import type { PushMetricExporter, ResourceMetrics } from '@opentelemetry/sdk-metrics';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { LoadedSettings } from '../../settings/read-settings';
import type { Settings } from '../../settings/settings';
import { backoff } from '../../streams/backoff';

/** The outcome of an export. */
export type ExportResult = Parameters<Parameters<PushMetricExporter['export']>[1]>[0];

/** An exporter of OpenTelemetry: of spans, or of metrics. */
export interface Exporter<Items> {
  export(items: Items, report: (result: ExportResult) => void): void;
  forceFlush?(): Promise<void>;
  shutdown(): Promise<void>;
}

/** The exporters' result code of a successful export. */
const SUCCESS = 0;

export function hasSucceeded(result: ExportResult): boolean {
  const code: number = result.code;
  return code === SUCCESS;
}

/**
 * The gRPC statuses that the OTLP specification lists as retryable: CANCELLED, ABORTED, OUT_OF_RANGE, UNAVAILABLE,
 * DATA_LOSS. DEADLINE_EXCEEDED is one as well, but leaves no time for a retry.
 */
const RETRYABLE: ReadonlySet<unknown> = new Set([1, 10, 11, 14, 15]);

interface Attempt<Items> {
  readonly items: Items;
  readonly report: (result: ExportResult) => void;
  /** On the clock of `performance.now()`. */
  readonly deadline: number;
  /** Attempts so far, this one included. */
  readonly attempts: number;
}

/**
 * Retries exports that failed with a retryable status. The OTLP exporters over HTTP do so themselves, the one over gRPC
 * does not.
 *
 * @param timeout milliseconds after which no further attempt starts
 */
export function retryingExporter<Items>(exporter: Exporter<Items>, timeout: number): Exporter<Items> {
  /** The exports between two attempts: the timer of the next attempt, and the function that abandons the export. */
  const paused = new Map<NodeJS.Timeout, () => void>();
  const pauseAfter = backoff({
    initial: 1_000,
    max: Infinity,
    factor: 1.5,
    jitter: (wait) => [0.8 * wait, 1.2 * wait],
  });

  function attempt({ items, report, deadline, attempts }: Attempt<Items>): void {
    exporter.export(items, (result) => {
      const pause = pauseAfter(attempts);
      if (!isRetryable(result.error) || performance.now() + pause > deadline) {
        report(result);
        return;
      }
      const timer = setTimeout(() => {
        paused.delete(timer);
        attempt({ items, report, deadline, attempts: attempts + 1 });
      }, pause);
      paused.set(timer, () => report(result));
    });
  }

  return {
    export: (items, report) => attempt({ items, report, deadline: performance.now() + timeout, attempts: 1 }),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => {
      for (const [timer, abandon] of paused) {
        clearTimeout(timer);
        abandon();
      }
      paused.clear();
      return exporter.shutdown();
    },
  };
}

function isRetryable(error: Error | undefined): boolean {
  return error !== undefined && 'code' in error && RETRYABLE.has(error.code);
}

/**
 * An exporter of spans. Everything but the protocol and the headers is from the standard variables.
 *
 * @throws when one of them has an invalid value and no default
 */
export async function spanExporter(
  protocol: Settings['tracingExporterProtocol'],
  headers: ExporterHeaders | undefined,
): Promise<Exporter<ReadableSpan[]>> {
  const transformer = await import('@opentelemetry/otlp-transformer');
  const { ProtobufTraceSerializer: serializer, TraceExporterMetricsHelper: helper } = transformer;
  const service = 'opentelemetry.proto.collector.trace.v1.TraceService';
  // Spans that end during a retry are queued by the batch processor.
  return exporterOf({ name: 'TRACES', path: 'v1/traces', service, serializer, helper }, protocol, headers);
}

/** An exporter of metrics, as {@link spanExporter}. */
export async function metricExporter(
  protocol: Settings['otelExporterOtlpProtocol'],
  headers: ExporterHeaders | undefined,
): Promise<Exporter<ResourceMetrics>> {
  const transformer = await import('@opentelemetry/otlp-transformer');
  const { JsonMetricsSerializer, ProtobufMetricsSerializer, MetricsExporterMetricsHelper: helper } = transformer;
  const serializer = protocol === 'http/json' ? JsonMetricsSerializer : ProtobufMetricsSerializer;
  const service = 'opentelemetry.proto.collector.metrics.v1.MetricsService';
  return exporterOf({ name: 'METRICS', path: 'v1/metrics', service, serializer, helper }, protocol, headers);
}

/** What is exported, and where over each protocol. */
interface Signal<Items, Response> {
  readonly name: 'TRACES' | 'METRICS';
  readonly path: string;
  readonly service: string;
  readonly serializer: ISerializer<Items, Response>;
  readonly helper: IExporterMetricsHelper<Items>;
}

/**
 * An exporter of the parts that OpenTelemetry's exporters are made of: its packages for metrics have no version that
 * shares them with those for traces.
 */
async function exporterOf<Items, Response>(
  { name, path, service, serializer, helper }: Signal<Items, Response>,
  protocol: Settings['otelExporterOtlpProtocol'] | 'http',
  headers: ExporterHeaders | undefined,
): Promise<Exporter<Items>> {
  // In OpenTelemetry's metrics about its exporters, which are not collected.
  const component = 'exporter';
  if (protocol !== 'grpc') {
    const base = await import('@opentelemetry/otlp-exporter-base/node-http');
    const type = { 'Content-Type': protocol === 'http/json' ? 'application/json' : 'application/x-protobuf' };
    const options = base.convertLegacyHttpOptions({ ...(headers && { headers }) }, name, path, type);
    return base.createOtlpHttpExportDelegate(options, serializer, component, helper, undefined);
  }
  const base = await import('@opentelemetry/otlp-grpc-exporter-base');
  const { Metadata } = await import('@grpc/grpc-js');
  const metadata = new Metadata();
  for (const [header, value] of Object.entries(headers ?? {})) metadata.set(header, value);
  const options = base.convertLegacyOtlpGrpcOptions({ metadata }, name);
  const target = ['Export', `/${service}/Export`] as const;
  const delegate = base.createOtlpGrpcExportDelegate(options, serializer, component, helper, undefined, ...target);
  return retryingExporter(delegate, options.timeoutMillis);
}

/** Headers by name. */
type ExporterHeaders = Readonly<Record<string, string>>;

/**
 * The headers of the exporter of a signal, if any of them are in files; otherwise undefined: the exporter reads its
 * variables itself.
 *
 * @throws Error that names the variable whose file contains no headers
 */
export function headersInFiles(
  { files, settings, nameOf }: LoadedSettings,
  ofSignal: 'otelExporterOtlpTracesHeaders' | 'otelExporterOtlpMetricsHeaders',
): ExporterHeaders | undefined {
  const fields = ['otelExporterOtlpHeaders', ofSignal] as const;
  for (const field of fields) {
    const problem = files.has(field) ? problemOf(settings[field]) : undefined;
    if (problem !== undefined) throw new Error(`cannot use the file of ${nameOf(field)}: ${problem}`);
  }
  if (!fields.some((field) => files.has(field))) return undefined;
  return { ...settings.otelExporterOtlpHeaders, ...settings[ofSignal] };
}

/** Both protocols would leave out such headers, or fail, without a message that names them. */
function problemOf(headers: ExporterHeaders = {}): string | undefined {
  const entries = Object.entries(headers);
  if (entries.length === 0) return 'it contains no key=value';
  const isValid = entries.every(([name, value]) => /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\x20-\x7e]*$/.test(value));
  return isValid ? undefined : 'it contains characters that are not allowed in headers';
}
