import { NO_TAGS, type Tags, joinTags } from '../../statistics/tags';
import { fixedNumber, plainNumber } from '../../text/plain-number';
import type { Pattern, PatternMatch } from '../../text/re2';

/** A statistic to send: by how much a counter has grown, the value of a gauge, or a duration in milliseconds. */
export interface SentStatistic {
  readonly type: 'counter' | 'gauge' | 'timer';
  readonly name: string;
  readonly tags: Tags;
  readonly value: number;
  /** The sample rate of a duration: lines per measured duration, at most 1. */
  readonly rate?: number;
}

/** Makes a line of a statistic, without the line terminator. */
export type LineFormat = (statistic: SentStatistic) => string;

// oxlint-disable-next-line no-control-regex -- control characters are replaced like the delimiters
const DELIMITERS = /[.:|\u0000-\u001f\u007f-\u009f]/g;

/** Tags as they appear in names: delimiters and control characters become `_`, tags without a value are omitted. */
export function nameTags(given: Tags): Tags {
  const tags = Object.entries(given)
    .filter(([, value]) => value !== '')
    .map((pair) => pair.map((text) => text.replaceAll(DELIMITERS, '_')));
  return tags.length === 0 ? NO_TAGS : (Object.fromEntries(tags) as Tags);
}

/** Plain statsd: tags are appended to the name as `.__tag=value`; durations are whole milliseconds, rounded down. */
export function statsdLines(extra: Tags): LineFormat {
  const suffix = joinTags('', extra);
  return (statistic) => {
    const { name, tags } = statistic;
    const fullName = hasTags(tags) ? joinTags(name, { ...extra, ...nameTags(tags) }) : name + suffix;
    return `${fullName}:${valueOf(statistic)}`;
  };
}

const TYPES = { counter: 'c', gauge: 'g', timer: 'ms' } as const;

/** The value in a line of statsd, with the sample rate at its end, such as `|@0.5`, unless it is 1. */
function valueOf({ type, value, rate = 1 }: SentStatistic): string {
  const number = type === 'timer' ? String(Math.trunc(value)) : plainNumber(value);
  return `${number}|${TYPES[type]}${rate < 1 ? `|@${rate}` : ''}`;
}

function hasTags(tags: Tags): boolean {
  for (const _ in tags) return true;
  return false;
}

/**
 * One JSON object per line, with the members and messages of the Go service's output, for tools that parse it.
 *
 * @param now Unix time in milliseconds
 */
export function jsonLines(extra: Tags, now: () => number): LineFormat {
  return (statistic) => {
    const { type, name, tags, value, rate = 1 } = statistic;
    const json = { name: joinTags(name, { ...extra, ...nameTags(tags) }), type, value: fixedNumber(value, 6) };
    return JSON.stringify({
      level: 'debug',
      ts: now() / 1000,
      logger: 'gostats.loggingsink',
      msg: `flushing ${type}`,
      json: rate < 1 ? { ...json, rate: String(rate) } : json,
    });
  };
}

/** The characters that would end the name, a tag or the value of a tag in a DogStatsD line. */
const NAME_DELIMITERS = /[:|\n\r]/g;
const TAG_DELIMITERS = /[:|,#@\n\r]/g;
const TAG_VALUE_DELIMITERS = /[|,\n\r]/g;

/** A rule that renames the statistics whose names match a pattern and gives them tags. */
export interface Mogrifier {
  /** Matched against the name without tags; not anchored. */
  readonly pattern: Pattern;
  /** The new name. It and the values of the tags are templates, see {@link expand}. */
  readonly output: string;
  readonly tags: Tags;
}

/**
 * Names whose mogrified series are kept: there may be a million statistics, which would take several times the memory
 * of the registry.
 */
const KEPT_SERIES = 50_000;

/** The parts of a line that do not change between flushes. */
interface NamedSeries {
  readonly name: string;
  /** Appended to the line; empty without tags. */
  readonly tags: string;
}

/** DogStatsD: `name:value|type|#tag:value`, with the tags sorted. Mogrifiers turn parts of names into tags. */
export function dogstatsdLines(extra: Tags, mogrifiers: readonly Mogrifier[]): LineFormat {
  // Every flush repeats the names, so each is matched with the mogrifiers once, unless there are too many.
  const cache = new Map<string, NamedSeries>();
  const extraTags = dogstatsdTags(extra);
  function make(name: string, tags: Tags): NamedSeries {
    const mogrified = mogrify(mogrifiers, name);
    const all = { ...extra, ...tags, ...mogrified?.tags };
    return { name: withoutDelimiters(mogrified?.name ?? name), tags: dogstatsdTags(all) };
  }
  return (statistic) => {
    const { name, tags } = statistic;
    const value = valueOf(statistic);
    if (mogrifiers.length === 0 && tags === NO_TAGS) return `${withoutDelimiters(name)}:${value}${extraTags}`;
    const key = name + dogstatsdTags(tags);
    let series = cache.get(key);
    if (series === undefined) {
      if (cache.size >= KEPT_SERIES) cache.clear();
      cache.set(key, (series = make(name, tags)));
    }
    return `${series.name}:${value}${series.tags}`;
  };
}

function withoutDelimiters(name: string): string {
  return name.replaceAll(NAME_DELIMITERS, '_');
}

function dogstatsdTags(tags: Tags): string {
  const parts = Object.keys(tags)
    .sort()
    .map((tag) => `${tag.replaceAll(TAG_DELIMITERS, '_')}:${(tags[tag] ?? '').replaceAll(TAG_VALUE_DELIMITERS, '_')}`);
  return parts.length === 0 ? '' : `|#${parts.join(',')}`;
}

/** The result of the first mogrifier that matches the name; undefined when none does. */
function mogrify(mogrifiers: readonly Mogrifier[], name: string): { name: string; tags: Tags } | undefined {
  for (const { pattern, output, tags } of mogrifiers) {
    const match = pattern.exec(name);
    if (match === null) continue;
    const expanded = Object.entries(tags).map(([tag, value]) => [tag, expand(value, match)] as const);
    return { name: expand(output, match), tags: Object.fromEntries(expanded) };
  }
  return undefined;
}

/**
 * Expands the references of a template: `$1` or `${1}` is a numbered group, `$0` the whole match, `${name}` a named
 * group. A reference to a number without a group is kept as written, as is a named reference when the pattern has no
 * named groups; a group that did not participate in the match, or a name without a group, expands to an empty string.
 */
function expand(template: string, match: PatternMatch): string {
  return template.replaceAll(/\$(?:(\d+)|\{(\w+)\})/g, (written, bare?: string, braced?: string) => {
    const reference = bare ?? braced ?? '';
    if (!/^\d+$/.test(reference)) return match.groups === undefined ? written : (match.groups[reference] ?? '');
    return Number(reference) < match.length ? (match[Number(reference)] ?? '') : written;
  });
}
