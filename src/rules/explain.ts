import { excerpt } from '../text/excerpt';
import { KEY_TOLERANCE, nearestName } from '../text/nearest-name';
import type { Entry, Level, Rule } from './rule-tree';
import { type Ruleset, matchRule } from './ruleset';
import { TooMuchWork, UNLIMITED_WORK, Wildcard, WorkBudget } from './wildcards';

/** One rule of an entry's key, and what the search did with it. */
export interface Candidate {
  readonly rule: Rule;
  /** `passed over`: tried, but does not match. `not tried`: an earlier rule matched. */
  readonly outcome: 'chosen' | 'passed over' | 'not tried';
}

/** The search at one level of the tree. */
export interface ExplainedLevel {
  readonly entry: Entry;
  readonly level: Level;
  readonly chosen: Rule | undefined;
  /** The rules of the entry's key in the order in which they are tried, without those of another exact value. */
  readonly candidates: readonly Candidate[];
  /** How many more candidates there are, apart from the chosen one; see {@link ExplainOptions.maxCandidates}. */
  readonly omitted: number;
  /** How many rules of the entry's key have another exact value. */
  readonly otherValues: number;
  /** When no rule has the entry's key: the keys that the rules of the level have. */
  readonly keys: readonly string[];
}

/** How the search ended. */
export type MatchOutcome =
  /** No rule file names the domain. */
  | 'unknown domain'
  /** A descriptor without entries matches nothing. */
  | 'no entries'
  /** No rule matches at the last level listed. */
  | 'no match'
  /** Entries remain, but no rules are nested in the rule that matched. */
  | 'too deep'
  /** The rule that matched has no limit: whitelisted, or a placeholder for nested rules. */
  | 'no limit'
  /** The rule that matched has a limit or is unlimited. */
  | 'limit';

/** Why a descriptor matches a rule, or none. */
export interface Explanation {
  readonly levels: readonly ExplainedLevel[];
  readonly outcome: MatchOutcome;
  /** The last rule that matched, if any. It applies only when the outcome is `limit`. */
  readonly rule: Rule | undefined;
}

export interface ExplainOptions {
  /** As in {@link matchRule}. */
  readonly budget?: WorkBudget;
  /** How many candidates of a level are listed at most, in addition to the chosen one. Default: all. */
  readonly maxCandidates?: () => number;
  /** How many keys of a level are listed at most. Default: all. */
  readonly maxKeys?: () => number;
}

/** A descriptor with its domain. */
export interface AskedDescriptor {
  readonly domain: string;
  readonly entries: readonly Entry[];
}

/**
 * Explains step by step what {@link matchRule} does with a descriptor.
 *
 * @throws TooMuchWork when the wildcards need more work than the budget has
 */
export function explainMatch(
  ruleset: Ruleset,
  { domain, entries }: AskedDescriptor,
  options: ExplainOptions = {},
): Explanation {
  const top = ruleset.domain(domain);
  if (top === undefined) return { levels: [], outcome: 'unknown domain', rule: undefined };
  const levels: ExplainedLevel[] = [];
  matchRule(top, entries, {
    budget: options.budget ?? UNLIMITED_WORK,
    visit: (level, entry, chosen) => void levels.push(explainLevel(level, { entry, chosen }, options)),
  });
  const rule = levels.at(-1)?.chosen;
  return { levels, outcome: matchOutcome(levels, entries, rule), rule };
}

function matchOutcome(
  levels: readonly ExplainedLevel[],
  entries: readonly Entry[],
  rule: Rule | undefined,
): MatchOutcome {
  if (levels.length === 0) return 'no entries';
  if (rule === undefined) return 'no match';
  if (levels.length < entries.length) return 'too deep';
  return rule.limit === undefined ? 'no limit' : 'limit';
}

