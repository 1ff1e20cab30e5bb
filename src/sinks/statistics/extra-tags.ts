import { NO_TAGS, type Tags } from '../../statistics/tags';

const SEPARATORS = /[.:|]/g;

/** EXTRA_TAGS as they go into names: what would cut a name becomes `_`, and a tag without a value is left out. */
export function extraTags(given: Tags): Tags {
  const tags = Object.entries(given)
    .filter(([, value]) => value !== '')
    .map(([tag, value]) => [tag, value.replaceAll(SEPARATORS, '_')] as const);
  return tags.length === 0 ? NO_TAGS : Object.fromEntries(tags);
}
