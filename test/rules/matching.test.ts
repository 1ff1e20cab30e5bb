import { limit, rulesetOf, type RuleSketch, unlimited } from '../support/data/rules';
import { entries } from '../support/data/requests';
import { matchRule } from '../../src/rules/ruleset';

function perMinute(requests: number) {
  return limit(requests, 'MINUTE');
}

/** The rule that a descriptor matches, identified by the number of its limit; undefined if it matches none. */
function met(rules: readonly RuleSketch[], descriptor: string): number | undefined {
  const domain = rulesetOf('shop', ...rules).domain('shop');
  return domain && matchRule(domain, entries(descriptor))?.limit?.requestsPerUnit;
}

describe('domains', () => {
  it('are separate: a descriptor matches only rules of its own domain', () => {
    const ruleset = rulesetOf('shop', { key: 'user', rateLimit: perMinute(1) });
    expect(ruleset.domain('shop')).toBeDefined();
    expect(ruleset.domain('Shop')).toBeUndefined();
    expect(ruleset.domain('')).toBeUndefined();
  });
});

describe('an ordered, case-sensitive descriptor', () => {
  const rules: RuleSketch[] = [
    { key: 'user', value: 'anna', descriptors: [{ key: 'path', value: '/a', rateLimit: perMinute(1) }] },
  ];
  it.each([
    ['user=anna,path=/a', 1],
    ['path=/a,user=anna', undefined],
    ['User=anna,path=/a', undefined],
    ['user=Anna,path=/a', undefined],
    ['user=anna,path=/A', undefined],
    ['user=anna ,path=/a', undefined],
  ])('%s matches %p', (descriptor, expected) => {
    expect(met(rules, descriptor)).toBe(expected);
  });

  it('distinguishes key a_b with value c from key a with value b_c', () => {
    const both: RuleSketch[] = [
      { key: 'a_b', value: 'c', rateLimit: perMinute(1) },
      { key: 'a', value: 'b_c', rateLimit: perMinute(2) },
    ];
    expect(met(both, 'a_b=c')).toBe(1);
    expect(met(both, 'a=b_c')).toBe(2);
  });
});

describe('a descriptor matches only rules of its own depth', () => {
  const rules: RuleSketch[] = [
    { key: 'one', rateLimit: perMinute(1) },
    { key: 'two', descriptors: [{ key: 'deep', rateLimit: perMinute(2) }] },
    { key: 'both', rateLimit: perMinute(3), descriptors: [{ key: 'deep', rateLimit: perMinute(4) }] },
  ];
  it.each([
    ['one=x', 1],
    ['one=x,deep=y', undefined],
    ['two=x', undefined],
    ['two=x,deep=y', 2],
    ['two=x,deep=y,deeper=z', undefined],
    ['both=x', 3],
    ['both=x,deep=y', 4],
    ['', undefined],
  ])('%s matches %p', (descriptor, expected) => {
    expect(met(rules, descriptor)).toBe(expected);
  });
});

describe('an explicit value has precedence over the key alone', () => {
  const explicitLast: RuleSketch[] = [
    { key: 'user', rateLimit: perMinute(1) },
    { key: 'user', value: 'anna', rateLimit: perMinute(2) },
  ];
  it.each([
    ['user=anna', 2],
    ['user=bert', 1],
    ['user=', 1],
    ['user=ann', 1],
  ])('%s matches %p in any order of the file', (descriptor, expected) => {
    expect(met(explicitLast, descriptor)).toBe(expected);
    expect(met(explicitLast.toReversed(), descriptor)).toBe(expected);
  });

  it('does not backtrack: the nested rules of siblings are not tried', () => {
    const rules: RuleSketch[] = [
      { key: 'user', value: 'anna', descriptors: [{ key: 'path', value: '/a', rateLimit: perMinute(1) }] },
      { key: 'user', descriptors: [{ key: 'path', rateLimit: perMinute(2) }] },
    ];
    expect(met(rules, 'user=anna,path=/a')).toBe(1);
    expect(met(rules, 'user=anna,path=/b')).toBeUndefined();
    expect(met(rules, 'user=bert,path=/b')).toBe(2);
  });
});