function explainLevel(
  level: Level,
  { entry, chosen }: { readonly entry: Entry; readonly chosen: Rule | undefined },
  { maxCandidates = () => Infinity, maxKeys = () => Infinity }: ExplainOptions,
): ExplainedLevel {
  const candidates: Candidate[] = [];
  const most = maxCandidates();
  let isFound = false;
  for (const rule of triedRules(level, entry)) {
    if (candidates.length >= most) break;
    candidates.push({ rule, outcome: rule === chosen ? 'chosen' : isFound ? 'not tried' : 'passed over' });
    isFound ||= rule === chosen;
  }
  if (chosen !== undefined && !isFound) candidates.push({ rule: chosen, outcome: 'chosen' });
  const tried = countTried(level, entry);
  const count = level.countOf(entry.key);
  return {
    entry,
    level,
    chosen,
    candidates,
    omitted: tried - candidates.length,
    otherValues: count - tried,
    keys: count === 0 ? firstOf(level.keys(), maxKeys()) : [],
  };
}

/**
 * The rules of an entry's key in the order in which they are tried, without those of other exact values and networks.
 */
function* triedRules(level: Level, { key, value }: Entry): IterableIterator<Rule> {
  const exact = value === '' ? undefined : level.get(key, value);
  if (exact !== undefined) yield exact;
  const network = level.networkOf(key, value);
  if (network !== undefined) yield network;
  for (const rule of level.wildcardsOf(key)) if (rule !== exact) yield rule;
  yield* level.regexesOf(key);
  const withoutValue = level.get(key, '');
  if (withoutValue !== undefined) yield withoutValue;
}

/** How many rules {@link triedRules} returns. */
function countTried(level: Level, { key, value }: Entry): number {
  const exact = value === '' ? undefined : level.get(key, value);
  const isExplicit = exact !== undefined && !(exact.matcher instanceof Wildcard);
  const single = [isExplicit, level.networkOf(key, value) !== undefined, level.get(key, '') !== undefined];
  return level.wildcardsOf(key).length + level.regexesOf(key).length + single.filter(Boolean).length;
}

function firstOf<T>(items: Iterable<T>, most: number): readonly T[] {
  const first: T[] = [];
  for (const item of items) {
    if (first.length >= most) break;
    first.push(item);
  }
  return first;
}

/** The rule that a descriptor without a limit nearly matches. */
export interface NearestRule {
  /** Undefined when a domain is nearest. */
  readonly rule: Rule | undefined;
  /** Why it does not match: one sentence without a full stop. */
  readonly difference: string;
  /** The same without the value that the caller has sent; undefined if it has none. */
  readonly withoutValue?: string;
}

/**
 * Longer texts, and further ones, are not compared: comparing two takes time in proportion to the product of their
 * lengths.
 */
const MAX_LENGTH = 64;
/** Of looking for the rule that would match if a key was right. */
const MAX_STEPS = 10_000;
/** In characters, of all texts that one is compared with. */
const MAX_COMPARED = 2_000;

/** Undefined when a limit applies, or no rule is near. Takes up to a few milliseconds. */
export function nearestRule(
  ruleset: Ruleset,
  { domain, entries }: AskedDescriptor,
  { outcome, levels, rule }: Explanation,
): NearestRule | undefined {
  if (outcome === 'unknown domain') return nearestDomain(ruleset, domain);
  if (outcome === 'too deep') {
    const difference = `the descriptor has ${entryCount(entries.length)}, but no rules are nested in this one, which matches the first ${levels.length === 1 ? 'one' : levels.length}`;
    return { rule, difference };
  }
  if (outcome === 'no limit' && rule?.nested !== undefined) return nearestNested(rule, rule.nested, entries);
  const last = levels.at(-1);
  return outcome === 'no match' && last !== undefined ? nearestAt(last.level, entries, levels.length - 1) : undefined;
}

function nearestDomain(ruleset: Ruleset, domain: string): NearestRule | undefined {
  const nearest = nearestText(domain, ruleset.domains.keys());
  return nearest === undefined
    ? undefined
    : { rule: undefined, difference: `the rules have the domain ${quote(nearest)}, not ${quote(domain)}` };
}

function nearestNested(matched: Rule, nested: Level, entries: readonly Entry[]): NearestRule | undefined {
  for (const rule of nested.rules()) {
    const difference = `the descriptor has ${entryCount(entries.length)}; this rule, nested in ${quote(matched.key)}, needs another one with the key ${quote(rule.key)}`;
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
