import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Log } from '../../streams/ports/log';

/** The exporters' result code of a successful export. */
const SUCCESS = 0;

type Export = SpanExporter['export'];

/** Logs when exports begin to fail and when they succeed again: one line per change, not per failure. */
export function loggingExporter(exporter: SpanExporter, log: Log): SpanExporter {
  let isFailing = false;
  const exportAndLog: Export = (spans, report) =>
    exporter.export(spans, (result) => {
      const code: number = result.code;
      const hasFailed = code !== SUCCESS;
      if (hasFailed && !isFailing) {
        log.warn('cannot export traces; further spans are queued up to a limit, then dropped', { error: result.error });
      }
      if (!hasFailed && isFailing) log.warn('resumed exporting traces');
      isFailing = hasFailed;
      report(result);
    });
  return {
    export: exportAndLog,
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}
