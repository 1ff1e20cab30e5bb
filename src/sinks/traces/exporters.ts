import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import { backoff } from '../../streams/backoff';
import { ConditionLog } from '../../streams/condition-log';
import type { Log } from '../../streams/ports/log';

type Export = SpanExporter['export'];

/**
 * The gRPC statuses that the OTLP specification lists as retryable: CANCELLED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS.
 * DEADLINE_EXCEEDED is one as well, but leaves no time for a retry.
 */
const RETRYABLE: ReadonlySet<unknown> = new Set([1, 10, 11, 14, 15]);

interface Attempt {
  readonly spans: Parameters<Export>[0];
  readonly report: Parameters<Export>[1];
  /** On the clock of `performance.now()`. */
  readonly deadline: number;
  /** This one included. */
  readonly attempts: number;
}

/**
 * Retries exports that failed with a retryable status. The OTLP exporters over HTTP do so themselves, the one over gRPC does not.
 * Spans that end during a retry are queued by the batch processor.
 *
 * @param timeout milliseconds after which no further attempt starts
 */
export function retryingExporter(exporter: SpanExporter, timeout: number): SpanExporter {
  /** The exports between two attempts: the timer of the next attempt, and the function that abandons the export. */
  const paused = new Map<NodeJS.Timeout, () => void>();
  const pauseAfter = backoff({ initial: 1_000, max: Infinity, factor: 1.5, drawn: (wait) => [0.8 * wait, 1.2 * wait] });

  function attempt({ spans, report, deadline, attempts }: Attempt): void {
    exporter.export(spans, (result) => {
      const pause = pauseAfter(attempts);
      if (!isRetryable(result.error) || performance.now() + pause > deadline) {
        report(result);
        return;
      }
      const timer = setTimeout(() => {
        paused.delete(timer);
        attempt({ spans, report, deadline, attempts: attempts + 1 });
      }, pause);
      paused.set(timer, () => report(result));
    });
  }

  return {
    export: (spans, report) => attempt({ spans, report, deadline: performance.now() + timeout, attempts: 1 }),
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

/** The exporters' result code of a successful export. */
const SUCCESS = 0;

/** Logs when exports begin to fail and when they succeed again: one line per change, not per failure. */
export function loggingExporter(exporter: SpanExporter, log: Log): SpanExporter {
  const failing = new ConditionLog(log, {
    begins: 'cannot export traces; further spans are queued up to a limit, then dropped',
    ends: 'resumed exporting traces',
  });
  const exportAndLog: Export = (spans, report) =>
    exporter.export(spans, (result) => {
      const code: number = result.code;
      if (code === SUCCESS) failing.ended();
      else failing.occurred({ error: result.error });
      report(result);
    });
  return {
    export: exportAndLog,
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}
