import { topOf } from '../limiter/offender';
import { serveMetrics } from '../http/serve-metrics';
import type { HttpListener } from '../http/listener';
import { exposition } from '../sinks/statistics/exposition';
import { mergeMetrics, processMetrics } from '../sinks/statistics/process-metrics';
import { OFFENDER_METRIC, offenderSeries } from '../sinks/statistics/series';
import type { OffenderSource } from '../streams/ports/offender-source';
import type { WorkerRpc } from '../workers/worker-rpc';
import type { App } from './app';
import type { Rejections } from './rejections';
import { mappingOf } from './statistics-mapping';

/** What the outputs use besides the registry. */
export interface OutputInputs {
  /** For OFFENDERS_METRICS. */
  readonly offenders: OffenderSource;
  /** For the metrics listener. */
  readonly rejections: Rejections;
  /** The other processes of the instance, if there are any. */
  readonly workers?: Pick<WorkerRpc, 'collect' | 'processMetrics'> | undefined;
}

/**
 * Opens the listener that Prometheus scrapes.
 *
 * @throws when the mapping file or the listen address cannot be used, naming the setting
 */
export async function openMetricsListener(
  app: App,
  { offenders, rejections, workers }: OutputInputs,
): Promise<HttpListener> {
  const { settings, log } = app;
  const mapped = mappingOf(app);
  const { labels } = mapped;
  const ofProcess = processMetrics(labels);
  const page = exposition(mapped, new Set([...ofProcess.names, OFFENDER_METRIC]));
  const path = settings.pullmetricsPath;
  const server = await serveMetrics({
    host: settings.pullmetricsAddr.host,
    port: settings.pullmetricsAddr.port,
    inherited: app.manager.sockets.metrics,
    settings: app.nameOf('pullmetricsAddr'),
    path,
    page: async function* pieces() {
      await workers?.collect();
      yield* page();
      if (settings.offendersMetrics > 0)
        yield offenderSeries(topOf(await offenders.summary(), { limit: settings.offendersMetrics }), labels);
      const own = await ofProcess.write();
      yield workers === undefined ? own : mergeMetrics([own, ...(await workers.processMetrics())]);
    },
    onRejected: rejections.http('metrics'),
    log,
  });
  app.listeners.add(() => server.abort());
  log.info('metrics listener opened', { port: server.address.port, path });
  return server;
}
