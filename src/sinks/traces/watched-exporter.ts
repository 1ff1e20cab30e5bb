import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Log } from '../../streams/ports/log';

/** The exporters' code for spans that were taken. */
const SUCCESS = 0;

type Export = SpanExporter['export'];

/** Tells the log when spans are no longer taken, and when they are again: a line for each change, not for each failure. */
export function watchedExporter(exporter: SpanExporter, log: Log): SpanExporter {
  let isAway = false;
  const watch: Export = (spans, report) =>
    exporter.export(spans, (result) => {
      const code: number = result.code;
      const hasFailed = code !== SUCCESS;
      if (hasFailed && !isAway) {
        log.warn('traces are not taken; further spans wait up to a bound, then they are dropped', {
          error: result.error,
        });
      }
      if (!hasFailed && isAway) log.warn('traces are taken again');
      isAway = hasFailed;
      report(result);
    });
  return {
    export: watch,
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}
