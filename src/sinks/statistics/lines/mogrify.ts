import type { Tags } from '../../../statistics/tags';
import type { Pattern, PatternMatch } from '../mapping/re2';

/** A rule that renames the statistics whose names match a pattern and gives them tags. */
export interface Mogrifier {
  /** Matched against the name without tags; not anchored. */
  readonly pattern: Pattern;
  /** The new name. It and the values of the tags are templates, see {@link expand}. */
  readonly output: string;
  readonly tags: Tags;
}

export interface Mogrified {
  readonly name: string;
  readonly tags: Tags;
}

/** The result of the first mogrifier that matches the name; undefined when none does. */
export function mogrify(mogrifiers: readonly Mogrifier[], name: string): Mogrified | undefined {
  for (const { pattern, output, tags } of mogrifiers) {
    const match = pattern.exec(name);
    if (match === null) continue;
    const expanded = Object.entries(tags).map(([tag, value]) => [tag, expand(value, match)] as const);
    return { name: expand(output, match), tags: Object.fromEntries(expanded) };
  }
  return undefined;
}

/**
 * Expands the references of a template: `$1` or `${1}` is a numbered group, `$0` the whole match, `${name}` a named group. A
 * reference to a number without a group is kept as written, as is a named reference when the pattern has no named groups; a
 * group that did not participate in the match, or a name without a group, expands to an empty string.
 */
function expand(template: string, match: PatternMatch): string {
  return template.replaceAll(/\$(?:(\d+)|\{(\w+)\})/g, (written, bare?: string, braced?: string) => {
    const reference = bare ?? braced ?? '';
    if (!/^\d+$/.test(reference)) return match.groups === undefined ? written : (match.groups[reference] ?? '');
    return Number(reference) < match.length ? (match[Number(reference)] ?? '') : written;
  });
}
