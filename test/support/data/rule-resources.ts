import type { Any } from '../../../src/gen/google/protobuf/any';
import {
  RateLimitConfig,
  type RateLimitDescriptor,
  type RateLimitPolicy,
  RateLimitUnit,
} from '../../../src/gen/ratelimit/config/ratelimit/v3/rls_conf';
import type { DomainConfig, RuleConfig } from '../../../src/rules/rule-config';
import { RULES_TYPE_URL } from '../../../src/sources/xds/ads';
import { domainConfig, limit } from './rules';

/** The resource that is equivalent to these rules. */
export function ruleResource(name: string, { domain, descriptors }: DomainConfig): Any {
  return resourceOf({ name, domain, descriptors: descriptors.map(descriptorOf) });
}

/** A resource with one rule: `requestsPerUnit` per minute for the key `key`. */
export function simpleResource(domain: string, requestsPerUnit: number): Any {
  return ruleResource(domain, domainConfig(domain, { key: 'key', rateLimit: limit(requestsPerUnit, 'MINUTE') }));
}

export function resourceOf(config: RateLimitConfig): Any {
  return { typeUrl: RULES_TYPE_URL, value: Buffer.from(RateLimitConfig.encode(config).finish()) };
}

function descriptorOf(rule: RuleConfig): RateLimitDescriptor {
  const { key, value, rateLimit, shadowMode, quotaMode, detailedMetric, metadata, descriptors } = rule;
  return {
    key,
    value,
    rateLimit: rateLimit && policyOf(rateLimit),
    shadowMode,
    quotaMode,
    detailedMetric,
    metadata,
    descriptors: descriptors.map(descriptorOf),
  };
}

function policyOf({
  unit,
  requestsPerUnit,
  unlimited,
  name,
  replaces,
}: NonNullable<RuleConfig['rateLimit']>): RateLimitPolicy {
  return {
    unit: RateLimitUnit[unit ?? 'UNKNOWN'],
    requestsPerUnit,
    unlimited,
    name,
    replaces: replaces.map((each) => ({ name: each })),
  };
}
