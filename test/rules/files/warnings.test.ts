import fc from 'fast-check';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import { Wildcard } from '../../../src/rules/wildcards/wildcard';

/** Codes and lines of the warnings of a file that has no errors. */
function warningsOf(...rules: readonly string[]): readonly string[] {
  const text = `domain: d\ndescriptors:\n${rules.map((rule) => `- ${rule}\n`).join('')}`;
  const files = [{ path: 'a.yaml', content: new TextEncoder().encode(text) }];
  const { errors, warnings } = readRuleFiles(files, { mergeDomainConfigs: false });
  expect(errors).toEqual([]);
  // The rules start on line 3.
  return warnings.map(({ code, line }) => `${code} ${line - 2}`);
}

const LIMIT = 'rate_limit: {unit: day, requests_per_unit: 1}';

describe('ignored-value-to-metric', () => {
  const both = 'detailed_metric: true, value_to_metric: true';

  it.each([
    ['without nested rules', `{key: k, ${both}, ${LIMIT}}`, true],
    [
      'with a nested limit, whose key has the value',
      `{key: k, ${both}, ${LIMIT}, descriptors: [{key: l, ${LIMIT}}]}`,
      false,
    ],
    [
      'with a limit nested more deeply',
      `{key: k, ${both}, ${LIMIT}, descriptors: [{key: l, descriptors: [{key: m, ${LIMIT}}]}]}`,
      false,
    ],
    [
      'with a nested unlimited rule, which is counted too',
      `{key: k, ${both}, ${LIMIT}, descriptors: [{key: l, rate_limit: {unlimited: true}}]}`,
      false,
    ],
    [
      'with a nested limit that has detailed_metric itself',
      `{key: k, ${both}, ${LIMIT}, descriptors: [{key: l, detailed_metric: true, ${LIMIT}}]}`,
      true,
    ],
    ['with a nested rule that has no limit', `{key: k, ${both}, ${LIMIT}, descriptors: [{key: l}]}`, true],
  ])('is correct for a rule with both flags %s', (_, rule, isReported) => {
    expect(warningsOf(rule)).toEqual(isReported ? ['ignored-value-to-metric 1'] : []);
  });
});

describe('unreachable-rule', () => {
  it.each([
    [
      'a wildcard after one that matches all of its values',
      ['{key: k, value: "a*"}', '{key: k, value: "ab*"}'],
      ['unreachable-rule 2'],
    ],
    ['a wildcard before one that matches all of its values', ['{key: k, value: "ab*"}', '{key: k, value: "a*"}'], []],
    ['a wildcard after `*`', ['{key: k, value: "*"}', '{key: k, value: "*a*b*"}'], ['unreachable-rule 2']],
    ['two spellings of `*`', ['{key: k, value: "*"}', '{key: k, value: "**"}'], ['unreachable-rule 2']],
    ['a rule without value and `*`', ['{key: k}', '{key: k, value: "*"}'], ['unreachable-rule 1']],
    ['a rule without value and a wildcard that matches some values', ['{key: k}', '{key: k, value: "a*"}'], []],
    ['an explicit value after a wildcard that matches it', ['{key: k, value: "a*"}', '{key: k, value: ab}'], []],
    ['wildcards of another key', ['{key: k, value: "*"}', '{key: l, value: "a*"}', '{key: l}'], []],
    ['rules of a deeper level', ['{key: k, descriptors: [{key: n, value: "*"}, {key: n}]}'], ['unreachable-rule 1']],
    ['rules of different levels', ['{key: k, value: "*"}', '{key: l, descriptors: [{key: k}]}'], []],
    ['wildcards that only overlap', ['{key: k, value: "a*"}', '{key: k, value: "*b"}'], []],
    ['parts in another order', ['{key: k, value: "*a*b*"}', '{key: k, value: "*b*a*"}'], []],
    ['parts in the same order', ['{key: k, value: "*a*b*"}', '{key: k, value: "xa*yb"}'], ['unreachable-rule 2']],
  ])('the warnings for %s are correct', (_, rules, expected) => {
    expect(warningsOf(...rules)).toEqual(expected);
  });

  it('is reported if and only if every value that the rule matches is matched by an earlier one', () => {
    const pattern = fc
      .string({ unit: fc.constantFrom('a', 'b', '*'), minLength: 1, maxLength: 5 })
      .filter((text) => text.includes('*'));
    // All values of up to 6 letters; the patterns do not contain `c`, which represents any other letter.
    const values = Array.from({ length: 6 }).reduce<string[]>(
      (shorter) => ['', ...shorter.flatMap((value) => ['a', 'b', 'c'].map((letter) => letter + value))],
      [''],
    );
    fc.assert(
      fc.property(pattern, pattern, (first, second) => {
        fc.pre(first !== second);
        const [one, other] = [new Wildcard(first), new Wildcard(second)];
        const covered = values.every((value) => !other.matches(value) || one.matches(value));
        const warnings = warningsOf(`{key: k, value: "${first}"}`, `{key: k, value: "${second}"}`);
        expect(warnings).toEqual(covered ? ['unreachable-rule 2'] : []);
      }),
      { numRuns: 200 },
    );
  });

  it('is not reported when one key has too many wildcards to compare', () => {
    const many = Array.from({ length: 2000 }, (_, index) => `{key: k, value: "${index}-*"}`);
    expect(warningsOf(...many, '{key: k, value: "7-7*"}')).toEqual([]);
  });
});

