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
