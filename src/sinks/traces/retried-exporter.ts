import type { SpanExporter } from '@opentelemetry/sdk-trace-base';

/** Milliseconds before the first further try, and how much longer each pause is than the one before. */
const FIRST_PAUSE = 1_000;
const GROWTH = 1.5;
/** Each pause is longer or shorter by up to this part of it, so that many services do not come back together. */
const JITTER = 0.2;

/**
 * The gRPC statuses after which OTLP has a client try again: CANCELLED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS.
 * DEADLINE_EXCEEDED is one too, but has taken all the time there was.
 */
const TRANSIENT: ReadonlySet<unknown> = new Set([1, 10, 11, 14, 15]);

type Export = SpanExporter['export'];

/**
 * Tries again what a collector could not take for the moment, as the exporters over HTTP do by themselves; the one over gRPC
 * does not. Spans that end meanwhile wait in the batch processor.
 *
 * @param patience milliseconds after which no further try is begun
 */
export function retriedExporter(exporter: SpanExporter, patience: number): SpanExporter {
  /** By its pause, how to give an export up. */
  const pausing = new Map<NodeJS.Timeout, () => void>();

  function attempt(spans: Parameters<Export>[0], report: Parameters<Export>[1], until: number, pause: number): void {
    exporter.export(spans, (result) => {
      const wait = pause * (1 + JITTER * (2 * Math.random() - 1));
      if (!isTransient(result.error) || performance.now() + wait > until) {
        report(result);
        return;
      }
      const timer = setTimeout(() => {
        pausing.delete(timer);
        attempt(spans, report, until, pause * GROWTH);
      }, wait);
      pausing.set(timer, () => report(result));
    });
  }

  return {
    export: (spans, report) => attempt(spans, report, performance.now() + patience, FIRST_PAUSE),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => {
      for (const [timer, giveUp] of pausing) {
        clearTimeout(timer);
        giveUp();
      }
      pausing.clear();
      return exporter.shutdown();
    },
  };
}

function isTransient(error: Error | undefined): boolean {
  return error !== undefined && 'code' in error && TRANSIENT.has(error.code);
}
