import { readFileSync } from 'node:fs';
import type { HttpServer } from '../http/server/http-server';
import { serveMetrics } from '../http/serve-metrics';
import type { LoadedSettings } from '../settings/read-settings';
import { Exposition } from '../sinks/statistics/exposition/exposition';
import { extraLabels } from '../sinks/statistics/exposition/label-text';
import { builtInMapping } from '../sinks/statistics/mapping/built-in-mapping';
import { Mapper } from '../sinks/statistics/mapping/mapping';
import { readMappingFile } from '../sinks/statistics/mapping/mapping-file';
import type { Statistics } from '../statistics/statistics';
import type { Log } from '../streams/ports/log';
import { messageOf } from '../text/thrown';

/**
 * Opens the listener that Prometheus scrapes.
 *
 * @throws when the mapping file or the listen address cannot be used, naming the setting
 */
export async function openMetricsListener(
  reading: LoadedSettings,
  statistics: Statistics,
  log: Log,
): Promise<HttpServer> {
  const { settings } = reading;
  const labels = extraLabels(settings.extraTags);
  // Loaded only when it is used. The extension is that of the compiled file, as in an ES module.
  const { processMetrics } = await import('../sinks/statistics/exposition/process-metrics.js');
  const ofProcess = processMetrics(labels);
  const exposition = new Exposition({
    statistics,
    mapper: mapperOf(reading, log),
    labels,
    reserved: ofProcess.names,
    onConflict: (metric) =>
      log.warn('statistics are not exported: their metric conflicts with another one of that name', { metric }),
    now: () => performance.now(),
  });
  const path = settings.pullmetricsPath;
  const server = await serveMetrics({
    host: settings.pullmetricsAddr.host,
    port: settings.pullmetricsAddr.port,
    path,
    page: async function* page() {
      yield* exposition.page();
      yield await ofProcess.write();
    },
    log,
  });
  log.info('metrics listener opened', { port: server.address.port, path });
  return server;
}

function mapperOf({ settings, nameOf }: LoadedSettings, log: Log): Mapper {
  const path = settings.pullmetricsMapperYaml;
  if (path === undefined) return new Mapper(builtInMapping(settings.pullmetricsResponseTimeAsMilliseconds));
  try {
    const file = readMappingFile(readFileSync(path, 'utf8'));
    for (const warning of file.warnings) log.warn(`${path}: ${warning}`);
    return new Mapper(file);
  } catch (error) {
    throw new Error(`${nameOf('pullmetricsMapperYaml')}=${path} cannot be used: ${messageOf(error)}`, { cause: error });
  }
}
