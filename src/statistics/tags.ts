/** The tags of a statistic: values by name. */
export type Tags = Readonly<Record<string, string>>;

export const NO_TAGS: Tags = Object.freeze({});

/** Precedes each tag in a name: `ratelimit.memcache.multiget.__code=success`. */
const MARK = '.__';

/** Splits a name into the plain name and its tags. Not to be used for names that contain request values. */
export function splitTags(fullName: string): readonly [name: string, tags: Tags] {
  const [name = '', ...parts] = fullName.split(MARK);
  if (parts.length === 0) return [fullName, NO_TAGS];
  const tags = parts.map((part) => {
    const cut = part.indexOf('=');
    return [part.slice(0, cut), part.slice(cut + 1)] as const;
  });
  return [name, Object.fromEntries(tags)];
}

/** Appends the tags to a name, sorted, as in the statsd lines of the Go service. */
export function joinTags(name: string, tags: Tags): string {
  if (tags === NO_TAGS) return name;
  const parts = Object.keys(tags)
    .sort()
    .map((tag) => `${MARK}${tag}=${tags[tag]}`);
  return name + parts.join('');
}
