import fc from 'fast-check';
import type { DomainConfig, JsonObject, RuleConfig } from '../../../src/rules/rule-config';
import { UNIT_NAMES, type UnitName } from '../../../src/rules/unit';

const UNITS = UNIT_NAMES.filter((name): name is UnitName => name !== 'UNKNOWN');
const text = fc.string({ maxLength: 5, unit: fc.constantFrom('a', 'b', '*', 'é', '😀', '"', '\n') });
const key = fc.constantFrom('a', 'b', '__proto__');

const rateLimit = fc.record({
  unit: fc.option(fc.constantFrom(...UNITS), { nil: undefined }),
  requestsPerUnit: fc.integer({ min: 0, max: 4_294_967_295 }),
  unlimited: fc.boolean(),
  name: text,
  replaces: fc.array(text, { maxLength: 3 }),
});
const metadata = fc
  .dictionary(text, fc.oneof(fc.boolean(), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), text))
  .map((members) => JSON.parse(JSON.stringify(members)) as JsonObject);

/** Rules of one level, without two of the same key and value, with all that rules can have. */
export const arbitraryRules: fc.Arbitrary<readonly RuleConfig[]> = fc.letrec<{ rules: readonly RuleConfig[] }>(
  (tie) => ({
    rules: fc.uniqueArray(
      fc.record({
        key,
        value: text,
        rateLimit: fc.option(rateLimit, { nil: undefined }),
        shadowMode: fc.boolean(),
        quotaMode: fc.boolean(),
        detailedMetric: fc.boolean(),
        valueToMetric: fc.boolean(),
        shareThreshold: fc.boolean(),
        metadata: fc.option(metadata, { nil: undefined }),
        descriptors: fc.oneof({ depthSize: 'xsmall', withCrossShrink: true }, fc.constant([]), tie('rules')),
      }),
      { maxLength: 12, selector: (rule) => `${rule.key}\u0000${rule.value}` },
    ),
  }),
).rules;

export const arbitraryDomains: fc.Arbitrary<readonly DomainConfig[]> = fc.uniqueArray(
  fc.record({ domain: text, descriptors: arbitraryRules }),
  { maxLength: 3, selector: ({ domain }) => domain },
);
