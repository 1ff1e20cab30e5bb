import fc from 'fast-check';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';

/** Codes and lines of the warnings of a file that has no errors. */
function warningsOf(rules: readonly string[], domain = 'd', ...others: string[]): readonly string[] {
  const texts = [`domain: ${domain}\ndescriptors:\n${rules.map((rule) => `- ${rule}\n`).join('')}`, ...others];
  const files = texts.map((text, index) => ({ path: `${index}.yaml`, content: new TextEncoder().encode(text) }));
  const { errors, warnings } = readRuleFiles(files, { mergeDomainConfigs: false });
  expect(errors).toEqual([]);
  // The rules start on line 3.
  return warnings.filter(({ file }) => file === '0.yaml').map(({ code, line }) => `${code} ${line - 2}`);
}

const LIMIT = 'rate_limit: {unit: day, requests_per_unit: 1}';
const ZERO = 'rate_limit: {unit: day, requests_per_unit: 0}';
const FREE = 'rate_limit: {unlimited: true}';
const BOTH = 'detailed_metric: true, value_to_metric: true';
const IP = 'key: remote_address';

function named(key: string, name: string) {
  return `{key: ${key}, rate_limit: {unit: day, requests_per_unit: 1, name: ${name}}}`;
}
function replacing(name: string) {
  return `{key: r, rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: ${name}}]}}`;
}

describe('ignored-value-to-metric is reported for a rule with both flags', () => {
  it.each([
    [true, 'without nested rules', `{key: k, ${BOTH}, ${LIMIT}}`],
    [
      false,
      'with a nested limit, whose key has the value',
      `{key: k, ${BOTH}, ${LIMIT}, descriptors: [{key: l, ${LIMIT}}]}`,
    ],
    [
      false,
      'with a deeper limit',
      `{key: k, ${BOTH}, ${LIMIT}, descriptors: [{key: l, descriptors: [{key: m, ${LIMIT}}]}]}`,
    ],
    [false, 'with a nested unlimited rule', `{key: k, ${BOTH}, ${LIMIT}, descriptors: [{key: l, ${FREE}}]}`],
    [true, 'above its like', `{key: k, ${BOTH}, ${LIMIT}, descriptors: [{key: l, detailed_metric: true, ${LIMIT}}]}`],
    [true, 'with a nested rule that has no limit', `{key: k, ${BOTH}, ${LIMIT}, descriptors: [{key: l}]}`],
  ])('%p: %s', (isReported, _, rule) => {
    expect(warningsOf([rule])).toEqual(isReported ? ['ignored-value-to-metric 1'] : []);
  });
});

describe('unreachable-rule', () => {
  it.each<[what: string, rules: readonly string[], reported: string]>([
    ['a narrower wildcard after a wider one', ['value: "a*"', 'value: "ab*"'], '2'],
    ['a narrower wildcard before a wider one', ['value: "ab*"', 'value: "a*"'], ''],
    ['a wildcard after `*`', ['value: "*"', 'value: "*a*b*"'], '2'],
    ['two spellings of `*`', ['value: "*"', 'value: "**"'], '2'],
    ['a rule without value and `*`', ['shadow_mode: false', 'value: "*"'], '1'],
    ['a rule without value and another wildcard', ['shadow_mode: false', 'value: "a*"'], ''],
    ['an explicit value after a wildcard that matches it', ['value: "a*"', 'value: ab'], ''],
    ['rules of a deeper level', ['descriptors: [{key: n, value: "*"}, {key: n}]'], '1'],
    ['rules of different levels', ['value: "*"', 'value: v, descriptors: [{key: k}]'], ''],
    ['wildcards that only overlap', ['value: "a*"', 'value: "*b"'], ''],
    ['parts in another order', ['value: "*a*b*"', 'value: "*b*a*"'], ''],
    ['parts in the same order', ['value: "*a*b*"', 'value: "xa*yb"'], '2'],
  ])('is correct for %s', (_, fields, reported) => {
    const rules = fields.map((field) => `{key: k, ${field}}`);
    expect(warningsOf(rules)).toEqual(reported === '' ? [] : [`unreachable-rule ${reported}`]);
    const ofOtherKeys = fields.map((field, index) => `{key: k${index}, ${field}}`);
    expect(warningsOf(ofOtherKeys)).toEqual(fields.length === 1 ? ['unreachable-rule 1'] : []);
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
    function matcher(text: string) {
      return new RegExp(`^${text.replaceAll('*', '.*')}$`);
    }
    fc.assert(
      fc.property(pattern, pattern, (first, second) => {
        fc.pre(first !== second);
        const [one, other] = [matcher(first), matcher(second)];
        const covered = values.every((value) => !other.test(value) || one.test(value));
        const warnings = warningsOf([first, second].map((value) => `{key: k, value: "${value}"}`));
        expect(warnings).toEqual(covered ? ['unreachable-rule 2'] : []);
      }),
      { numRuns: 100 },
    );
  });

  it('is not reported when one key has too many wildcards to compare', () => {
    const many = Array.from({ length: 2000 }, (_, index) => `{key: k, value: "${index}-*"}`);
    expect(warningsOf([...many.slice(0, 1400), '{key: k, value: "7-7*"}'])).toEqual(['unreachable-rule 1401']);
    expect(warningsOf([...many, '{key: k, value: "7-7*"}'])).toEqual([]);
  });
});

