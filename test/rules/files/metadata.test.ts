import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import type { RuleConfig } from '../../../src/rules/rule-config';

/** The rules of a text that has no errors. */
function rulesOf(text: string): readonly RuleConfig[] {
  const files = [{ path: 'a.yaml', content: new TextEncoder().encode(text) }];
  const { configs, errors } = readRuleFiles(files, { mergeDomainConfigs: false });
  expect(errors).toEqual([]);
  return configs[0]?.descriptors ?? [];
}

function metadataOf(written: string) {
  return rulesOf(`domain: d\ndescriptors:\n- key: k\n  metadata: ${written}\n`)[0]?.metadata;
}

describe('a key of metadata', () => {
  const WRITTEN = ['yes', 'y', '0x10', '010', '1_0', '1.50', '1e6', '0.00001', '-.inf', '!!bool "no"', '"yes"', '1:30'];
  const IDS = ['9007199254740993', '18446744073709551615', '18446744073709551616'];

  function namesOf(metadata: string) {
    const members = metadataOf(metadata) ?? {};
    return Object.keys(members['in'] ?? members);
  }

  it.each([
    ...['yes', 'y', '0x10', '1.50', '1e6', '.inf', '1:30', ...IDS].map((key) => [key, key]),
    ['~', ''],
    ['"~"', '~'],
  ])('at the top level is its source text: %s is %j', (written, expected) => {
    expect(namesOf(`{${written}: 1}`)).toEqual([expected]);
  });

  // As printed by the Go service, which converts the values of nested keys to text.
  const PRINTED = ['true', 'true', '16', '8', '10', '1.5', '1e+06', '1e-05', '-Inf', 'false', 'yes', '1:30'];
  it.each([
    ...WRITTEN.map((key, index) => [key, PRINTED[index] ?? '']),
    ...['9007199254740993', '18446744073709551615'].map((id) => [id, id]),
    ['18446744073709551616', '1.8446744073709552e+19'],
    ['-0.0', '-0'],
    ['.nan', 'NaN'],
    ['~', '<nil>'],
    ['7'.repeat(90), '7.777777777777777e+89'],
  ])('within another value is the text of its value: %s is %j', (written, expected) => {
    expect(namesOf(`{in: {${written}: 1}}`)).toEqual([expected]);
    expect(metadataOf(`{list: [{${written}: 1}]}`)).toEqual({ list: [{ [expected]: 1 }] });
  });
});

describe('metadata that is assigned twice', () => {
  const BASE = 'domain: d\ndescriptors:\n- &base {key: a, metadata: {team: x, deep: {one: 1}, tier: 1}}\n';
  it.each([
    [
      'after a merge, extends the merged one',
      `${BASE}- {<<: *base, key: b, metadata: {tier: 2, deep: {two: 2}}}`,
      { team: 'x', deep: { two: 2 }, tier: 2 },
    ],
    [
      'before a merge, is extended by the merged one',
      `${BASE}- {metadata: {own: 0, tier: 2}, <<: *base, key: b}`,
      { own: 0, team: 'x', deep: { one: 1 }, tier: 1 },
    ],
    [
      'by two merges, has the keys of both',
      `${BASE}- {<<: [{metadata: {tier: 3}}, *base], key: b}`,
      { team: 'x', deep: { one: 1 }, tier: 3 },
    ],
    [
      'by a repeated key, has the keys of both',
      'domain: d\ndescriptors:\n- {key: a}\n- {key: b, metadata: {team: x, tier: 1}, metadata: {tier: 2}}',
      { team: 'x', tier: 2 },
    ],
    [
      'with an empty one in between, has only the keys of the last',
      'domain: d\ndescriptors:\n- {key: a}\n- {key: b, metadata: {team: x}, metadata: ~, metadata: {tier: 2}}',
      { tier: 2 },
    ],
  ])('%s, as in the Go service', (_, text, expected) => {
    expect(rulesOf(text)[1]?.metadata).toEqual(expected);
  });
});
