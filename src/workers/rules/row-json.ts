import type { Json, JsonObject, RateLimitConfig, RuleConfig } from '../../rules/rule-config';
import type { RuleRow } from '../../rules/rows/rule-rows';
import type { UnitName } from '../../rules/unit';

/** A row without wildcards as short JSON: flags in one number, and neither names of members nor what is empty at the end. */
export type RowJson = DomainJson | FileJson | RuleJson;

type DomainJson = string;
type FileJson = readonly [file: string];
type RuleJson = readonly [
  depth: number,
  key: string,
  value: string,
  flags: number,
  line: number,
  column: number,
  limit?: LimitJson | 0,
  metadata?: JsonObject,
];
type LimitJson = readonly [requestsPerUnit: number, unit: UnitName | 0, name: string, ...replaces: readonly string[]];

type PlainRow = Exclude<RuleRow, { readonly wildcards: unknown }>;
type RuleRowOnly = Extract<RuleRow, { readonly rule: unknown }>;

const FLAGS = {
  shadowMode: 1,
  quotaMode: 2,
  detailedMetric: 4,
  valueToMetric: 8,
  shareThreshold: 16,
} as const;
const FLAG_NAMES = Object.keys(FLAGS) as (keyof typeof FLAGS)[];
const UNLIMITED = 32;
const HAS_PLACE = 64;

export function rowToJson(row: PlainRow): Json {
  if ('domain' in row) return row.domain;
  return 'file' in row ? [row.file] : ruleToJson(row);
}

export function rowOfJson(json: RowJson): RuleRow {
  if (typeof json === 'string') return { domain: json };
  return json.length === 1 ? { file: json[0] } : ruleOfJson(json);
}

function ruleToJson({ depth, rule, line, column }: RuleRowOnly): readonly Json[] {
  const { key, value, rateLimit, metadata } = rule;
  let flags = rateLimit?.unlimited === true ? UNLIMITED : 0;
  if (line !== undefined) flags |= HAS_PLACE;
  for (const flag of FLAG_NAMES) if (rule[flag]) flags |= FLAGS[flag];
  const json: Json[] = [depth, key, value, flags, line ?? 0, column ?? 0];
  if (rateLimit !== undefined) json.push(limitToJson(rateLimit));
  else if (metadata !== undefined) json.push(0);
  if (metadata !== undefined) json.push(metadata);
  return json;
}

function ruleOfJson([depth, key, value, flags, line, column, limit = 0, metadata]: RuleJson): RuleRow {
  function has(flag: number): boolean {
    return (flags & flag) !== 0;
  }
  const rule: RuleConfig = {
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
  return has(HAS_PLACE) ? { depth, rule, line, column } : { depth, rule };
}

function limitToJson({ requestsPerUnit, unit, name, replaces }: RateLimitConfig): readonly Json[] {
  return [requestsPerUnit, unit ?? 0, name, ...replaces];
}

function limitOfJson([requestsPerUnit, unit, name, ...replaces]: LimitJson, unlimited: boolean): RateLimitConfig {
  return { requestsPerUnit, unit: unit === 0 ? undefined : unit, name, replaces, unlimited };
}
