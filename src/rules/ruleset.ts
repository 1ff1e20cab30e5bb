import { Level, Rule } from './rule-tree';
import type { DomainConfig, RuleConfig } from './rule-config';

/** A key and a value, as a request's descriptor lists them. */
export interface KeyValue {
  readonly key: string;
  readonly value: string;
}

/** All rules in force at one time. It never changes: a reload makes another one. */
export class Ruleset {
  /** @param domains the top level of each domain */
  constructor(readonly domains: ReadonlyMap<string, Level>) {}

  /** The top level of a domain, undefined when no rule file names it. */
  domain(name: string): Level | undefined {
    return this.domains.get(name);
  }
}

/**
 * The rule that a descriptor meets: one level of the tree for each entry, ending exactly at the last (document 1, rule 3).
 * Undefined when a level has no match or no rules are nested where entries remain. Once a level has chosen a rule, a less
 * specific sibling is not tried.
 */
export function matchRule(domain: Level, entries: readonly KeyValue[]): Rule | undefined {
  let level: Level | undefined = domain;
  let rule: Rule | undefined;
  for (const { key, value } of entries) {
    rule = level?.find(key, value);
    if (rule === undefined) return undefined;
    level = rule.nested;
  }
  return rule;
}

/** Makes a ruleset of checked configurations; configurations of one domain are joined in their order. */
export function buildRuleset(configs: readonly DomainConfig[]): Ruleset {
  const builder = new RulesetBuilder();
  for (const config of configs) builder.add(config);
  return builder.done();
}

/** Builds a ruleset piece by piece, so that a large one can be built between other work. */
export class RulesetBuilder {
  readonly #domains = new Map<string, Level>();

  /** Adds top-level descriptors to a domain: all of them or, called several times, a part at a time, in order. */
  add({ domain, descriptors }: DomainConfig): void {
    addRules(this.#topLevel(domain), descriptors, domain, undefined);
  }

  /**
   * Adds one rule alone to a domain: below `parent` or, without one, to its top level. Whatever the configuration nests in it is
   * left out, to be added the same way.
   */
  addRule(domain: string, config: RuleConfig, parent: Rule | undefined): Rule {
    const rule = new Rule(config, domain, parent);
    const level = parent === undefined ? this.#topLevel(domain) : (parent.nested ??= new Level());
    level.add(rule);
    return rule;
  }

  done(): Ruleset {
    return new Ruleset(this.#domains);
  }

  #topLevel(domain: string): Level {
    let level = this.#domains.get(domain);
    if (level === undefined) this.#domains.set(domain, (level = new Level()));
    return level;
  }
}

function addRules(level: Level, configs: readonly RuleConfig[], domain: string, parent: Rule | undefined): void {
  for (const config of configs) {
    const rule = new Rule(config, domain, parent);
    level.add(rule);
    if (config.descriptors.length > 0) {
      rule.nested = new Level();
      addRules(rule.nested, config.descriptors, domain, rule);
    }
  }
}
