import type { Any } from '../../../src/gen/google/protobuf/any';
import {
  RateLimitConfig,
  type RateLimitDescriptor,
  type RateLimitPolicy,
  RateLimitUnit,
} from '../../../src/gen/ratelimit/config/ratelimit/v3/rls_conf';
import type { DomainConfig, RuleConfig, RuleLimit } from '../../../src/rules/rule-config';
import { MAX_UINT32 } from '../../../src/text/plain-number';
import { RULES_TYPE_URL } from '../../../src/sources/xds/check-resources';
import { domainConfig, limit } from './rules';

const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];

/** The resource that is equivalent to these rules. */
export function ruleResource(name: string, { domain, descriptors, unmatched }: DomainConfig): Any {
  return resourceOf({
    name,
    domain,
    descriptors: descriptors.map(descriptorOf),
    defaultRateLimit: unmatched?.key === 'default_rate_limit' ? descriptorOf(unmatched).rateLimit : undefined,
    onUnmatched: unmatched?.key === 'on_unmatched' ? unmatched.value : '',
  });
}

/** A resource with one rule: `requestsPerUnit` per minute for the key `key`. */
export function simpleResource(domain: string, requestsPerUnit: number): Any {
  return ruleResource(domain, domainConfig(domain, { key: 'key', rateLimit: limit(requestsPerUnit, 'MINUTE') }));
}

export function resourceOf(config: RateLimitConfig): Any {
  return { typeUrl: RULES_TYPE_URL, value: Buffer.from(RateLimitConfig.encode(config).finish()) };
}

/** As it is written in a file; the first day is left out. */
export function startsOn({ unit, calendar }: Pick<RuleLimit, 'unit' | 'calendar'>): string {
  const day = calendar?.startsOn ?? 1;
  if (day === 1) return '';
  return unit === 'WEEK' ? (WEEKDAYS[day - 1] ?? String(day)) : String(day);
}

function durationOf(seconds: number) {
  return { seconds: BigInt(seconds), nanos: 0 };
}

function policyOf(rateLimit: RuleLimit): RateLimitPolicy {
  const isConcurrent = rateLimit.algorithm === 'max_concurrent';
  return {
    ...rateLimit,
    // As of a server whose rules older instances read, too.
    requestsPerUnit: isConcurrent ? 0 : Math.min(rateLimit.requestsPerUnit, MAX_UINT32),
    maxConcurrent: isConcurrent ? rateLimit.requestsPerUnit : undefined,
    largeRequestsPerUnit: rateLimit.requestsPerUnit > MAX_UINT32 ? BigInt(rateLimit.requestsPerUnit) : 0n,
    unit: RateLimitUnit[rateLimit.unit ?? 'UNKNOWN'],
    // As servers leave it out, too.
    unitMultiplier: rateLimit.unitMultiplier === 1 ? 0 : rateLimit.unitMultiplier,
    algorithm: isConcurrent ? '' : (rateLimit.algorithm ?? ''),
    burst: rateLimit.burst ?? 0,
    lease: rateLimit.lease,
    calendar: rateLimit.calendar && {
      timeZone: rateLimit.calendar.timeZone,
      startsOn: startsOn(rateLimit),
    },
    active: rateLimit.active && {
      timeZone: rateLimit.active.timeZone,
      ranges: rateLimit.active.ranges.map(({ days, ...hours }) => ({ days: [...days], ...hours })),
    },
    blockFor: rateLimit.blockFor && {
      factor: rateLimit.blockFor.factor === 1 ? 0 : rateLimit.blockFor.factor,
      first: durationOf(rateLimit.blockFor.first),
      most: rateLimit.blockFor.factor === 1 ? undefined : durationOf(rateLimit.blockFor.most),
      forgottenAfter: rateLimit.blockFor.factor === 1 ? undefined : durationOf(rateLimit.blockFor.forgottenAfter),
    },
    replaces: rateLimit.replaces.map((name) => ({ name })),
  };
}

function descriptorOf({ limits, options, descriptors, ...rule }: RuleConfig): RateLimitDescriptor {
  const { valueIn = [], valueCidr = '', valueRegex = '' } = rule;
  const policies = limits.map(policyOf);
  return {
    ...{ ...rule, ...options, valueIn: [...valueIn], valueCidr, valueRegex },
    rateLimit: options.hasLimitList ? undefined : policies[0],
    rateLimits: options.hasLimitList ? policies : [],
    descriptors: descriptors.map(descriptorOf),
  };
}
