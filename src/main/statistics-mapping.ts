import { builtInMapping } from '../sinks/statistics/built-in-mapping';
import type { MappedSeriesOptions } from '../sinks/statistics/mapped-series';
import { Mapper } from '../sinks/statistics/mapping';
import { readMappingFile } from '../sinks/statistics/mapping-file';
import { extraLabels } from '../sinks/statistics/series';
import { readBoundedFile } from '../sources/bounded-file';
import { messageOf } from '../text/thrown';
import type { App } from './app';
import { MAX_MAPPING_BYTES } from './start-checks';

/**
 * The names and labels of the outputs that have those of Prometheus.
 *
 * @throws when the mapping file cannot be used, naming the setting
 */
export async function mappingOf(app: App): Promise<Omit<MappedSeriesOptions<unknown>, 'reserved' | 'recorderOf'>> {
  const { settings, statistics, log } = app;
  return {
    statistics,
    mapper: await mapperOf(app),
    labels: extraLabels(settings.extraTags),
    onConflict: (metric) =>
      log.warn('statistics are not exported: their metric conflicts with another one of that name', { metric }),
  };
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
