import type { Tags } from '../../../statistics/tags';
import type { LineFormat } from './line-format';
import { type Mogrifier, mogrify } from './mogrify';
import { rateMark } from './statsd-lines';

/** Where a line of DogStatsD would be cut. */
const IN_NAME = /[:|\n\r]/g;
const IN_TAG = /[:|,#@\n\r]/g;
const IN_VALUE = /[|,\n\r]/g;

/** A name with its tags, as it stands in lines: what is before the value, and what is behind all else. */
interface Series {
  readonly name: string;
  readonly tags: string;
}

/** DogStatsD: `name:value|type|#tag:value`, the tags sorted. Mogrifiers turn parts of names into tags. */
export function dogstatsdLines(extra: Tags, mogrifiers: readonly Mogrifier[]): LineFormat {
  // A name comes at every flush, and is matched with every expression only once; as many as there are statistics.
  const known = new Map<string, Series>();
  function make(name: string, tags: Tags): Series {
    const mogrified = mogrify(mogrifiers, name);
    const all = { ...extra, ...tags, ...mogrified?.tags };
    return { name: (mogrified?.name ?? name).replaceAll(IN_NAME, '_'), tags: writeTags(all) };
  }
  function seriesOf(name: string, tags: Tags): Series {
    const ownTags = writeTags(tags);
    const key = name + ownTags;
    let series = known.get(key);
    if (series === undefined) known.set(key, (series = make(name, tags)));
    return series;
  }
  function line(name: string, tags: Tags, value: string): string {
    const series = seriesOf(name, tags);
    return `${series.name}:${value}${series.tags}`;
  }
  return {
    counter: (name, tags, delta) => line(name, tags, `${delta}|c`),
    gauge: (name, value) => line(name, {}, `${value}|g`),
    timer: (name, milliseconds, rate) => line(name, {}, `${Math.trunc(milliseconds)}|ms${rateMark(rate)}`),
  };
}

function writeTags(tags: Tags): string {
  const parts = Object.keys(tags)
    .sort()
    .map((tag) => `${tag.replaceAll(IN_TAG, '_')}:${(tags[tag] ?? '').replaceAll(IN_VALUE, '_')}`);
  return parts.length === 0 ? '' : `|#${parts.join(',')}`;
}
