import type { Metadata } from '@grpc/grpc-js';
import type { PushMetricExporter } from '@opentelemetry/sdk-metrics';
import { backoff } from '../../streams/backoff';
import type { ExporterHeaders } from './headers';

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
 * The gRPC statuses that the OTLP specification lists as retryable: CANCELLED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS.
 * DEADLINE_EXCEEDED is one as well, but leaves no time for a retry.
 */
const RETRYABLE: ReadonlySet<unknown> = new Set([1, 10, 11, 14, 15]);

interface Attempt<Items> {
  readonly items: Items;
  readonly report: (result: ExportResult) => void;
  /** On the clock of `performance.now()`. */
  readonly deadline: number;
  /** This one included. */
  readonly attempts: number;
}

/**
 * Retries exports that failed with a retryable status. The OTLP exporters over HTTP do so themselves, the one over gRPC does not.
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

/** Milliseconds that an export may take without OTEL_EXPORTER_OTLP_TIMEOUT: the default of the OpenTelemetry specification. */
const EXPORTER_TIMEOUT = 10_000;

/** What the exporter of a signal over gRPC is made with: the headers, and the milliseconds that an export may take. */
export async function grpcOptions(
  signal: 'TRACES' | 'METRICS',
  headers: ExporterHeaders = {},
): Promise<{ readonly metadata: Metadata; readonly timeout: number }> {
  const { getSharedConfigurationFromEnvironment } = await import('@opentelemetry/otlp-exporter-base/node-http');
  const grpc = await import('@grpc/grpc-js');
  const { timeoutMillis = EXPORTER_TIMEOUT } = getSharedConfigurationFromEnvironment(signal);
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return { metadata, timeout: timeoutMillis };
}
