import { isDeepStrictEqual } from 'node:util';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';

/** Headers by name. */
export type ExporterHeaders = Readonly<Record<string, string>>;

/**
 * An exporter with the headers as they are at each export: it is made again when they have changed, because the OTLP exporter over
 * gRPC takes its headers once.
 *
 * @throws what `make` throws, for the first headers
 */
export function renewingExporter(
  headers: () => ExporterHeaders,
  make: (headers: ExporterHeaders) => SpanExporter,
): SpanExporter {
  let used = headers();
  let exporter = make(used);

  function renew(): void {
    const now = headers();
    if (isDeepStrictEqual(now, used)) return;
    const previous = exporter;
    exporter = make(now);
    used = now;
    // It reports the exports in flight by itself.
    void previous.shutdown().catch(() => undefined);
  }

  return {
    export: (spans, report) => {
      renew();
      exporter.export(spans, report);
    },
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  };
}
