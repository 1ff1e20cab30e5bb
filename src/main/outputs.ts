import type { AddressInfo } from 'node:net';
import { type Observable, Subscription, asyncScheduler, defer, finalize, merge, of, share } from 'rxjs';
import { serveMetrics } from '../http/serve-metrics';
import type { ListeningHttpServer } from '../http/server/http-server';
import { Exposition } from '../sinks/statistics/exposition/exposition';
import { extraLabels } from '../sinks/statistics/exposition/label-text';
import { mergeMetrics } from '../sinks/statistics/exposition/merge-metrics';
import { OFFENDER_METRIC, offenderSeries } from '../sinks/statistics/exposition/offender-series';
import { builtInMapping } from '../sinks/statistics/mapping/built-in-mapping';
import { Mapper } from '../sinks/statistics/mapping/mapping';
import { readMappingFile } from '../sinks/statistics/mapping/mapping-file';
import { pushOutputs } from '../sinks/statistics/push-outputs';
import { readBoundedFile } from '../sources/bounded-file';
import { flushing, lastFlush } from '../streams/flushing';
import type { OffenderSource } from '../streams/ports/offender-source';
import { messageOf } from '../text/thrown';
import type { App } from './app';
import type { HttpRejections } from './http-rejections';

export interface StatisticsOutputs {
  /** Flushes every output a last time, as {@link lastFlush} does, and closes all outputs. */
  finish(): Observable<unknown>;
  /** Where Prometheus scrapes; undefined without `USE_PULLMETRICS`. */
  readonly metricsAddress: AddressInfo | undefined;
}

/** What the outputs use besides the registry. */
export interface OutputInputs {
  /** For OFFENDERS_METRICS. */
  readonly offenders: OffenderSource;
  /** For the metrics listener. */
  readonly rejections: HttpRejections;
  /** The other processes of the instance, if there are any. */
  readonly workers?: WorkerReports | undefined;
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
export async function startStatisticsOutputs(app: App, inputs: OutputInputs): Promise<StatisticsOutputs> {
  const { settings } = app;
  if (settings.disableStats) return { finish: () => of(undefined), metricsAddress: undefined };
  const outputs = await pushOutputs(app);
  const listener = settings.usePullmetrics ? await openMetricsListener(app, inputs) : undefined;
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

/** Bytes of a mapping file: some ten thousand mappings. */
const MAX_MAPPING_BYTES = 4 * 1024 * 1024;

/**
 * Opens the listener that Prometheus scrapes.
 *
 * @throws when the mapping file or the listen address cannot be used, naming the setting
 */
async function openMetricsListener(
  app: App,
  { offenders, rejections, workers }: OutputInputs,
): Promise<ListeningHttpServer> {
  const { settings, statistics, log } = app;
  const labels = extraLabels(settings.extraTags);
  // Loaded only when it is used. The extension is that of the compiled file, as in an ES module.
  const { processMetrics } = await import('../sinks/statistics/exposition/process-metrics.js');
  const ofProcess = processMetrics(labels);
  const exposition = new Exposition({
    statistics,
    mapper: await mapperOf(app),
    labels,
    reserved: new Set([...ofProcess.names, OFFENDER_METRIC]),
    onConflict: (metric) =>
      log.warn('statistics are not exported: their metric conflicts with another one of that name', { metric }),
    now: () => performance.now(),
  });
  const path = settings.pullmetricsPath;
  const server = await serveMetrics({
    host: settings.pullmetricsAddr.host,
    port: settings.pullmetricsAddr.port,
    inherited: app.manager.sockets.metrics,
    path,
    page: async function* page() {
      await workers?.collect();
      yield* exposition.page();
      if (settings.offendersMetrics > 0)
        yield offenderSeries(await offenders.top({ limit: settings.offendersMetrics }), labels);
      const own = await ofProcess.write();
      yield workers === undefined ? own : mergeMetrics([own, ...(await workers.processMetrics())]);
    },
    onRejected: rejections.of('metrics'),
    log,
  });
  log.info('metrics listener opened', { port: server.address.port, path });
  return server;
}

async function mapperOf({ settings, nameOf, log }: App): Promise<Mapper> {
  const path = settings.pullmetricsMapperYaml;
  if (path === undefined) return new Mapper(builtInMapping(settings.pullmetricsResponseTimeAsMilliseconds));
  try {
    const { content, tooLarge } = await readBoundedFile(path, MAX_MAPPING_BYTES);
    if (content === undefined) {
      throw new Error(`the file has ${tooLarge} bytes, more than the limit of ${MAX_MAPPING_BYTES}`);
    }
    const file = readMappingFile(new TextDecoder().decode(content));
    for (const warning of file.warnings) log.warn(`${path}: ${warning}`);
    return new Mapper(file);
  } catch (error) {
    throw new Error(`${nameOf('pullmetricsMapperYaml')}=${path} cannot be used: ${messageOf(error)}`, { cause: error });
  }
}
