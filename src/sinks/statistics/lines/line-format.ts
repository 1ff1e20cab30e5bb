import { NO_TAGS, type Tags } from '../../../statistics/tags';

/** A format of statistics, one per line, without the line terminator. */
export interface LineFormat {
  counter(name: string, tags: Tags, delta: number): string;
  gauge(name: string, tags: Tags, value: number): string;
  /** @param rate the sample rate: lines per measured duration, at most 1 */
  timer(name: string, milliseconds: number, rate: number): string;
}

// oxlint-disable-next-line no-control-regex -- control characters are replaced like the delimiters
const DELIMITERS = /[.:|\u0000-\u001f\u007f-\u009f]/g;

/** Tags as they appear in names: delimiters and control characters become `_`, tags without a value are omitted. */
export function nameTags(given: Tags): Tags {
  const tags = Object.entries(given)
    .filter(([, value]) => value !== '')
    .map((pair) => pair.map((text) => text.replaceAll(DELIMITERS, '_')));
  return tags.length === 0 ? NO_TAGS : (Object.fromEntries(tags) as Tags);
}
