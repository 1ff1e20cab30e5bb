import {
  type Candidate,
  type ExplainedLevel,
  type Explanation as Match,
  explainMatch,
  nearestRule,
} from '../rules/explain';
import type { Rule } from '../rules/rule-tree';
import type { Ruleset } from '../rules/ruleset';
import { listedStatisticsKey } from '../rules/statistics-key';
import { WorkBudget } from '../rules/wildcards';
import { escapeStatisticsKey } from '../statistics/escape';
import { type Descriptor, MAX_MATCHING_STEPS, type RateLimitRequest } from '../limiter/request';
import type { ExplainedStep, RuleReference } from './answers';
import { excerpt } from '../text/excerpt';

/** An explanation lists so many candidates and keys in all, and so many of one level… */
const MAX_LISTED = 2_000;
const MAX_CANDIDATES_OF_LEVEL = 20;
const MAX_KEYS = 20;
/** …and searches the nearest rule for so many descriptors. */
const MAX_NEAREST = 20;
/** In characters. */
const MAX_TEXT = 256;

/** How a descriptor was looked up. */
export interface LookUp {
  readonly outcome: Match['outcome'] | 'override';
  readonly steps: readonly ExplainedStep[];
  readonly nearest: { readonly rule: RuleReference | null; readonly difference: string } | null;
}

/** Looks the descriptors of a request up step by step; what is listed for all of them together is limited. */
export class LookUps {
  readonly #ruleset: Ruleset;
  readonly #domain: string;
  readonly #budget = new WorkBudget(MAX_MATCHING_STEPS);
  #listed = MAX_LISTED;
  #nearest = MAX_NEAREST;

  constructor(ruleset: Ruleset, { domain }: RateLimitRequest) {
    this.#ruleset = ruleset;
    this.#domain = domain;
  }

  /** @throws TooMuchWork for a request that a decision would reject */
  of({ entries, limit }: Descriptor): LookUp {
    const isKnown = this.#ruleset.domain(this.#domain) !== undefined;
    if (limit !== undefined && isKnown) return { outcome: 'override', steps: [], nearest: null };
    const path = { domain: this.#domain, entries };
    const match = explainMatch(this.#ruleset, path, {
      budget: this.#budget,
      maxCandidates: () => Math.min(this.#listed, MAX_CANDIDATES_OF_LEVEL),
      maxKeys: () => Math.min(this.#listed, MAX_KEYS),
    });
    const steps = match.levels.map((level) => this.#step(level));
    if (match.outcome === 'limit' || this.#nearest === 0) return { outcome: match.outcome, steps, nearest: null };
    this.#nearest -= 1;
    const nearest = nearestRule(this.#ruleset, path, match);
    return {
      outcome: match.outcome,
      steps,
      nearest: nearest === undefined ? null : { ...nearest, rule: referenceTo(nearest.rule) },
    };
  }

  #step({ entry, candidates, omitted, otherValues, keys }: ExplainedLevel): ExplainedStep {
    this.#listed = Math.max(0, this.#listed - candidates.length - keys.length);
    return {
      key: shortened(entry.key),
      value: shortened(entry.value),
      candidates: candidates.map(({ rule, outcome }: Candidate) => ({ rule: referenceTo(rule), outcome })),
      omitted,
      otherValues,
      keys: keys.map(shortened),
    };
  }
}

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

export function shortened(text: string): string {
  return excerpt(text, MAX_TEXT);
}