describe('zero-limit-for-all', () => {
  const ZERO = 'rate_limit: {unit: day, requests_per_unit: 0}';
  it.each([
    ['is reported for a rule without value', [`{key: k, ${ZERO}}`], ['zero-limit-for-all 1']],
    [
      'is reported below levels without value',
      [`{key: k, descriptors: [{key: l, ${ZERO}}]}`],
      ['zero-limit-for-all 1'],
    ],
    ['is not reported for a rule with a value, which bans it', [`{key: k, value: v, ${ZERO}}`], []],
    ['is not reported for a rule with the value `*`', [`{key: k, value: "*", ${ZERO}}`], []],
    ['is not reported below a level with a value', [`{key: k, value: v, descriptors: [{key: l, ${ZERO}}]}`], []],
    ['is not reported in shadow mode', [`{key: k, shadow_mode: true, ${ZERO}}`], []],
  ])('%s', (_, rules, expected) => {
    expect(warningsOf(...rules)).toEqual(expected);
  });
});

describe('a name in replaces', () => {
  function named(key: string, name: string) {
    return `{key: ${key}, rate_limit: {unit: day, requests_per_unit: 1, name: ${name}}}`;
  }
  function replacing(name: string) {
    return `{key: r, rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: ${name}}]}}`;
  }
  it.each([
    ['is reported when no rule has it', [named('a', 'x'), replacing('y')], ['replaces-unknown-name 2']],
    [
      'is reported when only an unlimited rule has it',
      ['{key: a, rate_limit: {unlimited: true, name: x}}', replacing('x')],
      ['replaces-unlimited 2'],
    ],
    ['is not reported when a later rule has it', [replacing('x'), named('a', 'x')], []],
    ['is not reported when a nested rule has it', [replacing('x'), `{key: a, descriptors: [${named('b', 'x')}]}`], []],
    [
      'is not reported when a limited rule also has it',
      ['{key: a, rate_limit: {unlimited: true, name: x}}', named('b', 'x'), replacing('x')],
      [],
    ],
  ])('%s', (_, rules, expected) => {
    expect(warningsOf(...rules)).toEqual(expected);
  });

  it('is reported when only a rule of another domain has it', () => {
    const files = [
      { path: 'a.yaml', content: new TextEncoder().encode(`domain: a\ndescriptors: [${named('k', 'x')}]`) },
      { path: 'b.yaml', content: new TextEncoder().encode(`domain: b\ndescriptors: [${replacing('x')}]`) },
    ];
    const { warnings } = readRuleFiles(files, { mergeDomainConfigs: false });
    expect(warnings.map(({ file, code }) => [file, code])).toEqual([['b.yaml', 'replaces-unknown-name']]);
  });
});

describe('unbounded-metric', () => {
  it.each([
    [
      'is reported for an address with detailed_metric',
      [`{key: remote_address, detailed_metric: true, ${LIMIT}}`],
      ['unbounded-metric 1'],
    ],
    [
      'is reported for an address with value_to_metric',
      [`{key: masked_remote_address, value_to_metric: true, ${LIMIT}}`],
      ['unbounded-metric 1'],
    ],
    [
      'is reported for an address above a rule with detailed_metric',
      [`{key: remote_address, descriptors: [{key: k, detailed_metric: true, ${LIMIT}}]}`],
      ['unbounded-metric 1'],
    ],
    [
      'is reported once for several rules below the address',
      [`{key: remote_address, value_to_metric: true, descriptors: [{key: k, ${LIMIT}}, {key: l, ${LIMIT}}]}`],
      ['unbounded-metric 1'],
    ],
    [
      'is reported for a wildcard of addresses',
      [`{key: remote_address, value: "10.*", value_to_metric: true, ${LIMIT}}`],
      ['unbounded-metric 1'],
    ],
    [
      'is not reported with share_threshold',
      [`{key: remote_address, value: "10.*", share_threshold: true, detailed_metric: true, ${LIMIT}}`],
      [],
    ],
    [
      'is not reported for an explicit address',
      [`{key: remote_address, value: 10.0.0.1, detailed_metric: true, ${LIMIT}}`],
      [],
    ],
    ['is not reported for other keys', [`{key: user, detailed_metric: true, ${LIMIT}}`], []],
  ])('%s', (_, rules, expected) => {
    expect(warningsOf(...rules)).toEqual(expected);
  });
});

describe('a field without effect', () => {
  it.each([
    ['is reported: shadow_mode without limit', '{key: k, shadow_mode: true}', ['ignored-without-limit 1']],
    ['is reported: quota_mode without limit', '{key: k, quota_mode: true}', ['ignored-without-limit 1']],
    ['is reported: metadata without limit', '{key: k, metadata: {a: 1}}', ['ignored-without-limit 1']],
    [
      'is reported: detailed_metric without limit',
      '{key: k, detailed_metric: true, descriptors: [{key: l}]}',
      ['ignored-without-limit 1'],
    ],
    [
      'is not value_to_metric without limit, which affects nested rules',
      '{key: k, value_to_metric: true, descriptors: [{key: l}]}',
      [],
    ],
    [
      'is not share_threshold without limit, which affects nested rules',
      '{key: k, value: "*", share_threshold: true, descriptors: [{key: l}]}',
      [],
    ],
    ['is not one that is false', '{key: k, shadow_mode: false}', []],
    [
      'is reported: quota_mode with unlimited',
      '{key: k, quota_mode: true, rate_limit: {unlimited: true}}',
      ['ignored-when-unlimited 1'],
    ],
    ['is not detailed_metric with unlimited', '{key: k, detailed_metric: true, rate_limit: {unlimited: true}}', []],
  ])('%s', (_, rule, expected) => {
    expect(warningsOf(rule)).toEqual(expected);
  });
});
