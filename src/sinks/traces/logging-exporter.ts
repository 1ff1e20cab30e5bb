import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import { ConditionLog } from '../../streams/condition-log';
import type { Log } from '../../streams/ports/log';

/** The exporters' result code of a successful export. */
const SUCCESS = 0;

type Export = SpanExporter['export'];

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
