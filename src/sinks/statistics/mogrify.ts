import type { Tags } from '../../statistics/tags';
import { expand } from './expand';

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
