import { type Descriptor, MAX_MATCHING_STEPS, type RateLimitRequest } from '../limiter/request';
import type { Entry, Level, Rule } from '../rules/rule-tree';
import type { Ruleset } from '../rules/ruleset';
import { listedStatisticsKey } from '../rules/statistics-key';
import { WorkBudget } from '../rules/wildcards';
import { escapeStatisticsKey } from '../statistics/escape';
import { shortened } from '../text/excerpt';
import type { ExplainedDescriptor, ExplainedStep, MatchOutcome, RuleReference } from './explanation';
import { followMatch } from './match';
import { nearestRule } from './nearest-rule';

/** The candidates and keys that the explanation of a request lists at most… */
const MAX_LISTED = 2_000;
/** …and of one level. */
const MAX_LISTED_OF_LEVEL = 20;
/** For so many descriptors of a request, the nearest rule is searched. */
const MAX_NEAREST = 20;

/** A descriptor as the rules have it. */
export interface TracedDescriptor extends Pick<ExplainedDescriptor, 'steps' | 'nearest'> {
  readonly outcome: MatchOutcome | 'override';
}

/**
 * Returns what follows the descriptors of a request through the rules, one after the other; what is listed of all of
 * them together is limited. It throws TooMuchWork for a request that a decision would reject.
 */
export function matchTrace(
  ruleset: Ruleset,
  { domain }: Pick<RateLimitRequest, 'domain'>,
): (descriptor: Descriptor) => TracedDescriptor {
  const budget = new WorkBudget(MAX_MATCHING_STEPS);
  let [listed, searched] = [0, 0];
  return ({ entries, limit }) => {
    const steps: ExplainedStep[] = [];
    if (limit !== undefined && ruleset.domains.has(domain)) return { outcome: 'override', steps, nearest: null };
    const asked = { domain, entries };
    const most = Math.min(MAX_LISTED - listed, MAX_LISTED_OF_LEVEL);
    const match = followMatch(ruleset, asked, {
      budget,
      visit: (level, entry, chosen) => steps.push(stepOf(level, entry, { chosen, most })),
    });
    for (const { candidates, keys } of steps) listed = Math.min(MAX_LISTED, listed + candidates.length + keys.length);
    const { outcome } = match;
    if (outcome === 'limit' || searched === MAX_NEAREST) return { outcome, steps, nearest: null };
    searched += 1;
    const nearest = nearestRule(ruleset, asked, match);
    if (nearest === undefined) return { outcome, steps, nearest: null };
    const { rule, difference } = nearest;
    return { outcome, steps, nearest: { rule: referenceTo(rule), difference } };
  };
}

/** What the search found at a level. @param options.most candidates, besides the chosen one, or keys */
function stepOf(
  level: Level,
  entry: Entry,
  { chosen, most }: { readonly chosen: Rule | undefined; readonly most: number },
): ExplainedStep {
  const candidates: ExplainedStep['candidates'][number][] = [];
  let isFound = false;
  for (const rule of level.tried(entry)) {
    if (candidates.length >= most) break;
    const outcome = rule === chosen ? 'chosen' : isFound ? 'not tried' : 'passed over';
    candidates.push({ rule: referenceTo(rule), outcome });
    isFound ||= rule === chosen;
  }
  if (chosen !== undefined && !isFound) candidates.push({ rule: referenceTo(chosen), outcome: 'chosen' });
  const tried = level.countTried(entry);
  const count = level.countOf(entry.key);
  return {
    key: shortened(entry.key),
    value: shortened(entry.value),
    candidates,
    omitted: tried - candidates.length,
    otherValues: count - tried,
    keys: count === 0 ? firstOf(level.keys(), most).map(shortened) : [],
  };
}

function firstOf<T>(items: Iterable<T>, most: number): readonly T[] {
  const first: T[] = [];
  for (const item of items) {
    if (first.length >= most) break;
    first.push(item);
  }
  return first;
}

/** A rule as answers name it. */
export function referenceTo(rule: Rule): RuleReference;
export function referenceTo(rule: Rule | undefined): RuleReference | null;
export function referenceTo(rule: Rule | undefined): RuleReference | null {
  if (rule === undefined) return null;
  return {
    statisticsKey: shortened(escapeStatisticsKey(listedStatisticsKey(rule))),
    key: shortened(rule.key),
    value: shortened(rule.value),
    place: rule.place ?? null,
  };
}
