import fc from 'fast-check';
import type { Entry } from '../../src/limiter/request';
import { explainMatch } from '../../src/rules/explain';
import type { RuleConfig } from '../../src/rules/rule-config';
import { buildRuleset, matchRule } from '../../src/rules/ruleset';
import { TooMuchWork, WorkBudget } from '../../src/rules/wildcards';
import { entries } from '../support/data/requests';
import { type RuleSketch, limit, ruleConfig, rulesetOf } from '../support/data/rules';

/** A rule that is identified by the number of its limit. */
function rule(number: number, key: string, value = '', ...descriptors: RuleSketch[]): RuleSketch {
  return { key, value, rateLimit: limit(number, 'MINUTE'), descriptors };
}

/** The number of the rule that a descriptor matches; undefined if it matches none, or one without a limit. */
function met(rules: readonly RuleSketch[], descriptor: string): number | undefined {
  const domain = rulesetOf('shop', ...rules).domain('shop');
  return domain && matchRule(domain, entries(descriptor))?.limit?.requestsPerUnit;
}

describe('a descriptor', () => {
  const path = { key: 'user', value: 'anna', descriptors: [rule(1, 'path', '/a')] };
  const depths = [rule(1, 'one'), { key: 'two', descriptors: [rule(2, 'deep')] }];
  const exempt = [rule(1, 'user'), { key: 'user', value: 'admin' }, { key: 'group', descriptors: [rule(2, 'user')] }];
  const explicit = [rule(1, 'user'), rule(2, 'user', 'anna')];
  const siblings = [path, { key: 'user', descriptors: [rule(2, 'path')] }];
  const joined = [rule(1, 'a_b', 'c'), rule(2, 'a', 'b_c')];

  it.each<[what: string, rules: readonly RuleSketch[], matches: Readonly<Record<string, number | undefined>>]>([
    ['is case-sensitive', [path], { 'User=anna,path=/a': undefined, 'user=Anna,path=/a': undefined }],
    [
      'matches rules of its own depth',
      depths,
      { 'one=x': 1, 'one=x,a=b': undefined, 'two=x': undefined, '': undefined },
    ],
    ['matches an explicit value first', explicit, { 'user=anna': 2, 'user=bert': 1, 'user=': 1, 'user=ann': 1 }],
    ['is not tried with less specific rules', siblings, { 'user=anna,path=/b': undefined, 'user=bert,path=/b': 2 }],
    ['has keys and values apart', joined, { 'a_b=c': 1, 'a=b_c': 2 }],
    ['matches any text without value', [rule(1, 'user')], { 'user=': 1, 'user=*': 1, 'user=a=b': 1, 'user=ünï': 1 }],
    ['is exempt by a rule without limit', exempt, { 'user=anna': 1, 'user=admin': undefined, 'group=a,user=b': 2 }],
    ['has no wildcards of another key', [rule(1, 'user', '*')], { 'user_id=7': undefined }],
    ['has no wildcards in keys', [rule(1, 'us*')], { 'user=7': undefined, 'us*=7': 1 }],
  ])('%s', (_, rules, matches) => {
    const found = Object.fromEntries(Object.keys(matches).map((descriptor) => [descriptor, met(rules, descriptor)]));
    expect(found).toEqual(matches);
  });

  it('matches only rules of its domain', () => {
    const ruleset = rulesetOf('shop', rule(1, 'user'));
    expect(['shop', 'Shop', ''].map((name) => ruleset.domain(name) !== undefined)).toEqual([true, false, false]);
  });
});

describe('wildcards', () => {
  it.each([
    ['/api/*', ['/api/users', '/api/'], ['/api']],
    ['*.png', ['a.png', '.png'], ['a.png.gz']],
    ['/a/*/c', ['/a/b/c', '/a//c'], ['/a/c']],
    ['*', ['', 'anything'], []],
    ['a.c*', ['a.c'], ['abc']],
    ['*😀*', ['a😀b'], ['😁', '\uD83D', '\uDE00\uD83D']],
    ['\uFFFD*', ['\uFFFDx'], ['\uD800x']],
  ])('%s match by their definition', (pattern, matching, others) => {
    for (const count of [1, 12]) {
      const rules = Array.from({ length: count }, (_, index) =>
        rule(index, 'path', index === 0 ? pattern : `q${index}*`),
      );
      for (const value of matching) expect([value, met(rules, `path=${value}`)]).toEqual([value, 0]);
      for (const value of others) expect([value, met(rules, `path=${value}`)]).toEqual([value, undefined]);
    }
  });

  it('are tried in the order of the file, after the exact value, also of a pattern, and before the key alone', () => {
    const rules = [rule(1, 'path'), rule(2, 'path', '/a*'), rule(3, 'path', '/ab*'), rule(4, 'path', '/abc')];
    const found = ['/abc', '/abd', '/b', '/ab*'].map((value) => met(rules, `path=${value}`));
    expect(found).toEqual([4, 2, 1, 3]);
  });
});

