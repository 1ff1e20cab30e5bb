import { countedAddress } from '../rules/networks';
import type { AlgorithmLimit } from '../counting/algorithms/algorithm';
import type { Rule } from '../rules/rule-tree';
import type { Entry } from './request';

/**
 * A counter's key without its window: `<prefix><domain>_`, then `<key>_<value>_` for each entry. The caller appends the
 * start of the window in Unix seconds. Identical to the keys of the Go service, so that both can share a store during a
 * migration.
 *
 * @param rule the matched rule; undefined for a limit override. At a level with `share_threshold`, the key contains
 *   the rule's pattern instead of the request's value.
 */
export function cacheKeyBody(
  prefix: string,
  domain: string,
  entries: readonly Entry[],
  rule: Rule | undefined,
): string {
  let body = `${prefix}${domain}_`;
  for (let level = 0; level < entries.length; level += 1) {
    body += `${(entries[level] as Entry).key}_${countedValue(entries, level, rule)}_`;
  }
  return body;
}

/** The value of an entry as the cache key contains it. */
export function countedValue(entries: readonly Entry[], level: number, rule: Rule | undefined): string {
  const step = rule?.path[level];
  return step?.options.shareThreshold ? step.value : (entries[level] as Entry).value;
}

/**
 * The entries of a descriptor as they are counted: with networks in place of addresses where the rule that it matches
 * has an `address_prefix`; otherwise the entries themselves. Those that are counted already stay as they are.
 */
export function countedEntries(rule: Rule, entries: readonly Entry[]): readonly Entry[] {
  if (!rule.countsNetworks) return entries;
  return entries.map(({ key, value }, level) => {
    const prefix = rule.path[level]?.options.addressPrefix;
    return { key, value: prefix === undefined ? value : countedAddress(value, prefix) };
  });
}

/** Which of {@link countedEntries} are counted by another value than was sent. @param rule undefined: none are */
export function entriesCountedAs(rule: Rule | undefined, entries: readonly Entry[]): readonly Entry[] {
  if (rule?.countsNetworks !== true) return [];
  return countedEntries(rule, entries).filter(({ value }, level) => value !== entries[level]?.value);
}

/** The indices of the levels whose request values are part of the rule's cache keys. */
export function runtimeKeyLevels(rule: Rule): readonly number[] {
  return rule.path.flatMap((step, level) => (step.countsByValue ? [level] : []));
}

/**
 * The key of a counter with an algorithm, which has no time but the length of the window in seconds:
 * `<prefix>{_<domain>_<key>_<value>_}token_bucket_60`. That of a fixed window of a rule with `rate_limits` is
 * `<prefix>{_<domain>_<key>_<value>_}fixed_window_60`; where an algorithm decides it, with `all_or_nothing` or
 * `block_for`, the name is `all_or_nothing`. The caller appends the start of the window. The part in braces, which is
 * never empty, keeps what a store makes of it, and all limits of a rule, in one slot of a cluster.
 */
export function taggedKey(prefix: string, body: string, { name, lengthSeconds, postpaid }: Counting): string {
  const kind = name === 'token_bucket' && postpaid === true ? 'postpaid_bucket' : name;
  return `${prefix}{_${body}}${kind}_${lengthSeconds}`;
}

/** The key of the block of such a counter, without the start of a window: `<prefix>{_<domain>_…_}blocked_60`. */
export function blockKeyOf(key: string, { lengthSeconds }: Pick<Counting, 'lengthSeconds'>): string {
  return `${key.slice(0, key.lastIndexOf('}') + 1)}blocked_${lengthSeconds}`;
}

/** How a limit counts. */
interface Counting {
  readonly name: AlgorithmLimit['name'] | 'all_or_nothing';
  readonly lengthSeconds: number;
  readonly postpaid?: boolean | undefined;
}
