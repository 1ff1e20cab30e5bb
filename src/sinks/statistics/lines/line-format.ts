import { NO_TAGS, type Tags } from '../../../statistics/tags';

/** How statistics are written, one a line, without the line's end. */
export interface LineFormat {
  counter(name: string, tags: Tags, delta: number): string;
  gauge(name: string, value: number): string;
  /** @param rate how many lines there are for each duration measured, at most 1 */
  timer(name: string, milliseconds: number, rate: number): string;
}

// oxlint-disable-next-line no-control-regex -- control characters are what this is about, beside the separators
const SEPARATORS = /[.:|\u0000-\u001f\u007f-\u009f]/g;

/** EXTRA_TAGS as they go into names: what would cut a name or a line becomes `_`, and a tag without a value is left out. */
export function extraTags(given: Tags): Tags {
  const tags = Object.entries(given)
    .filter(([, value]) => value !== '')
    .map((pair) => pair.map((text) => text.replaceAll(SEPARATORS, '_')));
  return tags.length === 0 ? NO_TAGS : (Object.fromEntries(tags) as Tags);
}
