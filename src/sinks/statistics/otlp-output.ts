import { setImmediate as nextTurn } from 'node:timers/promises';
import type { HrTime } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { MetricData, ResourceMetrics } from '@opentelemetry/sdk-metrics';
import type { LoadedSettings } from '../../settings/read-settings';
import { ConditionLog } from '../../log/condition-log';
import type { Log } from '../../log/log';
import type { StatisticsOutput } from '../../streams/ports/statistics-output';
import { asError } from '../../text/thrown';
import { turnBudget } from '../../text/turn-budget';
import { type ExportResult, type Exporter, hasSucceeded } from '../otlp/exporters';
import { headersInFiles } from '../otlp/headers';
import { resourceOf, withDiagnostics } from '../otlp/setup';
import { ExponentialBuckets } from './exponential-buckets';
import { MappedSeries, type MappedSeriesOptions } from './mapped-series';
import { metricExporter } from './otlp-exporter';
import { type Deltas, FamilyPoints, type Point } from './otlp-points';

export interface OtlpOutputParts {
  readonly reading: LoadedSettings;
  readonly log: Log;
  readonly mapping: Omit<MappedSeriesOptions<unknown>, 'reserved' | 'recorderOf'>;
}

/**
 * Exports statistics to an OpenTelemetry collector. What is not a setting is configured by the standard variables `OTEL_EXPORTER_OTLP_*` and
 * `OTEL_RESOURCE_ATTRIBUTES`. This module is imported only when it is enabled.
 *
 * @throws when no exporter can be created from these variables
 */
export async function startOtlpOutput({ reading, log, mapping }: OtlpOutputParts): Promise<StatisticsOutput> {
  const { settings } = reading;
  const protocol = settings.otelExporterOtlpMetricsProtocol ?? settings.otelExporterOtlpProtocol;
  const preference = settings.otelExporterOtlpMetricsTemporalityPreference;
  const headers = headersInFiles(reading, 'otelExporterOtlpMetricsHeaders');
  return withDiagnostics(log, async () => {
    return new OtlpOutput({
      exporter: await metricExporter(protocol, headers),
      resource: resourceOf(settings),
      // Counters are read when they are exported, as those of the specification that stay cumulative to save memory.
      deltas: { counters: preference === 'delta', histograms: preference !== 'cumulative' },
      mapping,
      log,
    });
  });
}

export interface OtlpOutputOptions extends Pick<OtlpOutputParts, 'log' | 'mapping'> {
  readonly exporter: Exporter<ResourceMetrics>;
  readonly resource: Resource;
  readonly deltas: Deltas;
}

/** The points of one request: with the longest labels, fewer bytes than the 4 MiB that a gRPC server accepts by default. */
const BATCH = 256;
/** Statuses with which a receiver rejects the content of a request: of HTTP, and INVALID_ARGUMENT and RESOURCE_EXHAUSTED of gRPC. */
const REJECTED: ReadonlySet<unknown> = new Set([400, 413, 3, 8]);

/**
 * Reads the registry at each flush and exports it in requests of a limited size, one after the other, so that an unreachable receiver costs
 * neither memory nor a count: counters are exported as their values, and deltas since the last export that has succeeded.
 */
export class OtlpOutput implements StatisticsOutput {
  readonly #options: OtlpOutputOptions;
  readonly #series: MappedSeries<ExponentialBuckets>;
  /** In the order of the families. */
  readonly #points: FamilyPoints[] = [];
  readonly #start = highResolution(performance.timeOrigin);
  readonly #failing: ConditionLog;

  constructor(options: OtlpOutputOptions) {
    this.#options = options;
    this.#series = new MappedSeries({
      ...options.mapping,
      reserved: new Set(),
      recorderOf: (_observer, scale) => new ExponentialBuckets(scale),
    });
    this.#failing = new ConditionLog(options.log, {
      begins: 'cannot export statistics over OTLP; will retry',
      ends: 'resumed exporting statistics over OTLP',
    });
  }

  async flush(): Promise<void> {
    let failure: unknown;
    try {
      for await (const batch of this.#batches()) {
        const result = await this.#export(batch.metrics);
        if (hasSucceeded(result)) {
          for (const exported of batch.exported) exported();
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
    // It rejects when an export is aborted, which has been logged.
    this.#options.exporter.shutdown().catch(() => undefined);
  }

  async *#batches(): AsyncGenerator<Batch, void, void> {
    const { deltas } = this.#options;
    const isTurnDue = turnBudget(() => performance.now());
    const families = await this.#series.families(isTurnDue);
    const span = { start: this.#start, now: highResolution(Date.now()) };
    let batch = new Batch();
    for (let index = 0; index < families.length; index += 1) {
      const family = (this.#points[index] ??= new FamilyPoints(families[index]!, deltas));
      for (const point of family.points(this.#series.read, span)) {
        if (point !== undefined) batch.add(family, point);
        if (batch.size === BATCH) {
          yield batch;
          batch = new Batch();
        }
        if (isTurnDue()) await nextTurn();
      }
    }
    if (batch.size > 0) yield batch;
  }

  #export(metrics: readonly MetricData[]): Promise<ExportResult> {
    const { exporter, resource } = this.#options;
    const scopeMetrics = [{ scope: { name: 'weir' }, metrics: [...metrics] }];
    return new Promise((resolve) => exporter.export({ resource, scopeMetrics }, resolve));
  }
}

/** The points of one request. */
class Batch {
  readonly exported: (() => void)[] = [];
  readonly #points = new Map<FamilyPoints, Point['data'][]>();
  size = 0;

  add(family: FamilyPoints, { data, exported }: Point): void {
    const points = this.#points.get(family);
    if (points === undefined) this.#points.set(family, [data]);
    else points.push(data);
    if (exported !== undefined) this.exported.push(exported);
    this.size += 1;
  }

  get metrics(): readonly MetricData[] {
    return Array.from(this.#points, ([family, points]) => family.metric(points));
  }
}

function isRejected(error: Error | undefined): boolean {
  return error !== undefined && 'code' in error && REJECTED.has(error.code);
}

/** @param time in Unix milliseconds */
function highResolution(time: number): HrTime {
  const seconds = Math.trunc(time / 1000);
  return [seconds, Math.round((time - seconds * 1000) * 1e6)];
}
