import type { Json, JsonObject, RateLimitConfig, RuleConfig } from '../../rules/rule-config';
import type { UnitName } from '../../rules/unit';

/** A rule and its depth as short JSON: flags in one number, and neither names of members nor what is empty at the end. */
export type RuleJson = readonly [
  depth: number,
  key: string,
  value: string,
  flags: number,
  limit?: LimitJson | 0,
  metadata?: JsonObject,
];

type LimitJson = readonly [requestsPerUnit: number, unit: UnitName | 0, name: string, ...replaces: readonly string[]];

const FLAGS = {
  shadowMode: 1,
  quotaMode: 2,
  detailedMetric: 4,
  valueToMetric: 8,
  shareThreshold: 16,
} as const;
const UNLIMITED = 32;

export function ruleToJson(depth: number, rule: RuleConfig): readonly Json[] {
  const { key, value, rateLimit, metadata } = rule;
  let flags = rateLimit?.unlimited === true ? UNLIMITED : 0;
  for (const flag of FLAG_NAMES) if (rule[flag]) flags |= FLAGS[flag];
  const json: Json[] = [depth, key, value, flags];
  if (rateLimit !== undefined) json.push(limitToJson(rateLimit));
  else if (metadata !== undefined) json.push(0);
  if (metadata !== undefined) json.push(metadata);
  return json;
}

/** The rule, without those nested in it. */
export function ruleOfJson([, key, value, flags, limit = 0, metadata]: RuleJson): RuleConfig {
  function has(flag: number): boolean {
    return (flags & flag) !== 0;
  }
  return {
    key,
    value,
    rateLimit: limit === 0 ? undefined : limitOfJson(limit, has(UNLIMITED)),
    shadowMode: has(FLAGS.shadowMode),
    quotaMode: has(FLAGS.quotaMode),
    detailedMetric: has(FLAGS.detailedMetric),
    valueToMetric: has(FLAGS.valueToMetric),
    shareThreshold: has(FLAGS.shareThreshold),
    metadata,
    descriptors: [],
  };
}

const FLAG_NAMES = Object.keys(FLAGS) as (keyof typeof FLAGS)[];

function limitToJson({ requestsPerUnit, unit, name, replaces }: RateLimitConfig): readonly Json[] {
  return [requestsPerUnit, unit ?? 0, name, ...replaces];
}

function limitOfJson([requestsPerUnit, unit, name, ...replaces]: LimitJson, unlimited: boolean): RateLimitConfig {
  return { requestsPerUnit, unit: unit === 0 ? undefined : unit, name, replaces, unlimited };
}
