import { type Tags, joinTags } from '../../../statistics/tags';
import type { LineFormat } from './line-format';

/**
 * One JSON object a line, with the members and the texts of the Go service's, so that what reads its output reads ours.
 *
 * @param now Unix time in milliseconds
 */
export function jsonLines(extra: Tags, now: () => number): LineFormat {
  function line(type: string, name: string, tags: Tags, value: number, more?: object): string {
    return JSON.stringify({
      level: 'debug',
      ts: now() / 1000,
      logger: 'gostats.loggingsink',
      msg: `flushing ${type}`,
      json: { name: joinTags(name, { ...extra, ...tags }), type, value: value.toFixed(6), ...more },
    });
  }
  return {
    counter: (name, tags, delta) => line('counter', name, tags, delta),
    gauge: (name, value) => line('gauge', name, {}, value),
    timer: (name, milliseconds, rate) =>
      line('timer', name, {}, milliseconds, rate < 1 ? { rate: String(rate) } : undefined),
  };
}
