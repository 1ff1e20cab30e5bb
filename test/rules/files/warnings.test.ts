import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import fc from '../../support/data/properties';

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
const DETAILED = 'detailed_metric: true';
const BOTH = `${DETAILED}, value_to_metric: true`;
const IP = 'key: remote_address';

function named(key: string, name: string) {
  return `{key: ${key}, rate_limit: {unit: day, requests_per_unit: 1, name: ${name}}}`;
}
function replacing(name: string) {
  return `{key: r, rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: ${name}}]}}`;
}

describe('unreachable-rule', () => {
  it.each<[what: string, rules: readonly string[], reported: string]>([
    ['a rule without value and another wildcard', ['shadow_mode: false', 'value: "a*"'], ''],
    ['an explicit value after a wildcard that matches it', ['value: "a*"', 'value: ab'], ''],
    ['rules of a deeper level', ['descriptors: [{key: n, value: "*"}, {key: n}]'], '1'],
    ['rules of different levels', ['value: "*"', 'value: v, descriptors: [{key: k}]'], ''],
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
  const UNLIMITED = '{key: a, rate_limit: {unlimited: true, name: x}}';
  it.each<[warning: string, ...rules: string[]]>([
    // A limit of 0 bans every value, unless a value or shadow mode shows that this is intended.
    ['zero-limit-for-all 1', `{key: k, descriptors: [{key: l, ${ZERO}}]}`],
    ['', `{key: k, value: v, ${ZERO}}`],
    ['', `{key: k, value: "*", ${ZERO}}`],
    ['', `{key: k, shadow_mode: true, ${ZERO}}`],
    // A name that no rule with a limit has.
    ['', replacing('x'), named('a', 'x')],
    ['', replacing('x'), `{key: a, descriptors: [${named('b', 'x')}]}`],
    ['', UNLIMITED, named('b', 'x'), replacing('x')],
    // An address of a client in the names of statistics.
    ['unbounded-metric 1', `{key: masked_remote_address, value_to_metric: true, ${LIMIT}}`],
    ['unbounded-metric 1', `{${IP}, descriptors: [{key: k, detailed_metric: true, ${LIMIT}}]}`],
    ['unbounded-metric 1', `{${IP}, value_to_metric: true, descriptors: [{key: k, ${LIMIT}}, {key: l, ${LIMIT}}]}`],
    ['unbounded-metric 1', `{${IP}, value: "10.*", value_to_metric: true, ${LIMIT}}`],
    ['', `{${IP}, value: "10.*", share_threshold: true, detailed_metric: true, ${LIMIT}}`],
    ['', `{${IP}, value: 10.0.0.1, detailed_metric: true, ${LIMIT}}`],
    // Fields without effect.
    ['ignored-without-limit 1', '{key: k, shadow_mode: true}'],
    ['ignored-without-limit 1', '{key: k, quota_mode: true}'],
    ['ignored-without-limit 1', '{key: k, metadata: {a: 1}}'],
    ['ignored-without-limit 1', '{key: k, detailed_metric: true, descriptors: [{key: l}]}'],
    ['', '{key: k, value_to_metric: true, descriptors: [{key: l}]}'],
    ['', '{key: k, value: "*", share_threshold: true, descriptors: [{key: l}]}'],
    ['ignored-when-unlimited 1', `{key: k, quota_mode: true, ${FREE}}`],
    ['', `{key: k, detailed_metric: true, ${FREE}}`],
    // What tools write that write every field: nothing of it is a mistake.
    [
      '',
      `{key: k, value: "", rate_limit: null, shadow_mode: false, metadata: null, descriptors: [{key: l, ${LIMIT}}]}`,
    ],
    [
      '',
      `{key: k, value: "", value_in: null, value_regex: "", rate_limit: ~, rate_limits: [{unit: day, requests_per_unit: 1}]}`,
    ],
    [
      '',
      '{key: k, rate_limit: {unit: "", requests_per_unit: 0, unlimited: true, name: "", replaces: ' +
        '[]}, descriptors: []}',
    ],
    ['', `{key: k, quota_mode: null, on_store_failure: null, descriptors: null, ${LIMIT}}`],
    ['empty-field 1', '{key: k, value: , descriptors: []}'],
    ['empty-field 1', '{key: k, rate_limit: null}'],
    ['empty-field 1', `{key: k, rate_limit: , descriptors: [{key: l, ${LIMIT}}]}`],
    ['ignored-when-unlimited 1', '{key: k, rate_limit: {requests_per_unit: 1, unlimited: true}}'],
    // `value_to_metric` with `detailed_metric`, unless a nested limit reads it.
    ['', `{key: k, ${BOTH}, ${LIMIT}, descriptors: [{key: l, ${LIMIT}}]}`],
    ['', `{key: k, ${BOTH}, ${LIMIT}, descriptors: [{key: l, descriptors: [{key: m, ${LIMIT}}]}]}`],
    ['', `{key: k, ${BOTH}, ${LIMIT}, descriptors: [{key: l, ${FREE}}]}`],
    ['ignored-value-to-metric 1', `{key: k, ${BOTH}, ${LIMIT}, descriptors: [{key: l, ${DETAILED}, ${LIMIT}}]}`],
  ])('"%s" is reported for %s', (expected, ...rules) => {
    expect(warningsOf(rules)).toEqual(expected === '' ? [] : [expected]);
  });

  it('is reported for `name` inside of rules only, not for that at the top of a file', () => {
    const rule = `domain: shop\nname: shop\ndescriptors:\n- {key: k, name: n, ${LIMIT}}\n`;
    const files = [{ path: 'shop.yaml', content: new TextEncoder().encode(rule) }];
    const { errors, warnings } = readRuleFiles(files, { mergeDomainConfigs: false });
    expect([errors, warnings.map(({ line, advice }) => [line, advice])]).toEqual([
      [],
      [[4, 'It has an effect only in `rate_limit` or in an entry of `replaces`; move it there, or remove it.']],
    ]);
  });

  it('is reported for a name that only a rule of another domain has', () => {
    const other = `domain: other\ndescriptors: [${named('k', 'x')}]`;
    expect(warningsOf([replacing('x')], 'd', other)).toEqual(['replaces-unknown-name 1']);
  });
});
