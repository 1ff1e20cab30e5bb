import { BlockList, isIP, isIPv4 } from 'node:net';
import type { Entry } from '../../src/limiter/request';
import { Network } from '../../src/rules/networks';
import type { RuleConfig } from '../../src/rules/rule-config';
import { buildRuleset, matchRule } from '../../src/rules/ruleset';
import { isForAnyValue, valueText } from '../../src/rules/values';
import { TooMuchWork, WorkBudget } from '../../src/rules/wildcards';
import fc from '../support/data/properties';
import { entries } from '../support/data/requests';
import { type RuleSketch, limit, ruleConfig, rulesetOf } from '../support/data/rules';

/** A rule that is identified by the number of its limit. */
function rule(number: number, key: string, value = '', ...descriptors: RuleSketch[]): RuleSketch {
  return { key, value, rateLimit: limit(number, 'MINUTE'), descriptors };
}

/** The number of the rule that a descriptor matches; undefined if it matches none, or one without a limit. */
function met(rules: readonly RuleSketch[], descriptor: string): number | undefined {
  const domain = rulesetOf('shop', ...rules).domains.get('shop');
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
    expect(['shop', 'Shop', ''].map((name) => ruleset.domains.get(name) !== undefined)).toEqual([true, false, false]);
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

describe('value_in, value_cidr and value_regex', () => {
  const rules: readonly RuleSketch[] = [
    { ...rule(1, 'ip'), valueRegex: '^10[.]' },
    { ...rule(2, 'ip'), valueCidr: '10.0.0.0/8' },
    { ...rule(3, 'ip'), valueCidr: '10.1.0.0/16' },
    { ...rule(4, 'ip'), valueIn: ['10.1.2.3', 'none'] },
    rule(5, 'ip', '10.1.2.*'),
    rule(6, 'ip', 'x*'),
    { ...rule(7, 'ip'), valueRegex: 'x|z' },
    { ...rule(8, 'ip'), valueRegex: 'z' },
    { ...rule(9, 'ip'), valueCidr: '2001:db8::/33' },
    { ...rule(10, 'ip'), valueCidr: '::/0' },
    rule(11, 'ip'),
  ];

  it.each<[what: string, values: Readonly<Record<string, number>>]>([
    [
      'in the order exact value, network, wildcard, regular expression, key alone',
      { '10.1.2.3': 4, none: 4, '10.1.2.4': 3, '10.2.0.1': 2, xz: 6, az: 7, b: 11 },
    ],
    ['by the longest prefix', { '10.1.0.0': 3, '10.0.0.0': 2, '2001:db8:7fff::1': 9, '2001:db8:8000::1': 10 }],
    [
      'an address of IPv4 that is mapped to IPv6 as one of IPv4',
      { '::ffff:10.1.2.4': 3, '::FFFF:a01:204': 3, '::10.1.2.4': 10 },
    ],
    [
      'no address in another notation',
      { '010.1.2.4': 11, '10.1': 1, '167772161': 11, '10.1.9.4%a': 1, 'fe80::1%eth0': 11, '10.0.0.0/8': 1, '': 11 },
    ],
  ])('match %s', (_, values) => {
    const found = Object.fromEntries(Object.keys(values).map((value) => [value, met(rules, `ip=${value}`)]));
    expect(found).toEqual(values);
  });

  it('are paid for by a budget in proportion to the value and to the size of the expression', () => {
    const domain = rulesetOf('shop', { ...rule(1, 'k'), valueRegex: '[ab]*a[ab]{200}c' }).domains.get('shop')!;
    const search = { budget: new WorkBudget(10_000), visit: undefined };
    expect(matchRule(domain, [{ key: 'k', value: 'ab'.repeat(100) }], search)).toBeUndefined();
    expect(() => matchRule(domain, [{ key: 'k', value: 'ab'.repeat(2000) }], search)).toThrow(TooMuchWork);
  });
});

/** The definition of a wildcard: the value can be split into the parts and arbitrary texts between them. */
function isMatch([first = '', ...rest]: readonly string[], text: string): boolean {
  if (rest.length === 0) return text === first;
  if (!text.startsWith(first)) return false;
  const after = text.slice(first.length);
  return Array.from({ length: after.length + 1 }, (_, skip) => skip).some((skip) => isMatch(rest, after.slice(skip)));
}

function longest(rules: readonly RuleConfig[]): RuleConfig | undefined {
  return rules.toSorted((one, other) => lengthOf(other) - lengthOf(one))[0];
}

function lengthOf({ valueCidr = '' }: RuleConfig): number {
  return Number(valueCidr.split('/')[1]);
}

/** By the addresses that Node itself knows to be in a network. */
function isWithin(value: string, network: string): boolean {
  const [address = '', length] = network.split('/');
  const blocks = new BlockList();
  blocks.addSubnet(address, Number(length), isIPv4(address) ? 'ipv4' : 'ipv6');
  const mapped = value.replace(/^::ffff:(?=\d+\.)/i, '');
  if (isIPv4(mapped) !== isIPv4(address)) return false;
  return isIP(mapped) > 0 && blocks.check(mapped, isIPv4(mapped) ? 'ipv4' : 'ipv6');
}

/** The definition of matching, level by level, without any index. */
function definition(level: readonly RuleConfig[], [entry, ...rest]: readonly Entry[]): RuleConfig | undefined {
  if (entry === undefined) return undefined;
  const sameKey = level.filter((each) => each.key === entry.key);
  const matched =
    sameKey.find((each) => each.value !== '' && each.value === entry.value) ??
    sameKey.find((each) => each.valueIn?.includes(entry.value)) ??
    longest(sameKey.filter(({ valueCidr }) => valueCidr !== undefined && isWithin(entry.value, valueCidr))) ??
    sameKey.find((each) => each.value.includes('*') && isMatch(each.value.split('*'), entry.value)) ??
    sameKey.find((each) => each.valueRegex !== undefined && new RegExp(each.valueRegex).test(entry.value)) ??
    sameKey.find((each) => isForAnyValue(each));
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
        const domain = buildRuleset([{ domain: 'shop', descriptors }]).domains.get('shop')!;
        const matched = matchRule(domain, requested);
        const expected = definition(descriptors, requested);
        expect(matched && [matched.key, matched.value, matched.limit?.requestsPerUnit]).toEqual(
          expected && [expected.key, expected.value, expected.limits[0]?.requestsPerUnit],
        );
        if (matched) expect(matched.path.map((step) => step.key)).toEqual(requested.map((one) => one.key));
      }),
      { numRuns: 1000 },
    );
  });

  it('for lists, networks, wildcards and regular expressions of one key', () => {
    const byte = fc.constantFrom('0', '1', '128', '255');
    const ipv4 = fc.tuple(byte, byte).map(([third, last]) => `10.0.${third}.${last}`);
    const ipv6 = fc.tuple(byte, byte).map(([third, last]) => `2001:db8::${third}:${last}`);
    const cidr = fc.oneof(
      fc.tuple(ipv4, fc.integer({ min: 0, max: 32 })),
      fc.tuple(ipv6, fc.integer({ min: 0, max: 128 })),
    );
    const network = cidr.map(([address, length]) => Network.parse(`${address}/${length}`)!.text);
    const value = fc.oneof(
      textOf('xy1.', 4),
      ipv4,
      ipv6,
      ipv4.map((address) => `::ffff:${address}`),
      network,
    );
    const matched: fc.Arbitrary<Partial<RuleSketch>> = fc.oneof(
      fc.record({
        valueIn: fc.uniqueArray(
          value.filter((text) => text !== ''),
          { minLength: 1, maxLength: 3 },
        ),
      }),
      fc.record({ valueCidr: network }),
      fc.record({ value: textOf('x1*.', 4) }),
      fc.record({ valueRegex: fc.constantFrom('^x', 'y$', '^$', '[.]1', '1+x', ':') }),
    );
    const rules = fc.uniqueArray(
      matched.map((sketch) => ruleConfig({ key: 'k', ...sketch })),
      { maxLength: 12, selector: (each) => `${Object.keys(each).join()} ${valueText(each)}` },
    );
    fc.assert(
      fc.property(rules, fc.array(value, { minLength: 5, maxLength: 10 }), (configs, values) => {
        // A value belongs to one rule only, which is checked when files are read.
        const taken = new Set<string>();
        const descriptors = configs.filter(({ value: single, valueIn = [single] }) => {
          const isNew = valueIn.every((each) => each === '' || !taken.has(each));
          for (const each of valueIn) taken.add(each);
          return isNew;
        });
        const domain = buildRuleset([{ domain: 'shop', descriptors }]).domains.get('shop')!;
        for (const sent of values) {
          const entry = { key: 'k', value: sent };
          const expected = definition(descriptors, [entry]);
          expect([sent, matchRule(domain, [entry])?.value]).toEqual([sent, expected && valueText(expected)]);
        }
        expect(domain.countOf('k')).toBe(descriptors.length);
      }),
      { numRuns: 500 },
    );
  });

  function lettersOf(pattern: string): number {
    return pattern.replaceAll('*', '').length;
  }
  // Small alphabets, so that parts overlap and are parts of each other.
  it.each<[what: string, letters: string, patterns: fc.ArrayConstraints, patternLength: number, numRuns: number]>([
    ['up to 20 wildcards of one letter', 'a', { minLength: 1, maxLength: 20 }, 8, 300],
    ['up to 20 wildcards of three letters', 'abc', { minLength: 1, maxLength: 20 }, 9, 300],
    ['hundreds of wildcards', 'abc', { minLength: 150, maxLength: 200, size: 'max' }, 10, 15],
  ])('for %s', (_name, letters, size, patternLength, numRuns) => {
    const pattern = textOf(`${letters}**`, patternLength, 1).map((text) => (text.includes('*') ? text : `${text}*`));
    const values = fc.array(textOf(letters, 30), { minLength: 12, maxLength: 12, size: 'max' });
    fc.assert(
      fc.property(fc.uniqueArray(pattern, size), values, (patterns, sent) => {
        // Patterns that match almost everything come last, so that the others matter.
        const fixed = patterns.toSorted((one, other) => lettersOf(other) - lettersOf(one));
        const descriptors = fixed.map((value) => ruleConfig({ key: 'k', value }));
        const domain = buildRuleset([{ domain: 'shop', descriptors }]).domains.get('shop')!;
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
  const domain = rulesetOf('shop', ...many).domains.get('shop')!;
  function search(value: string, steps: number): string | undefined {
    return matchRule(domain, [{ key: 'path', value }], { budget: new WorkBudget(steps), visit: undefined })?.value;
  }
  expect(() => search('a'.repeat(2000), 100_000)).toThrow(TooMuchWork);
  expect(search('a'.repeat(2000), Infinity)).toBeUndefined();
  expect(search('aaax', 100_000)).toBe('*a*x*');
});
