import fc from 'fast-check';
import type { DomainConfig, RuleConfig } from '../../src/rules/rule-config';
import { buildRuleset, matchRule } from '../../src/rules/ruleset';
import { linesOf } from '../support/data/rules';
import { Wildcard } from '../../src/rules/wildcards/wildcard';
import type { Entry } from '../../src/limiter/request';
import { domainConfig, limit, ruleConfig } from '../support/data/rules';

const key = fc.constantFrom('a', 'b', 'a_b');
const value = fc.string({ unit: fc.constantFrom('x', 'y', '*'), maxLength: 4 });
const sent = fc.string({ unit: fc.constantFrom('x', 'y', '*'), maxLength: 6 });

/** Rules of one level, without two of the same key and value. */
const rules: fc.Arbitrary<readonly RuleConfig[]> = fc.letrec<{ rules: readonly RuleConfig[] }>((tie) => ({
  rules: fc
    .uniqueArray(
      fc.record({
        key,
        value,
        hasLimit: fc.boolean(),
        descriptors: fc.oneof({ depthSize: 'small', withCrossShrink: true }, fc.constant([]), tie('rules')),
      }),
      { maxLength: 6, selector: (rule) => `${rule.key}\u0000${rule.value}` },
    )
    .map((sketches) =>
      sketches.map((sketch) => ({
        ...ruleConfig({
          key: sketch.key,
          value: sketch.value,
          rateLimit: sketch.hasLimit ? limit(1, 'MINUTE') : undefined,
        }),
        descriptors: sketch.descriptors,
      })),
    ),
})).rules;
const entries = fc.array(fc.record({ key, value: sent }), { minLength: 1, maxLength: 3 });

/** The definition of a wildcard: the value can be split into the parts and arbitrary texts between them. */
function isMatch(parts: readonly string[], text: string): boolean {
  const [first = '', ...rest] = parts;
  if (rest.length === 0) return text === first;
  if (!text.startsWith(first)) return false;
  const after = text.slice(first.length);
  return Array.from({ length: after.length + 1 }, (_, skip) => skip).some((skip) => isMatch(rest, after.slice(skip)));
}

/** The definition, level by level, without any index. */
function definition(level: readonly RuleConfig[], [entry, ...rest]: readonly Entry[]): RuleConfig | undefined {
  if (entry === undefined) return undefined;
  const sameKey = level.filter((rule) => rule.key === entry.key);
  const matched =
    sameKey.find((rule) => rule.value !== '' && rule.value === entry.value) ??
    sameKey.find((rule) => rule.value.includes('*') && isMatch(rule.value.split('*'), entry.value)) ??
    sameKey.find((rule) => rule.value === '');
  return rest.length === 0 || matched === undefined ? matched : definition(matched.descriptors, rest);
}

it('the matched rule is that of the definition', () => {
  fc.assert(
    fc.property(rules, entries, (descriptors, requested) => {
      const domain = buildRuleset([{ domain: 'shop', descriptors }]).domain('shop');
      const matched = domain && matchRule(domain, requested);
      const expected = definition(descriptors, requested);
      expect(matched && [matched.key, matched.value, matched.limit?.requestsPerUnit]).toEqual(
        expected && [expected.key, expected.value, expected.rateLimit?.requestsPerUnit],
      );
      if (matched !== undefined)
        expect(matched.path.map((step) => step.key)).toEqual(requested.map((entry) => entry.key));
    }),
    { numRuns: 5000 },
  );
});

it('a wildcard matches the values of its definition', () => {
  fc.assert(
    fc.property(value, sent, (pattern, text) => {
      fc.pre(pattern.includes('*'));
      expect(new Wildcard(pattern).matches(text)).toBe(isMatch(pattern.split('*'), text));
    }),
    { numRuns: 5000 },
  );
});

const domains: fc.Arbitrary<readonly DomainConfig[]> = fc.uniqueArray(
  fc.record({ domain: fc.constantFrom('shop', 'api', 'edge'), descriptors: rules }),
  { selector: ({ domain }) => domain },
);

it('the order of files of different domains has no effect', () => {
  fc.assert(
    fc.property(domains, (configs) => {
      expect(linesOf(buildRuleset(configs.toReversed()))).toEqual(linesOf(buildRuleset(configs)));
    }),
  );
});

it('building the same rules again gives the same ruleset', () => {
  fc.assert(
    fc.property(domains, entries, (configs, requested) => {
      const [one, again] = [buildRuleset(configs), buildRuleset(structuredClone(configs))];
      for (const name of one.domains.keys()) {
        const [first, second] = [one.domain(name), again.domain(name)];
        const matched = first && matchRule(first, requested);
        expect(second && matchRule(second, requested)?.path.map((step) => step.value)).toEqual(
          matched?.path.map((step) => step.value),
        );
      }
      expect(linesOf(again)).toEqual(linesOf(one));
    }),
  );
});

it('top-level rules of one domain from several files are joined in their order', () => {
  const ruleset = buildRuleset([
    domainConfig('shop', { key: 'a', value: 'x*', rateLimit: limit(1, 'MINUTE') }),
    domainConfig('shop', { key: 'a', value: '*', rateLimit: limit(2, 'MINUTE') }),
  ]);
  const domain = ruleset.domain('shop');
  expect(domain && matchRule(domain, [{ key: 'a', value: 'xy' }])?.limit?.requestsPerUnit).toBe(1);
});
