import { type Tags, joinTags } from '../../../statistics/tags';
import type { LineFormat } from './line-format';

/** Plain statsd: tags stand at the end of the name, `.__tag=value`; durations are whole milliseconds, cut. */
export function statsdLines(extra: Tags): LineFormat {
  const suffix = joinTags('', extra);
  return {
    counter: (name, tags, delta) =>
      `${hasTags(tags) ? joinTags(name, { ...extra, ...tags }) : name + suffix}:${delta}|c`,
    gauge: (name, value) => `${name}${suffix}:${value}|g`,
    timer: (name, milliseconds, rate) => `${name}${suffix}:${Math.trunc(milliseconds)}|ms${rateMark(rate)}`,
  };
}

/** Says that a line stands for several measurements. */
export function rateMark(rate: number): string {
  return rate < 1 ? `|@${rate}` : '';
}

function hasTags(tags: Tags): boolean {
  for (const _ in tags) return true;
  return false;
}
