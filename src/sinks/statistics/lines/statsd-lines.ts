import { type Tags, joinTags } from '../../../statistics/tags';
import { plainNumber } from '../../../text/plain-number';
import { type LineFormat, nameTags } from './line-format';

/** Plain statsd: tags are appended to the name as `.__tag=value`; durations are whole milliseconds, rounded down. */
export function statsdLines(extra: Tags): LineFormat {
  const suffix = joinTags('', extra);
  return {
    counter: (name, tags, delta) =>
      `${hasTags(tags) ? joinTags(name, { ...extra, ...tags }) : name + suffix}:${plainNumber(delta)}|c`,
    gauge: (name, tags, value) =>
      `${hasTags(tags) ? joinTags(name, { ...extra, ...nameTags(tags) }) : name + suffix}:${plainNumber(value)}|g`,
    timer: (name, milliseconds, rate) => `${name}${suffix}:${Math.trunc(milliseconds)}|ms${sampleRate(rate)}`,
  };
}

/** The sample rate at the end of a line, such as `|@0.5`; empty at a rate of 1. */
export function sampleRate(rate: number): string {
  return rate < 1 ? `|@${rate}` : '';
}

function hasTags(tags: Tags): boolean {
  for (const _ in tags) return true;
  return false;
}
