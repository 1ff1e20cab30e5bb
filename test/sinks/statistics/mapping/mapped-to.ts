import type { Mapper, StatisticType } from '../../../../src/sinks/statistics/mapping/mapping';

/** What the mapper maps a name to: `metric{label=value,…}`, `dropped`, or undefined. */
export function mappedTo(mapper: Mapper, name: string, type: StatisticType = 'counter'): string | undefined {
  const mapped = mapper.map(name, type);
  if (mapped === undefined) return undefined;
  if (mapped.mapping.isDropped) return 'dropped';
  const labels = Object.entries(mapped.labels).map(([label, value]) => `${label}=${value}`);
  return `${mapped.name}{${labels.join(',')}}`;
}
