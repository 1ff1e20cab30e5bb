import { setImmediate as nextTurn } from 'node:timers/promises';
import type { HrTime } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { MetricData, ResourceMetrics } from '@opentelemetry/sdk-metrics';
import { turnBudget } from '../../net/turns';
import type { LoadedSettings } from '../../settings/read-settings';
import { ConditionLog } from '../../log/condition-log';
import type { Log } from '../../log/log';
import type { StatisticsOutput } from '../../streams/ports/statistics-output';
import { grouped } from '../../text/grouped';
import { asError } from '../../text/thrown';
import { type ExportResult, type Exporter, hasSucceeded, headersInFiles, metricExporter } from '../otlp/exporters';
import { resourceOf, withDiagnostics } from '../otlp/setup';
import { MappedSeries, type MappedStatistics } from './mapped-series';
import { ExponentialBuckets, FamilyPoints, type Point, type Span, type Temporality } from './otlp-points';

/**
 * Exports statistics to an OpenTelemetry collector. What is not a setting is configured by the standard variables
 * `OTEL_EXPORTER_OTLP_*` and `OTEL_RESOURCE_ATTRIBUTES`. This module is imported only when it is enabled.
 *
 * @throws when no exporter can be created from these variables
 */
export async function startOtlpOutput(
  app: LoadedSettings & { readonly log: Log },
  mapped: MappedStatistics,
): Promise<StatisticsOutput> {
  const { settings, log } = app;
  const protocol = settings.otelExporterOtlpMetricsProtocol ?? settings.otelExporterOtlpProtocol;
  const headers = headersInFiles(app, 'otelExporterOtlpMetricsHeaders');
  return withDiagnostics(log, async () => {
    return new OtlpOutput({
      exporter: await metricExporter(protocol, headers),
      resource: resourceOf(settings),
      temporality: settings.otelExporterOtlpMetricsTemporalityPreference,
      mapped,
      log,
    });
  });
}

export interface OtlpOutputOptions {
  readonly exporter: Exporter<ResourceMetrics>;
  readonly resource: Resource;
  readonly temporality: Temporality;
  readonly mapped: MappedStatistics;
  readonly log: Log;
}

/**
 * The points of one request: with the longest labels, fewer bytes than the 4 MiB that a gRPC server accepts by default.
 */
const BATCH = 256;
/**
 * Statuses with which a receiver rejects the content of a request: of HTTP, and INVALID_ARGUMENT and RESOURCE_EXHAUSTED
 * of gRPC.
 */
const REJECTED: ReadonlySet<unknown> = new Set([400, 413, 3, 8]);

/**
 * Reads the registry at each flush and exports it in requests of a limited size, one after the other, so that an
 * unreachable receiver costs neither memory nor a count: counters are exported as their values, and deltas since the
 * last export that has succeeded.
 */
export class OtlpOutput implements StatisticsOutput {
  readonly #options: OtlpOutputOptions;
  readonly #series: MappedSeries<ExponentialBuckets>;
  readonly #families: FamilyPoints[] = [];
  readonly #start = highResolution(performance.timeOrigin);
  readonly #failing: ConditionLog;

  constructor(options: OtlpOutputOptions) {
    this.#options = options;
    this.#series = new MappedSeries(options.mapped, (_observer, scale) => new ExponentialBuckets(scale));
    this.#failing = new ConditionLog(options.log, {
      begins: 'cannot export statistics over OTLP; will retry',
      ends: 'resumed exporting statistics over OTLP',
    });
  }

  async flush(): Promise<void> {
    let failure: unknown;
    try {
      for await (const batch of this.#batches()) {
        const result = await this.#export(metricsOf(batch));
        if (hasSucceeded(result)) {
          for (const { exported } of batch) exported?.();
          continue;
        }
        failure = result.error ?? new Error('the export has failed');
        // Other requests may be accepted after one that was rejected, but not while there is no receiver.
        if (!isRejected(result.error)) break;
      }
    } catch (error) {
      failure = error;
    }
    if (failure === undefined) this.#failing.ended();
    else this.#failing.occurred({ error: asError(failure) });
  }

  close(): void {
    // Shutting down rejects when an export is aborted, which has been logged.
    this.#options.exporter.shutdown().catch(() => undefined);
  }

  /** The points of each request. */
  async *#batches(): AsyncGenerator<readonly Point[], void, void> {
    const isTurnDue = turnBudget();
    let batch: Point[] = [];
    for (const point of this.#points({ start: this.#start, now: highResolution(Date.now()) })) {
      if (point !== undefined) batch.push(point);
      if (batch.length === BATCH) {
        yield batch;
        batch = [];
      }
      if (isTurnDue()) await nextTurn();
    }
    if (batch.length > 0) yield batch;
  }

  /** The points of all series; undefined is a step of the work. */
  *#points(span: Span): Generator<Point | undefined, void, void> {
    let index = 0;
    for (const family of this.#series.families()) {
      if (family === undefined) {
        yield undefined;
        continue;
      }
      const points = (this.#families[index] ??= new FamilyPoints(family, this.#options.temporality));
      index += 1;
      yield* points.points(this.#series.read, span);
    }
  }

  #export(metrics: readonly MetricData[]): Promise<ExportResult> {
    const { exporter, resource } = this.#options;
    const scopeMetrics = [{ scope: { name: 'weir' }, metrics: [...metrics] }];
    return new Promise((resolve) => exporter.export({ resource, scopeMetrics }, resolve));
  }
}

function metricsOf(points: readonly Point[]): readonly MetricData[] {
  const byFamily = grouped(points, ({ family }) => family);
  return Array.from(byFamily, ([family, ofFamily]) => family.metric(ofFamily.map(({ data }) => data)));
}

function isRejected(error: Error | undefined): boolean {
  return error !== undefined && 'code' in error && REJECTED.has(error.code);
}

/** @param time in Unix milliseconds */
function highResolution(time: number): HrTime {
  const seconds = Math.trunc(time / 1000);
  return [seconds, Math.round((time - seconds * 1000) * 1e6)];
}
