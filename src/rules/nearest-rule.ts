import { excerpt } from '../text/excerpt';
import { KEY_TOLERANCE, nearestName } from '../text/nearest-name';
import type { Explanation } from './explain';
import type { Level, Rule } from './rule-tree';
import type { Entry, Ruleset } from './ruleset';

/** The rule that a descriptor without a limit nearly matches. */
export interface NearestRule {
  /** Undefined when a domain is nearest. */
  readonly rule: Rule | undefined;
  /** Why it does not match: one sentence without a full stop. */
  readonly difference: string;
  /** The same without the value that the caller has sent; undefined if it has none. */
  readonly withoutValue?: string;
}

/** Longer texts, and further ones, are not compared: comparing two takes time in proportion to the product of their lengths. */
const MAX_LENGTH = 64;
const MAX_COMPARED = 200;

/** Undefined when a limit applies, or no rule is near. Takes up to a few milliseconds. */
export function nearestRule(
  ruleset: Ruleset,
  { domain, entries }: { readonly domain: string; readonly entries: readonly Entry[] },
  { outcome, levels, rule }: Explanation,
): NearestRule | undefined {
  if (outcome === 'unknown domain') return nearestDomain(ruleset, domain);
  if (outcome === 'too deep') {
    const difference = `the descriptor has ${count(entries.length, 'entry')}, but no rules are nested in this one, which matches the first ${levels.length}`;
    return { rule, difference };
  }
  if (outcome === 'no limit' && rule?.nested !== undefined) return nearestNested(rule, rule.nested, entries);
  if (outcome !== 'no match') return undefined;
  const level = levelAt(ruleset, domain, levels);
  return level && nearestAt(level, entries, levels.length - 1);
}

/** The level at which no rule matched. */
function levelAt(ruleset: Ruleset, domain: string, levels: Explanation['levels']): Level | undefined {
  const parent = levels.at(-2)?.candidates.find(({ outcome }) => outcome === 'chosen')?.rule;
  return parent === undefined ? ruleset.domain(domain) : parent.nested;
}

function nearestDomain(ruleset: Ruleset, domain: string): NearestRule | undefined {
  const nearest = nearestText(domain, ruleset.domains.keys());
  return nearest === undefined
    ? undefined
    : { rule: undefined, difference: `the rules have the domain ${quote(nearest)}, not ${quote(domain)}` };
}

function nearestNested(matched: Rule, nested: Level, entries: readonly Entry[]): NearestRule | undefined {
  for (const rule of nested.rules()) {
    const difference = `the descriptor has ${count(entries.length, 'entry')}; this rule, nested in ${quote(matched.key)}, needs another one with the key ${quote(rule.key)}`;
    return { rule, difference };
  }
  return undefined;
}

/** @param index that of the entry for which the level has no match */
function nearestAt(level: Level, entries: readonly Entry[], index: number): NearestRule | undefined {
  const { key, value } = entries[index] as Entry;
  const place = `entry ${index + 1}`;
  if (level.countOf(key) > 0) {
    const rule = ruleWithNearestValue(level, key, value);
    if (rule === undefined) return undefined;
    const difference = `${place} has the value ${quote(value)}, but the rule ${quote(rule.value)}`;
    return { rule, difference, withoutValue: `${place} has another value than the rule: ${quote(rule.value)}` };
  }
  const nearest = nearestText(key, level.keys());
  const later = entries.findIndex((entry, at) => at !== index && level.countOf(entry.key) > 0);
  if (nearest === undefined && later < 0) return undefined;
  const ruleKey = nearest ?? (entries[later] as Entry).key;
  const [rule] = level.rulesOf(ruleKey);
  const difference = `${place} has the key ${quote(key)}, but the rule ${quote(ruleKey)}`;
  return {
    rule,
    difference: nearest === undefined ? `${difference}, which is that of entry ${later + 1}` : difference,
  };
}

/** The rule with the most similar value, otherwise the first one. */
function ruleWithNearestValue(level: Level, key: string, value: string): Rule | undefined {
  const nearest = nearestText(value, valuesOf(level, key));
  if (nearest !== undefined) return level.get(key, nearest);
  const [first] = level.rulesOf(key);
  return first;
}

function* valuesOf(level: Level, key: string): IterableIterator<string> {
  for (const { value } of level.rulesOf(key)) yield value;
}

function nearestText(text: string, known: Iterable<string>): string | undefined {
  return text.length > MAX_LENGTH ? undefined : nearestName(text, shortTexts(known), KEY_TOLERANCE);
}

function* shortTexts(texts: Iterable<string>): IterableIterator<string> {
  let compared = 0;
  for (const text of texts) {
    if (text.length <= MAX_LENGTH) yield text;
    compared += 1;
    if (compared === MAX_COMPARED) return;
  }
}

/** In quotes and of limited length. */
function quote(text: string): string {
  return `'${excerpt(text, MAX_LENGTH)}'`;
}

function count(number: number, what: 'entry'): string {
  return number === 1 ? `1 ${what}` : `${number} entries`;
}