/** The definition of a wildcard: the value can be split into the parts and arbitrary texts between them. */
function isMatch([first = '', ...rest]: readonly string[], text: string): boolean {
  if (rest.length === 0) return text === first;
  if (!text.startsWith(first)) return false;
  const after = text.slice(first.length);
  return Array.from({ length: after.length + 1 }, (_, skip) => skip).some((skip) => isMatch(rest, after.slice(skip)));
}

/** The definition of matching, level by level, without any index. */
function definition(level: readonly RuleConfig[], [entry, ...rest]: readonly Entry[]): RuleConfig | undefined {
  if (entry === undefined) return undefined;
  const sameKey = level.filter((each) => each.key === entry.key);
  const matched =
    sameKey.find((each) => each.value !== '' && each.value === entry.value) ??
    sameKey.find((each) => each.value.includes('*') && isMatch(each.value.split('*'), entry.value)) ??
    sameKey.find((each) => each.value === '');
  return rest.length === 0 || matched === undefined ? matched : definition(matched.descriptors, rest);
}

describe('the matched rule is that of the definition', () => {
  function textOf(letters: string, maxLength: number, minLength = 0) {
    return fc.string({ unit: fc.constantFrom(...letters.split('')), minLength, maxLength });
  }

  it('for a few rules, on several levels', () => {
    const key = fc.constantFrom('a', 'b', 'a_b');
    const { rules } = fc.letrec<{ rules: readonly RuleConfig[] }>((tie) => ({
      rules: fc
        .uniqueArray(
          fc.record({
            key,
            value: textOf('xy*', 4),
            rateLimit: fc.constantFrom(undefined, limit(1, 'MINUTE')),
            descriptors: fc.oneof({ depthSize: 'small', withCrossShrink: true }, fc.constant([]), tie('rules')),
          }),
          { maxLength: 6, selector: (each) => `${each.key}\u0000${each.value}` },
        )
        .map((sketches) => sketches.map((sketch) => ({ ...ruleConfig(sketch), descriptors: sketch.descriptors }))),
    }));
    const requests = fc.array(fc.record({ key, value: textOf('xy*', 6) }), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(rules, requests, (descriptors, requested) => {
        const domain = buildRuleset([{ domain: 'shop', descriptors }]).domain('shop')!;
        const matched = matchRule(domain, requested);
        const expected = definition(descriptors, requested);
        expect(matched && [matched.key, matched.value, matched.limit?.requestsPerUnit]).toEqual(
          expected && [expected.key, expected.value, expected.rateLimit?.requestsPerUnit],
        );
        if (matched) expect(matched.path.map((step) => step.key)).toEqual(requested.map((one) => one.key));
      }),
      { numRuns: 2000 },
    );
  });

  function lettersOf(pattern: string): number {
    return pattern.replaceAll('*', '').length;
  }
  // Small alphabets, so that parts overlap and are parts of each other.
  it.each<[what: string, letters: string, patterns: fc.ArrayConstraints, patternLength: number, numRuns: number]>([
    ['up to 20 wildcards of one letter', 'a', { minLength: 1, maxLength: 20 }, 8, 300],
    ['up to 20 wildcards of three letters', 'abc', { minLength: 1, maxLength: 20 }, 9, 600],
    ['hundreds of wildcards', 'abc', { minLength: 150, maxLength: 200, size: 'max' }, 10, 15],
  ])('for %s', (_name, letters, size, patternLength, numRuns) => {
    const pattern = textOf(`${letters}**`, patternLength, 1).map((text) => (text.includes('*') ? text : `${text}*`));
    const values = fc.array(textOf(letters, 30), { minLength: 12, maxLength: 12, size: 'max' });
    fc.assert(
      fc.property(fc.uniqueArray(pattern, size), values, (patterns, sent) => {
        // Patterns that match almost everything come last, so that the others matter.
        const fixed = patterns.toSorted((one, other) => lettersOf(other) - lettersOf(one));
        const descriptors = fixed.map((value) => ruleConfig({ key: 'k', value }));
        const domain = buildRuleset([{ domain: 'shop', descriptors }]).domain('shop')!;
        for (const value of sent) {
          const expected = fixed.find((each) => isMatch(each.split('*'), value));
          expect([value, matchRule(domain, [{ key: 'k', value }])?.value]).toEqual([value, expected]);
        }
      }),
      { numRuns },
    );
  });
});

