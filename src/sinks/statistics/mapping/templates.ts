import { type Pattern, compileRe2 } from './re2';

/** What a match captured: the whole name first, then its groups, undefined for a group that did not participate. */
export interface Captures {
  readonly groups: readonly (string | undefined)[];
  readonly named?: Readonly<Record<string, string | undefined>> | undefined;
}

// A reference in a glob's template extends over every letter, digit, `_` and `$`, even without a closing brace.
const GLOB_REFERENCE = /\$\{?(?<reference>[\w$]+)\}?/g;
const REGEX_REFERENCE = /\$(?:\$|\{(?<braced>[\p{L}\p{Nd}_]+)\}|(?<bare>[\p{L}\p{Nd}_]+))/gu;
/** A number of a regular expression's template: without leading zeros. */
const NUMBER = /^(?:0|[1-9]\d*)$/;

/**
 * Expands the template of a name or label with the captures of a glob, as the statsd exporter does: `$1` or `${1}` is what the
 * first star matched, `$0` the whole name. A reference is as long as possible, so `$1_total` refers to `1_total`, which does not
 * exist; such a reference expands to an empty string.
 */
export function expandGlobTemplate(template: string, { groups }: Captures): string {
  return template.replaceAll(GLOB_REFERENCE, (_, reference: string) =>
    /^\d+$/.test(reference) ? (groups[Number(reference)] ?? '') : '',
  );
}

/** The same for a regular expression, whose groups may also have names; `$$` is a `$`. */
export function expandRegexTemplate(template: string, { groups, named }: Captures): string {
  return template.replaceAll(REGEX_REFERENCE, (written, braced?: string, bare?: string) => {
    const reference = braced ?? bare;
    if (reference === undefined) return written.slice(1);
    return (NUMBER.test(reference) ? groups[Number(reference)] : named?.[reference]) ?? '';
  });
}

/** The references of the templates, as written, that no capture of the match can fill. */
export function undefinedReferences(
  match: readonly string[] | Pattern,
  templates: readonly string[],
): readonly string[] {
  const isGlob = !('exec' in match);
  // With an empty alternative the regular expression matches anything, and the match lists all groups.
  const all = isGlob ? null : compileRe2(`${match.source}|`).exec('');
  const count = isGlob ? match.filter((component) => component === '*').length : (all?.length ?? 1) - 1;
  const names = Object.keys(all?.groups ?? {});
  return templates
    .flatMap((template) => [...template.matchAll(isGlob ? GLOB_REFERENCE : REGEX_REFERENCE)])
    .filter(({ groups = {} }) => {
      const reference = groups['reference'] ?? groups['braced'] ?? groups['bare'];
      if (reference === undefined || names.includes(reference)) return false;
      return !(isGlob ? /^\d+$/ : NUMBER).test(reference) || Number(reference) > count;
    })
    .map(([written]) => written);
}
