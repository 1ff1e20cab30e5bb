import { type RulesetChanges, compareRulesets } from '../../src/rules/compare-rulesets';
import { type Ruleset, buildRuleset } from '../../src/rules/ruleset';
import { type RuleSketch, domainConfig, limit, rulesetOf, unlimited } from '../support/data/rules';

/** Runs the comparison to its end, and counts its interruptions. */
function compare(before: Ruleset, after: Ruleset) {
  const steps = compareRulesets(before, after);
  for (let interruptions = 0; ; interruptions += 1) {
    const { done, value } = steps.next();
    if (done === true) return { changes: value, interruptions };
  }
}

/** What has changed, without the kinds of changes that did not occur. */
function changed(before: Ruleset, after: Ruleset) {
  const changes: [string, RulesetChanges[keyof RulesetChanges]][] = Object.entries(compare(before, after).changes);
  return Object.fromEntries(
    changes.filter(([, { count }]) => count > 0).map(([kind, { names }]) => [kind, [...names].sort()]),
  );
}

const USER: RuleSketch = { key: 'user', rateLimit: limit(5, 'MINUTE') };

describe('the comparison of two rulesets', () => {
  it('finds nothing in equal ones', () => {
    const nested = { key: 'plan', value: 'free', metadata: { a: 1 }, descriptors: [USER] };
    expect(changed(rulesetOf('shop', USER, nested), rulesetOf('shop', USER, nested))).toEqual({});
    const same = rulesetOf('shop', USER);
    expect(changed(same, same)).toEqual({});
  });

  it('finds added and removed rules, at every level, with all rules nested in them', () => {
    const before = rulesetOf('shop', USER, { key: 'plan', value: 'free', descriptors: [{ key: 'a' }, { key: 'b' }] });
    const after = rulesetOf('shop', USER, { key: 'plan', value: 'paid' }, { key: 'user', value: 'x*' });
    expect(changed(before, after)).toEqual({
      rulesAdded: ['shop.plan_paid', 'shop.user_x*'],
      rulesRemoved: ['shop.plan_free', 'shop.plan_free.a', 'shop.plan_free.b'],
    });
    expect(changed(after, before)).toEqual({
      rulesAdded: ['shop.plan_free', 'shop.plan_free.a', 'shop.plan_free.b'],
      rulesRemoved: ['shop.plan_paid', 'shop.user_x*'],
    });
  });

  it('finds added and removed domains, and counts their rules', () => {
    expect(changed(rulesetOf('shop', USER), rulesetOf('edge', USER))).toEqual({
      domainsAdded: ['edge'],
      domainsRemoved: ['shop'],
      rulesAdded: ['edge.user'],
      rulesRemoved: ['shop.user'],
    });
  });

  it.each<[string, Partial<RuleSketch>]>([
    ['number of requests', { rateLimit: limit(6, 'MINUTE') }],
    ['unit', { rateLimit: limit(5, 'HOUR') }],
    ['lack of a limit', { rateLimit: undefined }],
    ['lack of a bound', { rateLimit: unlimited() }],
    ['name', { rateLimit: limit(5, 'MINUTE', { name: 'x' }) }],
    ['list of replaced rules', { rateLimit: limit(5, 'MINUTE', { replaces: ['x'] }) }],
    ['shadow mode', { shadowMode: true }],
    ['quota mode', { quotaMode: true }],
    ['detailed metric', { detailedMetric: true }],
    ['value in its metric', { valueToMetric: true }],
    ['shared threshold', { shareThreshold: true }],
    ['metadata', { metadata: { plan: 'free' } }],
  ])('finds a rule with another %s', (_, difference) => {
    expect(changed(rulesetOf('shop', USER), rulesetOf('shop', { ...USER, ...difference }))).toEqual({
      rulesChanged: ['shop.user'],
    });
  });

  it('counts all changes and names the first three', () => {
    const many = Array.from({ length: 1000 }, (_, index) => ({ key: 'user', value: `u${index}` }));
    const { rulesAdded } = compare(rulesetOf('shop'), rulesetOf('shop', ...many)).changes;
    expect(rulesAdded).toEqual({ count: 1000, names: ['shop.user_u0', 'shop.user_u1', 'shop.user_u2'] });
  });

  it('is interrupted every 500 rules, also for 100,000 in one level, so that no step takes long', () => {
    function large(requests: number) {
      const rules = Array.from({ length: 100_000 }, (_, index) => ({
        key: 'user',
        value: `u${index}`,
        rateLimit: limit(requests, 'MINUTE'),
      }));
      return buildRuleset([domainConfig('shop', ...rules)]);
    }
    const { changes, interruptions } = compare(large(1), large(2));
    expect(changes.rulesChanged.count).toBe(100_000);
    expect(interruptions).toBe(400);
  });
});

test('the size of a ruleset is the number of its rules, nested ones included', () => {
  expect(rulesetOf('shop').size).toBe(0);
  expect(rulesetOf('shop', USER, { key: 'plan', descriptors: [USER, { key: 'a' }] }).size).toBe(4);
});
