import type { Tags } from '../../../statistics/tags';

/** A rule that gives the statistics it matches another name, with tags. */
export interface Mogrifier {
  /** Not anchored; matched with the name without tags. */
  readonly pattern: RegExp;
  /** Both may hold `$1`, `$2` for the groups of the pattern, `$0` for the whole match. */
  readonly output: string;
  readonly tags: Tags;
}

export interface Mogrified {
  readonly name: string;
  readonly tags: Tags;
}

/** What the first of the mogrifiers that matches makes of a name; undefined when none does. */
export function mogrify(mogrifiers: readonly Mogrifier[], name: string): Mogrified | undefined {
  for (const { pattern, output, tags } of mogrifiers) {
    const match = pattern.exec(name);
    if (match === null) continue;
    const expanded = Object.entries(tags).map(([tag, value]) => [tag, expand(value, match, match.groups)] as const);
    return { name: expand(output, match, match.groups), tags: Object.fromEntries(expanded) };
  }
  return undefined;
}

/**
 * Puts the groups of a match into a text that names them as `$1` or `${1}`, `$0` being the whole match, and `${name}` the
 * group of that name. A number without a group stays as it is written; a group that took no part in the match is empty.
 */
export function expand(
  template: string,
  groups: readonly (string | undefined)[],
  named?: Record<string, string>,
): string {
  return template.replaceAll(/\$(?:(\d+)|\{(\w+)\})/g, (written, bare?: string, braced?: string) => {
    const reference = bare ?? braced ?? '';
    if (!/^\d+$/.test(reference)) return named === undefined ? written : (named[reference] ?? '');
    return Number(reference) < groups.length ? (groups[Number(reference)] ?? '') : written;
  });
}
