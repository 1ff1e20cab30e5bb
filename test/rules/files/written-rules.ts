import { startsOn } from '../../support/data/rule-resources';
import { type DomainConfig, type RuleConfig, type RuleLimit, nameInFiles } from '../../../src/rules/rule-config';
import type { BlockConfig } from '../../../src/rules/unit';

/** A configuration in its usual written form: fields with default values are omitted. */
export function written({ domain, descriptors, unmatched }: DomainConfig): object {
  const { key, value, limits } = unmatched ?? { key: '', value: '', limits: [] };
  const [limit] = limits;
  const rest = key === 'on_unmatched' ? { on_unmatched: value } : limit && { [key]: writtenLimit(limit) };
  return { domain, descriptors: descriptors.map(writtenRule), ...rest };
}

function writtenRule({ key, value, limits, options, descriptors, metadata, ...more }: RuleConfig): object {
  const { hasLimitList, ...flags } = options;
  const [one] = hasLimitList ? [] : limits;
  return {
    key,
    ...withoutDefaults({
      ...{ value, metadata, rate_limit: one && writtenLimit(one) },
      rate_limits: hasLimitList ? limits.map(writtenLimit) : undefined,
      ...inFiles({ ...more, ...flags }),
      descriptors: descriptors.map(writtenRule),
    }),
  };
}

function writtenLimit({
  unit,
  unitMultiplier,
  requestsPerUnit,
  calendar,
  replaces,
  lease,
  active,
  blockFor,
  algorithm,
  ...rest
}: RuleLimit): object {
  const isConcurrent = algorithm === 'max_concurrent';
  const fields = withoutDefaults({
    ...{
      ...inFiles(rest),
      unit: isConcurrent ? undefined : unit?.toLowerCase(),
      replaces: replaces.map((name) => ({ name })),
    },
    calendar: calendar && withoutDefaults({ time_zone: calendar.timeZone, starts_on: startsOn({ unit, calendar }) }),
    block_for: blockFor && writtenBlock(blockFor),
    active: active && { time_zone: active.timeZone, ranges: active.ranges },
    unit_multiplier: unitMultiplier === 1 ? undefined : unitMultiplier,
    algorithm: isConcurrent ? undefined : algorithm,
    max_concurrent: isConcurrent ? requestsPerUnit : undefined,
    requests_per_unit: isConcurrent || (rest.unlimited && requestsPerUnit === 0) ? undefined : requestsPerUnit,
  });
  return { ...fields, ...(lease !== undefined && { lease }) };
}

function writtenBlock({ first, factor, most, forgottenAfter }: BlockConfig): unknown {
  if (factor === 1) return `${first}s`;
  return { first: `${first}s`, factor, most: `${most}s`, forgotten_after: `${forgottenAfter}s` };
}

function inFiles(fields: object): object {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [nameInFiles(name), value]));
}

function withoutDefaults(fields: object): object {
  function isDefault(value: unknown) {
    return value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0);
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isDefault(value)));
}
