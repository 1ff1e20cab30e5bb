import { Level, Rule } from './rule-tree';
import { UNLIMITED_WORK, type WorkBudget } from './wildcards';
import type { DomainConfig, RuleConfig } from './rule-config';
import { NO_PLACES, type PlaceOf } from './rule-config';

/** One entry of a request's descriptor. */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** All active rules. Immutable: a reload creates another one. */
export class Ruleset {
  /**
   * @param domains the top level of each domain
   * @param size the number of rules
   */
  constructor(
    readonly domains: ReadonlyMap<string, Level>,
    readonly size: number,
  ) {}

  /** The top level of a domain, undefined when no rule file names it. */
  domain(name: string): Level | undefined {
    return this.domains.get(name);
  }
}

/**
 * The rule that a descriptor matches: one level of the tree for each entry, where the rule of the last entry is the result.
 * Undefined when a level has no match, or when entries remain and no rules are nested. There is no backtracking: when a level
 * has a match, its less specific rules are not tried.
 *
 * @throws TooMuchWork when the wildcards need more work than the budget has
 */
export function matchRule(
  domain: Level,
  entries: readonly Entry[],
  budget: WorkBudget = UNLIMITED_WORK,
): Rule | undefined {
  let level: Level | undefined = domain;
  let rule: Rule | undefined;
  for (const { key, value } of entries) {
    rule = level?.find(key, value, budget);
    if (rule === undefined) return undefined;
    level = rule.nested;
  }
  return rule;
}

/** Builds a ruleset from checked configurations; configurations of one domain are joined in order. */
export function buildRuleset(configs: readonly DomainConfig[], placeOf: PlaceOf = NO_PLACES): Ruleset {
  const builder = new RulesetBuilder(placeOf);
  for (const config of configs) builder.add(config);
  return builder.done();
}

/** Builds a ruleset incrementally, so that a large one can be built between other work. */
export class RulesetBuilder {
  readonly #domains = new Map<string, Level>();
  readonly #placeOf: PlaceOf;
  #size = 0;

  /** @param placeOf where the rules are that {@link add} adds */
  constructor(placeOf: PlaceOf = NO_PLACES) {
    this.#placeOf = placeOf;
  }

  /** Adds top-level descriptors to a domain; may be called repeatedly with parts of them, in order. */
  add({ domain, descriptors }: DomainConfig): void {
    this.#topLevel(domain);
    this.#addRules(domain, descriptors, undefined);
  }

  /**
   * Adds one rule to a domain: below `parent` or, without one, to its top level. The descriptors nested in the configuration are
   * not added; the caller adds them the same way.
   */
  addRule(domain: string, config: RuleConfig, parent: Rule | undefined): Rule {
    const rule = new Rule(config, domain, parent);
    const level = parent === undefined ? this.#topLevel(domain) : (parent.nested ??= new Level());
    if (level.add(rule)) this.#size += 1;
    return rule;
  }

  done(): Ruleset {
    return new Ruleset(this.#domains, this.#size);
  }

  #addRules(domain: string, configs: readonly RuleConfig[], parent: Rule | undefined): void {
    for (const config of configs) {
      const rule = this.addRule(domain, config, parent);
      rule.place = this.#placeOf(config);
      if (config.descriptors.length > 0) this.#addRules(domain, config.descriptors, rule);
    }
  }

  #topLevel(domain: string): Level {
    let level = this.#domains.get(domain);
    if (level === undefined) this.#domains.set(domain, (level = new Level()));
    return level;
  }
}
