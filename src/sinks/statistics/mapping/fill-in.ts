/** What a match captured: the whole name first, then its groups, empty where one took no part. */
export interface Captured {
  readonly groups: readonly (string | undefined)[];
  readonly named?: Readonly<Record<string, string | undefined>> | undefined;
}

// A glob's reference goes on over every letter, digit, `_` and `$`, also where no brace closes it.
const OF_GLOB = /\$\{?(?<reference>[\w$]+)\}?/g;
const OF_EXPRESSION = /\$(?:\$|\{(?<braced>[\p{L}\p{Nd}_]+)\}|(?<bare>[\p{L}\p{Nd}_]+))/gu;
const NUMBER = /^(?:0|[1-9]\d*)$/;

/**
 * Puts what a glob captured into a name or a label, as the statsd exporter does: `$1` and `${1}` are what the first star stood
 * for, `$0` the whole name. A reference is as long as it can be, so that `$1_total` refers to `1_total`, which there is not;
 * what there is not is empty.
 */
export function fillInGlob(template: string, { groups }: Captured): string {
  return template.replaceAll(OF_GLOB, (_, reference: string) =>
    /^\d+$/.test(reference) ? (groups[Number(reference)] ?? '') : '',
  );
}

/** The same for an expression, whose groups may have names too; `$$` is a `$`. */
export function fillInExpression(template: string, { groups, named }: Captured): string {
  return template.replaceAll(OF_EXPRESSION, (written, braced?: string, bare?: string) => {
    const reference = braced ?? bare;
    if (reference === undefined) return written.slice(1);
    return (NUMBER.test(reference) ? groups[Number(reference)] : named?.[reference]) ?? '';
  });
}

/** The references that a mapping makes to what its match never captures, as they are written. */
export function referencesToNothing(
  match: readonly string[] | RegExp,
  templates: readonly string[],
): readonly string[] {
  const isGlob = !(match instanceof RegExp);
  // With an empty alternative every expression matches, and shows its groups.
  const all = isGlob ? null : new RegExp(`${match.source}|`, match.flags).exec('');
  const count = isGlob ? match.filter((part) => part === '*').length : (all?.length ?? 1) - 1;
  const names = Object.keys(all?.groups ?? {});
  return templates
    .flatMap((template) => [...template.matchAll(isGlob ? OF_GLOB : OF_EXPRESSION)])
    .filter(({ groups = {} }) => {
      const reference = groups['reference'] ?? groups['braced'] ?? groups['bare'];
      if (reference === undefined || names.includes(reference)) return false;
      return !(isGlob ? /^\d+$/ : NUMBER).test(reference) || Number(reference) > count;
    })
    .map(([written]) => written);
}
