import type { Entry, Level, Rule } from '../rules/rule-tree';
import type { Ruleset } from '../rules/ruleset';
import { TooMuchWork, WorkBudget } from '../rules/wildcards';
import { excerpt } from '../text/excerpt';
import { KEY_TOLERANCE, nearestName } from '../text/nearest-name';
import type { AskedDescriptor, Match } from './match';

/** The rule that a descriptor without a limit nearly matches. */
interface NearestRule {
  /** Undefined when a domain is nearest. */
  readonly rule: Rule | undefined;
  /** Why it does not match: one sentence without a full stop. */
  readonly difference: string;
  /** The difference without the value that the caller has sent; undefined: `difference` has none. */
  readonly withoutValue?: string;
}

/**
 * The longest text that is compared, in characters: comparing two takes time in proportion to the product of their
 * lengths.
 */
const MAX_LENGTH = 64;
/** The characters that one text is compared with, of all others together. */
const MAX_COMPARED = 2_000;
/** The work of looking for the rule that would match if a key was right, in steps of a {@link WorkBudget}. */
const MAX_STEPS = 10_000;

/** Undefined when a limit applies, or no rule is near. Takes up to a few milliseconds. */
export function nearestRule(
  ruleset: Ruleset,
  { domain, entries }: AskedDescriptor,
  { outcome, rule, level, depth }: Match,
): NearestRule | undefined {
  if (outcome === 'unknown domain') return nearestDomain(ruleset, domain);
  if (outcome === 'too deep') {
    const difference =
      `the descriptor has ${entryCount(entries.length)}, but no rules are nested in this one, which ` +
      `matches the first ${depth === 1 ? 'one' : depth}`;
    return { rule, difference };
  }
  if (outcome === 'no limit' && rule?.nested !== undefined) return nearestNested(rule, rule.nested, entries);
  return outcome === 'no match' && level !== undefined ? nearestAt(level, entries, depth - 1) : undefined;
}

function nearestDomain(ruleset: Ruleset, domain: string): NearestRule | undefined {
  const nearest = nearestText(domain, ruleset.domains.keys());
  return nearest === undefined
    ? undefined
    : { rule: undefined, difference: `the rules have the domain ${quote(nearest)}, not ${quote(domain)}` };
}

function nearestNested(matched: Rule, nested: Level, entries: readonly Entry[]): NearestRule | undefined {
  for (const rule of nested.rules()) {
    const difference =
      `the descriptor has ${entryCount(entries.length)}; this rule, nested in ${quote(matched.key)}, ` +
      `needs another one with the key ${quote(rule.key)}`;
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
  const difference = `${place} has the key ${quote(key)}, but the rule`;
  if (nearest !== undefined) {
    return { rule: nearestOfKey(level, nearest, value), difference: `${difference} ${quote(nearest)}` };
  }
  const later = entries.findIndex((entry, at) => at !== index && level.countOf(entry.key) > 0);
  if (later < 0) return undefined;
  const { key: ruleKey, value: laterValue } = entries[later] as Entry;
  return {
    rule: nearestOfKey(level, ruleKey, laterValue),
    difference: `${difference} ${quote(ruleKey)}, which is that of entry ${later + 1}`,
  };
}

/** The rule that matches a value if the key is right, otherwise the one with the most similar value. */
function nearestOfKey(level: Level, key: string, value: string): Rule | undefined {
  try {
    return level.find(key, value, new WorkBudget(MAX_STEPS)) ?? ruleWithNearestValue(level, key, value);
  } catch (error) {
    if (error instanceof TooMuchWork) return ruleWithNearestValue(level, key, value);
    throw error;
  }
}

/** The rule with the most similar value, however different; the first one for a value that is too long to compare. */
function ruleWithNearestValue(level: Level, key: string, value: string): Rule | undefined {
  const nearest = nearestText(value, level.valuesOf(key), { ...KEY_TOLERANCE, maxEdits: () => MAX_LENGTH });
  if (nearest !== undefined) return level.get(key, nearest);
  const [first] = level.rulesOf(key);
  return first;
}

function nearestText(text: string, known: Iterable<string>, tolerance = KEY_TOLERANCE): string | undefined {
  return text.length > MAX_LENGTH ? undefined : nearestName(text, shortTexts(known), tolerance);
}

function* shortTexts(texts: Iterable<string>): IterableIterator<string> {
  let compared = 0;
  for (const text of texts) {
    if (text.length <= MAX_LENGTH) yield text;
    compared += Math.min(text.length, MAX_LENGTH) + 1;
    if (compared > MAX_COMPARED) return;
  }
}

/** In quotes and of limited length. */
function quote(text: string): string {
  return `'${excerpt(text, MAX_LENGTH)}'`;
}

function entryCount(number: number): string {
  return number === 1 ? '1 entry' : `${number} entries`;
}
