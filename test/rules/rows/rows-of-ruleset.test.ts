import fc from 'fast-check';
import { compareRulesets } from '../../../src/rules/compare-rulesets';
import { rowsOfRuleset } from '../../../src/rules/rows/rows-of-ruleset';
import { RowsBuilder } from '../../../src/rules/rows/rule-rows';
import { type Ruleset, buildRuleset, matchRule } from '../../../src/rules/ruleset';
import { arbitraryDomains } from '../../support/data/arbitrary-rules';
import { domainConfig, limit, rulesetOf } from '../../support/data/rules';

function rebuilt(ruleset: Ruleset): Ruleset {
  const builder = new RowsBuilder();
  builder.add([...rowsOfRuleset(ruleset)]);
  return builder.done();
}

function changes(before: Ruleset, after: Ruleset): readonly number[] {
  const steps = compareRulesets(before, after);
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return Object.values(step.value).map(({ count }: { readonly count: number }) => count);
  }
}

it('a ruleset built from the rows of another has the same rules', () => {
  fc.assert(
    fc.property(arbitraryDomains, (configs) => {
      const original = buildRuleset(configs);
      const copy = rebuilt(original);
      expect(copy.size).toBe(original.size);
      expect(changes(original, copy)).toEqual([0, 0, 0, 0, 0]);
    }),
  );
});

it('a ruleset built from the rows of another matches the same wildcard, where several do', () => {
  const patterns = ['x*', '*y', 'a*', '*z*', 'xy*', '*', 'x*y', 'b*', 'c*', 'd*'];
  const rules = patterns.map((value, index) => ({ key: 'path', value, rateLimit: limit(index, 'DAY') }));
  const original = rulesetOf('shop', { key: 'tenant', value: 't', descriptors: rules }, ...rules);
  const copy = rebuilt(original);
  for (const value of ['xy', 'ay', 'xzy', 'd', 'q', 'xyz']) {
    for (const entries of [
      [{ key: 'path', value }],
      [
        { key: 'tenant', value: 't' },
        { key: 'path', value },
      ],
    ]) {
      const [expected, found] = [original, copy].map((ruleset) => matchRule(ruleset.domain('shop')!, entries));
      expect(expected).toBeDefined();
      expect([found?.value, found?.limit]).toEqual([expected?.value, expected?.limit]);
    }
  }
});

it('rows are made while they are taken', () => {
  const rows = rowsOfRuleset(rulesetOf('shop', { key: 'a' }, { key: 'b' }));
  expect(rows.next().value).toEqual({ domain: 'shop' });
  expect(rows.next().value).toMatchObject({ depth: 0, rule: { key: 'a' } });
});

it('a ruleset built from the rows of another has its rules at the same places', () => {
  const nested = [{ key: 'plan', value: 'free' }, { key: 'plan' }];
  const config = domainConfig('shop', { key: 'user', descriptors: nested }, { key: 'ip' }, { key: 'path' });
  const places = new Map([
    ['user', { file: 'a.yaml', line: 2, column: 3 }],
    ['plan', { file: 'b.yaml', line: 7, column: 5 }],
    ['ip', { file: 'a.yaml', line: 9, column: 3 }],
  ]);
  const copy = rebuilt(buildRuleset([config], ({ key }) => places.get(key)));
  const top = copy.domain('shop');
  expect(['user', 'ip', 'path'].map((key) => top?.find(key, 'x')?.place)).toEqual([
    places.get('user'),
    places.get('ip'),
    undefined,
  ]);
  expect(top?.find('user', 'x')?.nested?.find('plan', 'free')?.place).toEqual(places.get('plan'));
});
