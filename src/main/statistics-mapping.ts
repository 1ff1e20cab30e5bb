import { readSmallFile } from '../net/reloaded-files';
import { builtInMapping } from '../sinks/statistics/built-in-mapping';
import type { MappedStatistics } from '../sinks/statistics/mapped-series';
import { Mapper } from '../sinks/statistics/mapping';
import { readMappingFile } from '../sinks/statistics/mapping-file';
import { extraLabels } from '../sinks/statistics/series';
import { messageOf } from '../text/thrown';
import type { App } from './app';
import { MAX_MAPPING_BYTES } from './start-checks';

/**
 * The names and labels of the outputs that have those of Prometheus.
 *
 * @throws when the mapping file cannot be used, naming the setting
 */
export function mappingOf(app: App): MappedStatistics {
  const { settings, statistics, log } = app;
  return {
    statistics,
    mapper: mapperOf(app),
    labels: extraLabels(settings.extraTags),
    onConflict: (metric) =>
      log.warn('statistics are not exported: their metric conflicts with another one of that name', { metric }),
  };
}

function mapperOf({ settings, nameOf, log }: App): Mapper {
  const path = settings.pullmetricsMapperYaml;
  if (path === undefined) return new Mapper(builtInMapping(settings.pullmetricsResponseTimeAsMilliseconds));
  try {
    const file = readMappingFile(new TextDecoder().decode(readSmallFile(path, MAX_MAPPING_BYTES)));
    for (const warning of file.warnings) log.warn(`${path}: ${warning}`);
    return new Mapper(file);
  } catch (error) {
    throw new Error(`${nameOf('pullmetricsMapperYaml')}=${path} cannot be used: ${messageOf(error)}`, { cause: error });
  }
}
