import { type Tags, joinTags } from '../../../statistics/tags';
import { fixedNumber } from '../../../text/plain-number';
import { type LineFormat, nameTags } from './line-format';

interface Statistic {
  readonly type: 'counter' | 'gauge' | 'timer';
  readonly name: string;
  readonly tags?: Tags;
  readonly value: number;
  /** The sample rate of a timer. */
  readonly rate?: number;
}

/**
 * One JSON object per line, with the members and messages of the Go service's output, for tools that parse it.
 *
 * @param now Unix time in milliseconds
 */
export function jsonLines(extra: Tags, now: () => number): LineFormat {
  function line({ type, name, tags, value, rate = 1 }: Statistic): string {
    const json = { name: joinTags(name, { ...extra, ...tags }), type, value: fixedNumber(value, 6) };
    return JSON.stringify({
      level: 'debug',
      ts: now() / 1000,
      logger: 'gostats.loggingsink',
      msg: `flushing ${type}`,
      json: rate < 1 ? { ...json, rate: String(rate) } : json,
    });
  }
  return {
    counter: (name, tags, delta) => line({ type: 'counter', name, tags, value: delta }),
    gauge: (name, tags, value) => line({ type: 'gauge', name, tags: nameTags(tags), value }),
    timer: (name, milliseconds, rate) => line({ type: 'timer', name, value: milliseconds, rate }),
  };
}
