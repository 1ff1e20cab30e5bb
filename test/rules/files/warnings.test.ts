import fc from 'fast-check';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import { Wildcard } from '../../../src/rules/wildcard';

/** Codes and lines of the warnings of a file that has no errors. */
function warningsOf(...rules: readonly string[]): readonly string[] {
  const text = `domain: d\ndescriptors:\n${rules.map((rule) => `- ${rule}\n`).join('')}`;
  const files = [{ path: 'a.yaml', content: new TextEncoder().encode(text) }];
  const { errors, warnings } = readRuleFiles(files, { mergeDomainConfigs: false });
  expect(errors).toEqual([]);
  // The rules begin in line 3.
  return warnings.map(({ code, line }) => `${code} ${line - 2}`);
}

const LIMIT = 'rate_limit: {unit: day, requests_per_unit: 1}';

describe('a rule that is never reached is warned about', () => {
  it.each([
    [
      'a wildcard behind one that takes all it takes',
      ['{key: k, value: "a*"}', '{key: k, value: "ab*"}'],
      ['unreachable-rule 2'],
    ],
    ['a wildcard before one that takes all it takes', ['{key: k, value: "ab*"}', '{key: k, value: "a*"}'], []],
    ['a wildcard behind everything', ['{key: k, value: "*"}', '{key: k, value: "*a*b*"}'], ['unreachable-rule 2']],
    ['two spellings of everything', ['{key: k, value: "*"}', '{key: k, value: "**"}'], ['unreachable-rule 2']],
    ['the rule without value beside everything', ['{key: k}', '{key: k, value: "*"}'], ['unreachable-rule 1']],
    ['the rule without value beside something', ['{key: k}', '{key: k, value: "a*"}'], []],
    ['an explicit value behind a wildcard that matches it', ['{key: k, value: "a*"}', '{key: k, value: ab}'], []],
    ['another key', ['{key: k, value: "*"}', '{key: l, value: "a*"}', '{key: l}'], []],
    ['a deeper level', ['{key: k, descriptors: [{key: n, value: "*"}, {key: n}]}'], ['unreachable-rule 1']],
    ['different levels', ['{key: k, value: "*"}', '{key: l, descriptors: [{key: k}]}'], []],
    ['wildcards that only overlap', ['{key: k, value: "a*"}', '{key: k, value: "*b"}'], []],
    ['parts in another order', ['{key: k, value: "*a*b*"}', '{key: k, value: "*b*a*"}'], []],
    ['parts in the same order', ['{key: k, value: "*a*b*"}', '{key: k, value: "xa*yb"}'], ['unreachable-rule 2']],
  ])('%s', (_, rules, expected) => {
    expect(warningsOf(...rules)).toEqual(expected);
  });

  it('exactly when every value that it matches is matched by one before it', () => {
    const pattern = fc
      .string({ unit: fc.constantFrom('a', 'b', '*'), minLength: 1, maxLength: 5 })
      .filter((text) => text.includes('*'));
    // All values of up to 6 letters; one letter more than the patterns have stands for any other.
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

  it('but not searched for among very many wildcards of one key', () => {
    const many = Array.from({ length: 2000 }, (_, index) => `{key: k, value: "${index}-*"}`);
    expect(warningsOf(...many, '{key: k, value: "7-7*"}')).toEqual([]);
  });
});

describe('a limit of 0 is warned about', () => {
  const ZERO = 'rate_limit: {unit: day, requests_per_unit: 0}';
  it.each([
    ['on a rule without value', [`{key: k, ${ZERO}}`], ['zero-limit-for-all 1']],
    ['below levels without value', [`{key: k, descriptors: [{key: l, ${ZERO}}]}`], ['zero-limit-for-all 1']],
    ['but not on a rule with a value: it is a ban', [`{key: k, value: v, ${ZERO}}`], []],
    ['but not on a rule for every value, said so', [`{key: k, value: "*", ${ZERO}}`], []],
    ['but not below a level with a value', [`{key: k, value: v, descriptors: [{key: l, ${ZERO}}]}`], []],
    ['but not in shadow mode', [`{key: k, shadow_mode: true, ${ZERO}}`], []],
  ])('%s', (_, rules, expected) => {
    expect(warningsOf(...rules)).toEqual(expected);
  });
});

describe('a name in replaces is warned about', () => {
  function named(key: string, name: string) {
    return `{key: ${key}, rate_limit: {unit: day, requests_per_unit: 1, name: ${name}}}`;
  }
  function replacing(name: string) {
    return `{key: r, rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: ${name}}]}}`;
  }
  it.each([
    ['that no rule has', [named('a', 'x'), replacing('y')], ['replaces-unknown-name 2']],
    [
      'that only an unlimited rule has',
      ['{key: a, rate_limit: {unlimited: true, name: x}}', replacing('x')],
      ['replaces-unlimited 2'],
    ],
    ['but not one that a later rule has', [replacing('x'), named('a', 'x')], []],
    ['but not one that a nested rule has', [replacing('x'), `{key: a, descriptors: [${named('b', 'x')}]}`], []],
    [
      'but not one that a limited rule has, too',
      ['{key: a, rate_limit: {unlimited: true, name: x}}', named('b', 'x'), replacing('x')],
      [],
    ],
  ])('%s', (_, rules, expected) => {
    expect(warningsOf(...rules)).toEqual(expected);
  });

  it('when only another domain has it', () => {
    const files = [
      { path: 'a.yaml', content: new TextEncoder().encode(`domain: a\ndescriptors: [${named('k', 'x')}]`) },
      { path: 'b.yaml', content: new TextEncoder().encode(`domain: b\ndescriptors: [${replacing('x')}]`) },
    ];
    const { warnings } = readRuleFiles(files, { mergeDomainConfigs: false });
    expect(warnings.map(({ file, code }) => [file, code])).toEqual([['b.yaml', 'replaces-unknown-name']]);
  });
});

describe("addresses of the proxy's clients in statistics keys are warned about", () => {
  it.each([
    ['with detailed_metric', [`{key: remote_address, detailed_metric: true, ${LIMIT}}`], ['unbounded-metric 1']],
    ['with value_to_metric', [`{key: masked_remote_address, value_to_metric: true, ${LIMIT}}`], ['unbounded-metric 1']],
    [
      'with detailed_metric below',
      [`{key: remote_address, descriptors: [{key: k, detailed_metric: true, ${LIMIT}}]}`],
      ['unbounded-metric 1'],
    ],
    [
      'once for several rules below',
      [`{key: remote_address, value_to_metric: true, descriptors: [{key: k, ${LIMIT}}, {key: l, ${LIMIT}}]}`],
      ['unbounded-metric 1'],
    ],
    [
      'with a wildcard',
      [`{key: remote_address, value: "10.*", value_to_metric: true, ${LIMIT}}`],
      ['unbounded-metric 1'],
    ],
    [
      'but not with a shared threshold',
      [`{key: remote_address, value: "10.*", share_threshold: true, detailed_metric: true, ${LIMIT}}`],
      [],
    ],
    ['but not with an explicit value', [`{key: remote_address, value: 10.0.0.1, detailed_metric: true, ${LIMIT}}`], []],
    ['but not for other keys', [`{key: user, detailed_metric: true, ${LIMIT}}`], []],
  ])('%s', (_, rules, expected) => {
    expect(warningsOf(...rules)).toEqual(expected);
  });
});

describe('a field without effect is warned about', () => {
  it.each([
    ['shadow_mode without limit', '{key: k, shadow_mode: true}', ['ignored-without-limit 1']],
    ['quota_mode without limit', '{key: k, quota_mode: true}', ['ignored-without-limit 1']],
    ['metadata without limit', '{key: k, metadata: {a: 1}}', ['ignored-without-limit 1']],
    [
      'detailed_metric without limit',
      '{key: k, detailed_metric: true, descriptors: [{key: l}]}',
      ['ignored-without-limit 1'],
    ],
    [
      'but not value_to_metric, which counts for nested rules',
      '{key: k, value_to_metric: true, descriptors: [{key: l}]}',
      [],
    ],
    [
      'but not share_threshold, which counts for nested rules',
      '{key: k, value: "*", share_threshold: true, descriptors: [{key: l}]}',
      [],
    ],
    ['but not a false one', '{key: k, shadow_mode: false}', []],
    [
      'quota_mode with unlimited',
      '{key: k, quota_mode: true, rate_limit: {unlimited: true}}',
      ['ignored-when-unlimited 1'],
    ],
    ['but not detailed_metric with unlimited', '{key: k, detailed_metric: true, rate_limit: {unlimited: true}}', []],
  ])('%s', (_, rule, expected) => {
    expect(warningsOf(rule)).toEqual(expected);
  });
});
