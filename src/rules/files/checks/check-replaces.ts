import { KEY_TOLERANCE, nearestName } from '../../../text/nearest-name';
import type { RuleConfig } from '../../rule-config';
import type { ProblemDetails } from '../problems/problem';
import type { CheckContext } from './check-context';
import { showText } from '../yaml/yaml-text';

/** After this many comparisons of names in total, no more names are suggested. */
const MAX_COMPARISONS = 100_000;

/**
 * Warns about `replaces` entries that replace nothing. Only rules of the same domain count, because a request has one domain.
 * @param rules the top level of a domain
 */
export function checkReplaces(rules: readonly RuleConfig[], context: CheckContext): void {
  const names = new NamedRules();
  names.add(rules);
  for (const rule of names.replacing) {
    const location = context.locationOf(rule);
    for (const [index, name] of rule.rateLimit?.replaces.entries() ?? []) {
      const range = location?.replaces[index];
      if (location === undefined || range === undefined) continue;
      const details = names.check(name);
      if (details !== undefined) context.report(location, range, details);
    }
  }
}

/** The names of the rules of one domain. */
class NamedRules {
  /** The rules that replace others. */
  readonly replacing: RuleConfig[] = [];
  readonly #limited = new Set<string>();
  readonly #unlimited = new Set<string>();
  #comparisons = 0;

  add(rules: readonly RuleConfig[]): void {
    for (const rule of rules) {
      const limit = rule.rateLimit;
      if (limit !== undefined && limit.name !== '') (limit.unlimited ? this.#unlimited : this.#limited).add(limit.name);
      if (limit !== undefined && limit.replaces.length > 0) this.replacing.push(rule);
      this.add(rule.descriptors);
    }
  }

  /** The problem with a name in `replaces`; undefined when it names a rule with a limit. */
  check(name: string): ProblemDetails | undefined {
    if (this.#limited.has(name)) return undefined;
    const shown = showText(name);
    if (this.#unlimited.has(name)) {
      return {
        code: 'replaces-unlimited',
        message: `'${shown}' is the name of an unlimited rule, which is never replaced`,
        advice: 'Remove this entry, or name a rule that has a limit.',
      };
    }
    this.#comparisons += this.#limited.size;
    const nearest = this.#comparisons > MAX_COMPARISONS ? undefined : nearestName(name, this.#limited, KEY_TOLERANCE);
    return {
      code: 'replaces-unknown-name',
      message: `no rule of the domain is named '${shown}', so nothing is replaced`,
      advice:
        nearest === undefined
          ? 'Give the rule to be replaced this `name` in its `rate_limit`.'
          : `Did you mean '${nearest}'?`,
    };
  }
}
