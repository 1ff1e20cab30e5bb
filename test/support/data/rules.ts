import { Limit } from '../../../src/counting/limit';
import {
  DEFAULT_RULE_OPTIONS,
  type DomainConfig,
  type RuleConfig,
  type RuleLimit,
  type RuleOptions,
} from '../../../src/rules/rule-config';
import { type Ruleset, buildRuleset, ruleLines } from '../../../src/rules/ruleset';
import type { UnitName } from '../../../src/rules/unit';

/** A rule as a test writes it: fields that are left out have the defaults of a rule file. */
export interface RuleSketch
  extends Partial<Omit<RuleConfig, 'limits' | 'options' | 'descriptors'>>, Partial<Omit<RuleOptions, 'hasLimitList'>> {
  readonly key: string;
  readonly rateLimit?: RuleLimit | undefined;
  readonly rateLimits?: readonly RuleLimit[] | undefined;
  readonly descriptors?: readonly RuleSketch[];
}

export function ruleConfig({ rateLimit, rateLimits, descriptors = [], ...sketch }: RuleSketch): RuleConfig {
  const { key, value = '', valueIn, valueCidr, valueRegex, metadata, line, column, ...options } = sketch;
  return {
    ...{ key, value, metadata },
    ...(valueIn && { valueIn }),
    ...(valueCidr !== undefined && { valueCidr }),
    ...(valueRegex !== undefined && { valueRegex }),
    ...(line !== undefined && { line, column }),
    limits: rateLimits ?? (rateLimit === undefined ? [] : [rateLimit]),
    options: { ...DEFAULT_RULE_OPTIONS, ...options, hasLimitList: rateLimits !== undefined },
    descriptors: descriptors.map(ruleConfig),
  };
}

/** Configurations without the places of their rules. */
export function withoutPlaces(configs: readonly DomainConfig[]): readonly DomainConfig[] {
  return configs.map(({ domain, descriptors, unmatched }) => ({
    domain,
    descriptors: descriptors.map(withoutPlace),
    ...(unmatched && { unmatched: withoutPlace(unmatched) }),
  }));
}

function withoutPlace(rule: RuleConfig): RuleConfig {
  const { key, value, valueIn, valueCidr, valueRegex, limits, options, metadata, descriptors } = rule;
  const matched = { key, value, valueIn, valueCidr, valueRegex };
  return { ...matched, limits, options, metadata, descriptors: descriptors.map(withoutPlace) };
}

export function domainConfig(domain: string, ...descriptors: readonly RuleSketch[]): DomainConfig {
  return { domain, descriptors: descriptors.map(ruleConfig) };
}

/** A ruleset of one domain. */
export function rulesetOf(domain: string, ...descriptors: readonly RuleSketch[]): Ruleset {
  return buildRuleset([domainConfig(domain, ...descriptors)]);
}

const DEFAULTS = { unitMultiplier: 1, postpaid: false, unlimited: false, name: '', replaces: [] };

/** A `rate_limit` block with `max_concurrent`. */
export function atATime(most: number, more: Partial<RuleLimit> = {}): RuleLimit {
  return limit(most, 'UNKNOWN', { algorithm: 'max_concurrent', ...more });
}

/** A `rate_limit` block, for example `limit(10, 'MINUTE')`. */
export function limit(requestsPerUnit: number, unit: UnitName, more: Partial<RuleLimit> = {}): RuleLimit {
  return { ...DEFAULTS, unit, requestsPerUnit, ...more };
}

/** The limit of a rule without a path, as decisions have it. */
export function boundLimit(...of: Parameters<typeof limit>): Limit {
  return new Limit(limit(...of), DEFAULT_RULE_OPTIONS, '', { nearLimitRatio: 0.8 });
}

export function unlimited(more: Partial<RuleLimit> = {}): RuleLimit {
  return { ...DEFAULTS, unit: undefined, requestsPerUnit: 0, unlimited: true, ...more };
}

/** The lines of all rules as `/rlconfig` shows them. */
export function linesOf(ruleset: Ruleset): readonly string[] {
  return [...ruleLines(ruleset)].sort();
}