describe('a warning', () => {
  it.each<[code: string, what: string, rules: readonly string[]]>([
    ['zero-limit-for-all 1', 'a rule without value', [`{key: k, ${ZERO}}`]],
    ['zero-limit-for-all 1', 'one below levels without value', [`{key: k, descriptors: [{key: l, ${ZERO}}]}`]],
    ['', 'a rule with a value, which it bans', [`{key: k, value: v, ${ZERO}}`]],
    ['', 'a rule with the value `*`', [`{key: k, value: "*", ${ZERO}}`]],
    ['', 'a rule below a level with a value', [`{key: k, value: v, descriptors: [{key: l, ${ZERO}}]}`]],
    ['', 'a limit of 0 in shadow mode', [`{key: k, shadow_mode: true, ${ZERO}}`]],
    ['replaces-unknown-name 2', 'a name that no rule has', [named('a', 'x'), replacing('y')]],
    [
      'replaces-unlimited 2',
      'the name of an unlimited rule',
      ['{key: a, rate_limit: {unlimited: true, name: x}}', replacing('x')],
    ],
    ['', 'the name of a later rule', [replacing('x'), named('a', 'x')]],
    ['', 'the name of a nested rule', [replacing('x'), `{key: a, descriptors: [${named('b', 'x')}]}`]],
    [
      '',
      'a name that a limited rule also has',
      ['{key: a, rate_limit: {unlimited: true, name: x}}', named('b', 'x'), replacing('x')],
    ],
    ['unbounded-metric 1', 'an address in detail', [`{${IP}, detailed_metric: true, ${LIMIT}}`]],
    ['unbounded-metric 1', 'an address by value', [`{key: masked_remote_address, value_to_metric: true, ${LIMIT}}`]],
    [
      'unbounded-metric 1',
      'an address above detail',
      [`{${IP}, descriptors: [{key: k, detailed_metric: true, ${LIMIT}}]}`],
    ],
    [
      'unbounded-metric 1',
      'several rules below an address',
      [`{${IP}, value_to_metric: true, descriptors: [{key: k, ${LIMIT}}, {key: l, ${LIMIT}}]}`],
    ],
    ['unbounded-metric 1', 'a wildcard of addresses', [`{${IP}, value: "10.*", value_to_metric: true, ${LIMIT}}`]],
    ['', 'a shared threshold', [`{${IP}, value: "10.*", share_threshold: true, detailed_metric: true, ${LIMIT}}`]],
    ['', 'an explicit address', [`{${IP}, value: 10.0.0.1, detailed_metric: true, ${LIMIT}}`]],
    ['', 'another key than an address', [`{key: user, detailed_metric: true, ${LIMIT}}`]],
    ['ignored-without-limit 1', 'shadow_mode without limit', ['{key: k, shadow_mode: true}']],
    ['ignored-without-limit 1', 'quota_mode without limit', ['{key: k, quota_mode: true}']],
    ['ignored-without-limit 1', 'metadata without limit', ['{key: k, metadata: {a: 1}}']],
    ['ignored-without-limit 1', 'detail without limit', ['{key: k, detailed_metric: true, descriptors: [{key: l}]}']],
    ['', 'value_to_metric for nested rules', ['{key: k, value_to_metric: true, descriptors: [{key: l}]}']],
    ['', 'a threshold for nested rules', ['{key: k, value: "*", share_threshold: true, descriptors: [{key: l}]}']],
    ['', 'a field that is false', ['{key: k, shadow_mode: false}']],
    ['ignored-when-unlimited 1', 'quota_mode with unlimited', [`{key: k, quota_mode: true, ${FREE}}`]],
    ['', 'detailed_metric with unlimited', [`{key: k, detailed_metric: true, ${FREE}}`]],
  ])('"%s" is reported for %s', (expected, _, rules) => {
    expect(warningsOf(rules)).toEqual(expected === '' ? [] : [expected]);
  });

  it('is reported for a name that only a rule of another domain has', () => {
    const other = `domain: other\ndescriptors: [${named('k', 'x')}]`;
    expect(warningsOf([replacing('x')], 'd', other)).toEqual(['replaces-unknown-name 1']);
  });
});
