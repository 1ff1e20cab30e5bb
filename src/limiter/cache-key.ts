import type { Rule } from '../rules/rule-tree';
import type { Entry } from './request';

/** The start of the window that `nowSeconds` falls into, in Unix seconds. */
export function windowStart(nowSeconds: number, windowSeconds: number): number {
  return nowSeconds - (nowSeconds % windowSeconds);
}

/**
 * A counter's key without its window: `<prefix><domain>_` and for each entry `<key>_<value>_`. The window's start in Unix
 * seconds follows. Byte for byte what the Go service writes, so that both can share one store during a migration.
 *
 * @param rule the rule that was matched; undefined for a limit that the request brought along. Where a level shares its
 *   threshold, its pattern stands in the place of the request's value.
 */
export function cacheKeyBody(
  prefix: string,
  domain: string,
  entries: readonly Entry[],
  rule: Rule | undefined,
): string {
  const path = rule?.path;
  let body = `${prefix}${domain}_`;
  for (let level = 0; level < entries.length; level += 1) {
    const { key, value } = entries[level] as Entry;
    const step = path?.[level];
    body += `${key}_${step?.shareThreshold ? step.value : value}_`;
  }
  return body;
}

/** The levels of the rule's path whose request values stand in its cache keys. */
export function runtimeKeyLevels(rule: Rule): readonly number[] {
  return rule.path.flatMap((step, level) => (step.countsByValue ? [level] : []));
}
