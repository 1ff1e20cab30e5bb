import type { AddressInfo } from 'node:net';
import { type Observable, Subscription, asyncScheduler, defer, finalize, merge, of, share } from 'rxjs';
import type { LoadedSettings } from '../settings/read-settings';
import type { Statistics } from '../statistics/statistics';
import { flushing } from '../streams/flushing';
import type { Log } from '../streams/ports/log';
import type { OffenderSource } from '../streams/ports/offender-source';
import type { HttpRejections } from './http-rejections';
import { lastFlush } from './last-flush';
import { openMetricsListener } from './metrics-listener';
import { pushOutputs } from './push-outputs';

export interface StatisticsOutputs {
  /** Flushes every output a last time, as {@link lastFlush} does, and closes all outputs. */
  finish(): Observable<unknown>;
  /** Where Prometheus scrapes; undefined without `USE_PULLMETRICS`. */
  readonly metricsAddress: AddressInfo | undefined;
}

/** What the outputs use of the service. */
export interface StatisticsParts {
  readonly statistics: Statistics;
  /** For OFFENDERS_METRICS. */
  readonly offenders: OffenderSource;
  /** For the metrics listener. */
  readonly rejections: HttpRejections;
  /** The other processes of the instance, if there are any. */
  readonly workers?: WorkerReports | undefined;
  readonly log: Log;
}

/** What the workers of an instance add to its statistics. */
export interface WorkerReports {
  /** Brings the statistics up to date; resolves at the latest after a short time. */
  collect(): Promise<void>;
  /** The metrics of each worker process in the Prometheus text format, as far as they arrive in time. */
  processMetrics(): Promise<readonly string[]>;
}

/**
 * Starts the statistics outputs that the settings enable.
 *
 * @throws when a mogrifier, a mapping file or the listen address cannot be used, naming the variable
 */
export async function startStatisticsOutputs(
  reading: LoadedSettings,
  parts: StatisticsParts,
): Promise<StatisticsOutputs> {
  const { settings } = reading;
  const { statistics, workers, log } = parts;
  if (settings.disableStats) return { finish: () => of(undefined), metricsAddress: undefined };
  const outputs = await pushOutputs(reading, statistics, log);
  const listener = settings.usePullmetrics ? await openMetricsListener(reading, parts) : undefined;
  const subscription = new Subscription();
  const flushes = outputs.map((output) => {
    // Shared, so that the last flush can wait for one in flight.
    const flush$ = defer(async () => {
      await workers?.collect();
      await output.flush();
    }).pipe(share());
    subscription.add(flushing(() => flush$, settings.statsFlushInterval, asyncScheduler).subscribe());
    return { output, flush$ };
  });
  return {
    metricsAddress: listener?.address,
    finish: () => {
      const last$ = flushes.map(({ output, flush$ }) =>
        lastFlush(flush$, asyncScheduler).pipe(finalize(() => output.close())),
      );
      const closed$ = listener === undefined ? of(undefined) : defer(() => listener.close());
      return merge(...last$, closed$).pipe(finalize(() => subscription.unsubscribe()));
    },
  };
}
