import type { AddressInfo } from 'node:net';
import { type Observable, Subscription, asyncScheduler, defer, finalize, merge, of, share } from 'rxjs';
import type { HttpListener } from '../http/listener';
import { pushOutputs } from '../sinks/statistics/push-outputs';
import { flushing, lastFlush } from '../streams/flushing';
import type { StatisticsOutput } from '../streams/ports/statistics-output';
import type { App } from './app';
import type { OutputInputs } from './metrics-listener';

export interface StatisticsOutputs {
  /** Flushes every output a last time, as {@link lastFlush} does, and closes all outputs. */
  finish(): Observable<unknown>;
  /** Where Prometheus scrapes; undefined without `USE_PULLMETRICS`. */
  readonly metricsAddress: AddressInfo | undefined;
}

/**
 * Starts the statistics outputs that the settings enable.
 *
 * @throws when a mogrifier, a mapping file, the listen address or an OTLP exporter cannot be used, naming the variable
 */
export async function startStatisticsOutputs(app: App, inputs: OutputInputs): Promise<StatisticsOutputs> {
  const { settings } = app;
  if (settings.disableStats) return { finish: () => of(undefined), metricsAddress: undefined };
  const outputs = [...(await pushOutputs(app)), ...(settings.useOtlpMetrics ? [await otlpOutput(app)] : [])];
  const listener = settings.usePullmetrics ? await metricsListener(app, inputs) : undefined;
  const subscription = new Subscription();
  const flushes = outputs.map((output) => {
    // Shared, so that the last flush can wait for one in flight.
    const flush$ = defer(async () => {
      await inputs.workers?.collect();
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

/** Loads what only a page of metrics needs. */
async function metricsListener(app: App, inputs: OutputInputs): Promise<HttpListener> {
  // The extension is that of the compiled file, as in an ES module.
  const { openMetricsListener } = await import('./metrics-listener.js');
  return openMetricsListener(app, inputs);
}

/** Loads OpenTelemetry. */
async function otlpOutput(app: App): Promise<StatisticsOutput> {
  const { startOtlpOutput } = await import('../sinks/statistics/otlp-output.js');
  const { mappingOf } = await import('./statistics-mapping.js');
  return startOtlpOutput(app, mappingOf(app));
}