describe('a rule without value', () => {
  const rules: RuleSketch[] = [{ key: 'user', rateLimit: perMinute(1) }];
  it.each(['user=anna', 'user=', 'user=*', 'user=a=b', 'user=ünï'])('matches %s', (descriptor) => {
    expect(met(rules, descriptor)).toBe(1);
  });
});

describe('wildcards', () => {
  function wildcard(value: string): RuleSketch[] {
    return [{ key: 'path', value, rateLimit: perMinute(1) }];
  }
  it.each([
    ['/api/*', '/api/users', true],
    ['/api/*', '/api/', true],
    ['/api/*', '/api', false],
    ['*.png', 'a.png', true],
    ['*.png', '.png', true],
    ['*.png', 'a.png.gz', false],
    ['/a/*/c', '/a/b/c', true],
    ['/a/*/c', '/a//c', true],
    ['/a/*/c', '/a/c', false],
    ['a*b*c', 'aXbYc', true],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'acb', false],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['*ab*ab*', 'ab', false],
    ['*ab*ab*', 'abab', true],
    ['a*bc*c', 'abc', false],
    ['a*bc*c', 'abcc', true],
    ['*', '', true],
    ['*', 'anything', true],
    ['**', '', true],
    ['a**b', 'ab', true],
    ['a.c*', 'abc', false],
    ['[a]*', 'a', false],
  ])('%s matches %p: %p', (pattern, value, matches) => {
    expect(met(wildcard(pattern), `path=${value}`)).toBe(matches ? 1 : undefined);
  });

  it('are tried in the order of the file, after the exact value and before the key alone', () => {
    const rules: RuleSketch[] = [
      { key: 'path', rateLimit: perMinute(1) },
      { key: 'path', value: '/a*', rateLimit: perMinute(2) },
      { key: 'path', value: '/ab*', rateLimit: perMinute(3) },
      { key: 'path', value: '/abc', rateLimit: perMinute(4) },
    ];
    expect(met(rules, 'path=/abc')).toBe(4);
    expect(met(rules, 'path=/abd')).toBe(2);
    expect(met(rules, 'path=/b')).toBe(1);
  });

  it('match exactly when the value is the text of the pattern, even of a later one', () => {
    const rules: RuleSketch[] = [
      { key: 'path', value: '/a*', rateLimit: perMinute(1) },
      { key: 'path', value: '/ab*', rateLimit: perMinute(2) },
    ];
    expect(met(rules, 'path=/ab*')).toBe(2);
    expect(met(rules, 'path=/abc')).toBe(1);
  });

  it('apply to the value of their own key only, and are literal in a key', () => {
    expect(met([{ key: 'user', value: '*', rateLimit: perMinute(1) }], 'user_id=7')).toBeUndefined();
    expect(met([{ key: 'us*', rateLimit: perMinute(1) }], 'user=7')).toBeUndefined();
    expect(met([{ key: 'us*', rateLimit: perMinute(1) }], 'us*=7')).toBe(1);
  });
});

describe('a rule without rate_limit limits nothing', () => {
  const rules: RuleSketch[] = [
    { key: 'user', rateLimit: perMinute(1) },
    { key: 'user', value: 'admin' },
    { key: 'group', descriptors: [{ key: 'user', rateLimit: perMinute(2) }] },
  ];
  it.each([
    ['user=anna', 1],
    ['user=admin', undefined],
    ['group=a', undefined],
    ['group=a,user=b', 2],
  ])('%s matches %p', (descriptor, expected) => {
    expect(met(rules, descriptor)).toBe(expected);
  });
});

describe('an unlimited rule', () => {
  it('has precedence over a less specific rule with a limit', () => {
    const domain = rulesetOf(
      'shop',
      { key: 'user', rateLimit: perMinute(1) },
      { key: 'user', value: 'vip', rateLimit: unlimited() },
    ).domain('shop');
    expect(domain && matchRule(domain, entries('user=vip'))?.limit?.unlimited).toBe(true);
    expect(domain && matchRule(domain, entries('user=x'))?.limit?.unlimited).toBe(false);
  });
});
