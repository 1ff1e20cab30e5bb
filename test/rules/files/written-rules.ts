import { startsOn } from '../../support/data/rule-resources';
import type { DomainConfig, RuleConfig, RuleLimit } from '../../../src/rules/rule-config';

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
      ...Object.fromEntries(Object.entries({ ...more, ...flags }).map(([name, is]) => [snakeCase(name), is])),
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
  ...rest
}: RuleLimit): object {
  const fields = withoutDefaults({
    ...{ ...rest, unit: unit?.toLowerCase(), replaces: replaces.map((name) => ({ name })) },
    calendar: calendar && withoutDefaults({ time_zone: calendar.timeZone, starts_on: startsOn({ unit, calendar }) }),
    active: active && { time_zone: active.timeZone, ranges: active.ranges },
    unit_multiplier: unitMultiplier === 1 ? undefined : unitMultiplier,
    requests_per_unit: rest.unlimited && requestsPerUnit === 0 ? undefined : requestsPerUnit,
  });
  return { ...fields, ...(lease !== undefined && { lease }) };
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function withoutDefaults(fields: object): object {
  function isDefault(value: unknown) {
    return value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0);
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isDefault(value)));
}
