/** Tags of a statistic, each with its value. */
export type Tags = Readonly<Record<string, string>>;

export const NO_TAGS: Tags = Object.freeze({});

/** What stands before each tag in a name: `ratelimit.memcache.multiget.__code=success`. */
const MARK = '.__';

/** Takes the tags off the end of a name that was written in the source; names that carry what a caller sent are not cut. */
export function splitTags(written: string): readonly [name: string, tags: Tags] {
  const [name = '', ...parts] = written.split(MARK);
  if (parts.length === 0) return [written, NO_TAGS];
  const tags = parts.map((part) => {
    const cut = part.indexOf('=');
    return [part.slice(0, cut), part.slice(cut + 1)] as const;
  });
  return [name, Object.fromEntries(tags)];
}

/** Puts tags at the end of a name, sorted, as the statsd lines of the Go service have them. */
export function joinTags(name: string, tags: Tags): string {
  if (tags === NO_TAGS) return name;
  const parts = Object.keys(tags)
    .sort()
    .map((tag) => `${MARK}${tag}=${tags[tag]}`);
  return name + parts.join('');
}
