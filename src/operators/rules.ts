import { NO_LIMIT, type RuleLimit } from '../rules/rule-config';
import type { Rule } from '../rules/rule-tree';
import type { Ruleset } from '../rules/ruleset';
import { activityOf } from '../explain/request-explanation';
import { Network } from '../rules/networks';
import { ValueList, ValueRegex } from '../rules/values';
import { limitSuffix, listedStatisticsKey } from '../rules/statistics-key';
import { escapeStatisticsKey } from '../statistics/escape';
import type { Statistics } from '../statistics/statistics';
import { wholeNumber } from '../text/plain-number';
import type { ListedLimit } from '../explain/explanation';
import type { ListedDomain, ListedRule, RuleTotals, RulesOrigin } from './answers';

export interface RuleListing extends RulesOrigin {
  /** The domains and their rules, each parent before its children. */
  readonly items: Iterable<ListedDomain | ListedRule>;
}

/** Which rules are listed. */
export interface RuleQuery {
  /** Undefined: those of all domains. */
  readonly domain?: string | undefined;
  /** At each level, at most so many of the rules of a key, the first ones, with those that are nested in them. */
  readonly perKey?: number | undefined;
}

/** Domains and their rules, each parent before its children. */
export function* listRules(
  ruleset: Ruleset,
  { domain: only, perKey = Infinity }: RuleQuery,
  statistics: Statistics,
): IterableIterator<ListedDomain | ListedRule> {
  for (const [domain, level] of ruleset.domains) {
    if (only !== undefined && domain !== only) continue;
    const unmatched = ruleset.unmatched.get(domain);
    yield { domain, unmatched: unmatched === undefined ? null : { ...listed(unmatched, statistics), descriptors: [] } };
    for (const { rule, depth } of firstOfKeys(level.walk(), perKey)) yield { depth, ...listed(rule, statistics) };
  }
}

function* firstOfKeys<Item extends { readonly rule: Rule; readonly depth: number }>(
  items: Iterable<Item>,
  most: number,
): IterableIterator<Item> {
  /** By depth, how many rules of each key there are at the present level. */
  const counts: Map<string, number>[] = [];
  /** The depth of a rule that is left out. */
  let omitted = Infinity;
  for (const item of items) {
    const { key } = item.rule;
    if (item.depth > omitted) continue;
    omitted = Infinity;
    counts.length = Math.min(counts.length, item.depth + 1);
    const level = (counts[item.depth] ??= new Map<string, number>());
    const count = (level.get(key) ?? 0) + 1;
    level.set(key, count);
    if (count <= most) yield item;
    else omitted = item.depth;
  }
}

/** A rule as it is listed, with its totals. */
export function listed(rule: Rule, statistics: Statistics): Omit<ListedRule, 'depth'> {
  const { key, value, matcher, place, limit, limits } = rule;
  const { hasLimitList, enforcePercent, onStoreFailure, addressPrefix, ...flags } = rule.options;
  const statisticsKey = listedStatisticsKey(rule);
  return {
    key,
    value,
    valueIn: matcher instanceof ValueList ? matcher.values : null,
    valueCidr: matcher instanceof Network ? matcher.text : null,
    valueRegex: matcher instanceof ValueRegex ? value : null,
    place: place ?? null,
    // The limit of `on_unmatched` has neither a unit nor `unlimited`.
    limit: limit?.unit === undefined && limit?.unlimited !== true ? null : listedLimit(limit),
    limits: hasLimitList ? limits.map(listedLimit) : null,
    ...flags,
    enforcePercent: flags.shadowMode ? null : (enforcePercent ?? null),
    onStoreFailure: onStoreFailure ?? null,
    addressPrefix: addressPrefix ?? null,
    metadata: rule.metadata ?? null,
    statisticsKey: escapeStatisticsKey(statisticsKey),
    totals: limit === undefined ? null : totalsOf(rule, statisticsKey, statistics),
  };
}

function listedLimit(limit: RuleLimit): ListedLimit {
  const numbers = limit.unlimited ? { unitMultiplier: undefined, requestsPerUnit: undefined } : undefined;
  const activity = activityOf(limit.active ?? null, Math.floor(Date.now() / 1000));
  const fields = Object.entries({ ...NO_LIMIT, ...limit, ...numbers, activity });
  return Object.fromEntries(fields.map(([name, value]) => [name, value ?? null])) as unknown as ListedLimit;
}

function totalsOf(rule: Rule, key: string, statistics: Statistics): RuleTotals {
  const totals = { calls: 0, hits: 0, within: 0, near: 0, over: 0, overByLocalCache: 0, shadow: 0 };
  // Limits that alternate have one key.
  const keys = new Set(rule.limits.map((limit) => key + limitSuffix(rule, limit)));
  for (const each of keys) {
    let calls = 0;
    for (const counted of statistics.rolledUp(each)) {
      calls += counted.calls;
      totals.hits += counted.totalHits;
      totals.within += counted.withinLimit;
      totals.near += counted.nearLimit - counted.nearLimitPartial;
      totals.over += counted.overLimit;
      totals.overByLocalCache += counted.overLimitWithLocalCache;
      totals.shadow += counted.shadowMode;
    }
    // Each limit has the same calls, but for those at times at which it does not apply.
    totals.calls = Math.max(totals.calls, calls);
  }
  // Hits of limits above 2^32 may add up to more than the schema has.
  for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] = wholeNumber(totals[name]);
  return totals;
}
