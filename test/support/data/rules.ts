import type { DomainConfig, RateLimitConfig, RuleConfig } from '../../../src/rules/rule-config';
import { type Ruleset, buildRuleset, listRules } from '../../../src/rules/ruleset';
import type { UnitName } from '../../../src/rules/unit';

/** A rule as a test writes it: fields that are left out have the defaults of a rule file. */
export interface RuleSketch extends Partial<Omit<RuleConfig, 'rateLimit' | 'descriptors'>> {
  readonly key: string;
  readonly rateLimit?: RateLimitConfig | undefined;
  readonly descriptors?: readonly RuleSketch[];
}

export function ruleConfig({ descriptors = [], ...sketch }: RuleSketch): RuleConfig {
  return {
    value: '',
    rateLimit: sketch.rateLimits?.[0],
    shadowMode: false,
    quotaMode: false,
    detailedMetric: false,
    valueToMetric: false,
    shareThreshold: false,
    metadata: undefined,
    ...sketch,
    descriptors: descriptors.map(ruleConfig),
  };
}

export function domainConfig(domain: string, ...descriptors: readonly RuleSketch[]): DomainConfig {
  return { domain, descriptors: descriptors.map(ruleConfig) };
}

/** A ruleset of one domain. */
export function rulesetOf(domain: string, ...descriptors: readonly RuleSketch[]): Ruleset {
  return buildRuleset([domainConfig(domain, ...descriptors)]);
}

/** A `rate_limit` block, for example `limit(10, 'MINUTE')`. */
export function limit(requestsPerUnit: number, unit: UnitName, more: Partial<RateLimitConfig> = {}): RateLimitConfig {
  return { unit, unitMultiplier: 1, requestsPerUnit, unlimited: false, name: '', replaces: [], ...more };
}

export function unlimited(more: Partial<RateLimitConfig> = {}): RateLimitConfig {
  return { unit: undefined, unitMultiplier: 1, requestsPerUnit: 0, unlimited: true, name: '', replaces: [], ...more };
}

/** The lines of all rules as `/rlconfig` shows them. */
export function linesOf(ruleset: Ruleset): readonly string[] {
  return [...listRules(ruleset)].sort();
}
