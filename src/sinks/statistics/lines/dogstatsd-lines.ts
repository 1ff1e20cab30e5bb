import type { Tags } from '../../../statistics/tags';
import { plainNumber } from '../../../text/plain-number';
import type { LineFormat } from './line-format';
import { type Mogrifier, mogrify } from './mogrify';
import { sampleRate } from './statsd-lines';

/** The characters that would end the name, a tag or the value of a tag in a DogStatsD line. */
const NAME_DELIMITERS = /[:|\n\r]/g;
const TAG_DELIMITERS = /[:|,#@\n\r]/g;
const TAG_VALUE_DELIMITERS = /[|,\n\r]/g;

/** The parts of a line that do not change between flushes. */
interface Series {
  readonly name: string;
  /** Appended to the line; empty without tags. */
  readonly tags: string;
}

/** DogStatsD: `name:value|type|#tag:value`, with the tags sorted. Mogrifiers turn parts of names into tags. */
export function dogstatsdLines(extra: Tags, mogrifiers: readonly Mogrifier[]): LineFormat {
  // Every flush repeats the names, so each is matched with the mogrifiers once. One entry per statistic.
  const cache = new Map<string, Series>();
  function make(name: string, tags: Tags): Series {
    const mogrified = mogrify(mogrifiers, name);
    const all = { ...extra, ...tags, ...mogrified?.tags };
    return { name: (mogrified?.name ?? name).replaceAll(NAME_DELIMITERS, '_'), tags: writeTags(all) };
  }
  function seriesOf(name: string, tags: Tags): Series {
    const key = name + writeTags(tags);
    let series = cache.get(key);
    if (series === undefined) cache.set(key, (series = make(name, tags)));
    return series;
  }
  function line(name: string, tags: Tags, value: string): string {
    const series = seriesOf(name, tags);
    return `${series.name}:${value}${series.tags}`;
  }
  return {
    counter: (name, tags, delta) => line(name, tags, `${plainNumber(delta)}|c`),
    gauge: (name, tags, value) => line(name, tags, `${plainNumber(value)}|g`),
    timer: (name, milliseconds, rate) => line(name, {}, `${Math.trunc(milliseconds)}|ms${sampleRate(rate)}`),
  };
}

function writeTags(tags: Tags): string {
  const parts = Object.keys(tags)
    .sort()
    .map((tag) => `${tag.replaceAll(TAG_DELIMITERS, '_')}:${(tags[tag] ?? '').replaceAll(TAG_VALUE_DELIMITERS, '_')}`);
  return parts.length === 0 ? '' : `|#${parts.join(',')}`;
}
