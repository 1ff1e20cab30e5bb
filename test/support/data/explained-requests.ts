import fc from 'fast-check';
import type { LimiterOptions } from '../../../src/limiter/options';
import { type Descriptor, NO_HITS_ADDEND, type RateLimitRequest } from '../../../src/limiter/request';
import type { RuleConfig } from '../../../src/rules/rule-config';
import { unitByName } from '../../../src/rules/unit';
import { limit, ruleConfig, unlimited } from './rules';

const NAMES = ['n1', 'n2', ''];
/** No window of these ends while a test runs, except at the end of a year. */
const UNIT = 'YEAR';

const rateLimit = fc.oneof(
  { weight: 4, arbitrary: fc.nat(4).map((requests) => limit(requests, UNIT)) },
  { weight: 1, arbitrary: fc.constant(unlimited()) },
);

function rule(key: string, value: string, descriptors: fc.Arbitrary<readonly RuleConfig[]>): fc.Arbitrary<RuleConfig> {
  return fc
    .record({
      policy: fc.option(rateLimit, { freq: 5, nil: undefined }),
      name: fc.constantFrom(...NAMES),
      replaced: fc.subarray(NAMES.slice(0, 2)),
      isShared: fc.boolean(),
      flags: fc.record({ shadowMode: fc.boolean(), quotaMode: fc.boolean() }),
      descriptors,
    })
    .map(({ policy, name, replaced, isShared, flags, descriptors: nestedRules }) => {
      const replaces = replaced.filter((other) => other !== name);
      const shareThreshold = isShared && value.includes('*');
      const own = { key, value, shareThreshold, rateLimit: policy && { ...policy, name, replaces } };
      return ruleConfig({ ...own, ...flags, descriptors: nestedRules });
    });
}

const nested = fc.tuple(rule('b', '', fc.constant([])), rule('b', 'y', fc.constant([])));

/** Rules of one domain. */
export const someRules: fc.Arbitrary<readonly RuleConfig[]> = fc.tuple(
  rule('a', 'x', nested),
  rule('a', 'x*', nested),
  rule('a', '', nested),
  rule('c', '', fc.constant([])),
);

const entry = fc.record({ key: fc.constantFrom('a', 'a', 'b', 'c'), value: fc.constantFrom('x', 'x1', 'y', '') });

const descriptor: fc.Arbitrary<Descriptor> = fc.record({
  entries: fc.array(entry, { minLength: 1, maxLength: 2 }),
  limit: fc.option(
    fc.nat(3).map((requestsPerUnit) => ({ requestsPerUnit, unit: unitByName(UNIT) })),
    { freq: 5, nil: undefined },
  ),
  hitsAddend: fc.oneof(fc.constant(NO_HITS_ADDEND), fc.nat(3)),
  isNegativeHits: fc.integer({ min: 0, max: 5 }).map((number) => number === 0),
});

/** Requests that often have the same counters. */
export function someRequest(domain: string): fc.Arbitrary<RateLimitRequest> {
  return fc.record({
    domain: fc.constant(domain),
    descriptors: fc.array(descriptor, { minLength: 1, maxLength: 4 }),
    hitsAddend: fc.nat(2),
  });
}

export const someOptions: fc.Arbitrary<Partial<LimiterOptions>> = fc.record({
  localCacheBytes: fc.constantFrom(0, 10_000),
  stopIncrementWhenOverLimit: fc.boolean(),
  shadowMode: fc.boolean(),
  quotaMode: fc.boolean(),
  responseHeaders: fc.constantFrom(undefined, { limit: 'l', remaining: 'm', reset: 'r' }),
});