it('matching wildcards ends with an error when the parts of many patterns end at each position of a value', () => {
  const many = Array.from({ length: 500 }, (_, index) => rule(index, 'path', `*${'a'.repeat(index + 1)}*x*`));
  const domain = rulesetOf('shop', ...many).domain('shop')!;
  function search(value: string, steps: number): string | undefined {
    return matchRule(domain, [{ key: 'path', value }], { budget: new WorkBudget(steps), visit: undefined })?.value;
  }
  expect(() => search('a'.repeat(2000), 100_000)).toThrow(TooMuchWork);
  expect(search('a'.repeat(2000), Infinity)).toBeUndefined();
  expect(search('aaax', 100_000)).toBe('*a*x*');
});

describe('the explanation of a descriptor', () => {
  const ruleset = rulesetOf(
    'shop',
    rule(1, 'user', 'anna'),
    { key: 'user', value: 'bert' },
    rule(2, 'user', 'b*'),
    rule(3, 'user', '*t'),
    rule(4, 'user', '', rule(5, 'path')),
    { key: 'group', descriptors: [{ key: 'path', value: '/a' }] },
  );

  /** A short form of an explanation: a line for each level, and the outcome. */
  function explain(descriptor: string, domain = 'shop', options = {}): readonly string[] {
    const { levels, outcome, rule: last } = explainMatch(ruleset, { domain, entries: entries(descriptor) }, options);
    const lines = levels.map(({ candidates, otherValues, omitted, keys }) =>
      [
        ...candidates.map(({ rule: { value }, outcome: how }) => `${value || '-'} ${how}`),
        ...(otherValues > 0 ? [`${otherValues} others`] : []),
        ...(omitted > 0 ? [`${omitted} omitted`] : []),
        ...(keys.length > 0 ? [`keys ${keys.join(' ')}`] : []),
      ].join(', '),
    );
    return [...lines, `${outcome} ${last?.limit?.requestsPerUnit ?? '-'}`];
  }

  it.each([
    ['user=anna', ['anna chosen, b* not tried, *t not tried, - not tried, 1 others', 'limit 1']],
    ['user=kurt', ['b* passed over, *t chosen, - not tried, 2 others', 'limit 3']],
    ['group=x', ['- chosen', 'no limit -']],
    ['User=anna', ['keys user group', 'no match -']],
    ['group=x,path=/b', ['- chosen', '1 others', 'no match -']],
    ['user=c,path=/', ['b* passed over, *t passed over, - chosen, 2 others', '- chosen', 'limit 5']],
    ['group=x,path=/a,deep=1', ['- chosen', '/a chosen', 'too deep -']],
    ['', ['no entries -']],
  ])('shows the search for %s', (descriptor, expected) => {
    expect(explain(descriptor)).toEqual(expected);
  });

  it('shows a domain without a rule file, and lists as much as it may', () => {
    expect(explain('user=anna', 'forum')).toEqual(['unknown domain -']);
    const options = { maxCandidates: () => 1, maxKeys: () => 1 };
    const lines = ['user=kurt', 'User=anna'].map((text) => explain(text, 'shop', options)[0]);
    expect(lines).toEqual(['b* passed over, *t chosen, 2 others, 1 omitted', 'keys user']);
  });

  it('ends at the rule that a decision matches', () => {
    const key = fc.constantFrom('user', 'path', 'group', 'x');
    const value = fc.constantFrom('', 'anna', 'bert', 'bt', 'b*', '*t', '/a', 'kurt');
    fc.assert(
      fc.property(fc.array(fc.record({ key, value }), { maxLength: 3 }), (descriptor) => {
        const { outcome, rule: last } = explainMatch(ruleset, { domain: 'shop', entries: descriptor });
        const matched = matchRule(ruleset.domain('shop')!, descriptor);
        expect(outcome === 'limit' || outcome === 'no limit' ? last : undefined).toBe(matched);
        expect(outcome === 'limit').toBe(matched?.limit !== undefined);
      }),
    );
  });
});
