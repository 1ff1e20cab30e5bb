import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { parseDocument } from 'yaml';
import type { ProblemCode } from '../../../src/rules/files/problems/problem-codes';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import { fixtures } from './fixtures';

const schema: object = JSON.parse(readFileSync(join(__dirname, '../../../schema/rule-file.schema.json'), 'utf8'));
const validate = new Ajv({ strict: true, allowUnionTypes: true, strictRequired: false }).compile(schema);

/** The codes that a schema for one file can detect. `misplaced-key` is only a warning of the loader, but an error in an editor. */
const STRUCTURAL: readonly ProblemCode[] = [
  'not-a-mapping',
  'unknown-key',
  'misplaced-key',
  'list-item-not-a-mapping',
  'wrong-type',
  'empty-domain',
  'empty-key',
  'invalid-unit',
  'unit-when-unlimited',
  'missing-requests-per-unit',
  'invalid-requests-per-unit',
  'empty-replaces',
  'share-threshold-without-wildcard',
  'invalid-metadata',
];

function schemaAccepts(yaml: string): boolean {
  return validate(parseDocument(yaml, { version: '1.1', logLevel: 'silent' }).toJS());
}

function loaderAccepts(yaml: string): boolean {
  const files = [{ path: 'a.yaml', content: new TextEncoder().encode(yaml) }];
  const { errors, warnings } = readRuleFiles(files, { mergeDomainConfigs: false });
  return ![...errors, ...warnings].some(({ code }) => STRUCTURAL.includes(code));
}

describe('the schema of rule files', () => {
  const structural = fixtures.filter(({ code, isFolder }) => !isFolder && STRUCTURAL.includes(code as ProblemCode));
  // A schema cannot detect values that JSON cannot represent, nor numbers that YAML 1.1 reads differently.
  const unseen = ['invalid-metadata.not-json', 'invalid-requests-per-unit.not-octal'];

  it.each(structural.filter(({ name }) => !unseen.includes(name)).map(({ name, path }) => [name, path]))(
    'rejects what the loader rejects: %s',
    (_, path) => {
      const yaml = readFileSync(path, 'utf8');
      expect({ loader: loaderAccepts(yaml), schema: schemaAccepts(yaml) }).toEqual({ loader: false, schema: false });
    },
  );

  const meaningful = fixtures.filter(
    ({ code, path }) =>
      !STRUCTURAL.includes(code as ProblemCode) &&
      path.endsWith('.yaml') &&
      parseDocument(readFileSync(path, 'utf8'), { version: '1.1', logLevel: 'silent' }).errors.length === 0,
  );
  // A schema is applied after the YAML parser has resolved aliases, merges, tags and keys that are not text.
  const notPlain = [
    ...['anchor-contains-itself', 'too-many-aliases', 'unknown-anchor', 'invalid-merge', 'merged-rate-limit'],
    ...['key-not-text', 'unsupported-tag', 'yaml-syntax'],
  ];

  it.each(meaningful.filter(({ code }) => !notPlain.includes(code)).map(({ name, path }) => [name, path]))(
    'accepts files whose problem is not structural: %s',
    (_, path) => {
      expect(schemaAccepts(readFileSync(path, 'utf8'))).toBe(true);
    },
  );

  function rule(fields: string) {
    return `domain: d\ndescriptors: [{key: k, ${fields}}]`;
  }
  function limit(fields: string) {
    return rule(`rate_limit: {${fields}}`);
  }
  it.each([
    ['domain: d', true],
    ['domain: 010', true],
    ['domain: ~', false],
    ['domain: ""', false],
    ['domain: [d]', false],
    ['domain: d\ndescriptors: ~', true],
    ['domain: d\ndescriptors: {}', false],
    ['domain: d\nextra: 1', false],
    ['descriptors: []', false],
    ['[]', false],
    ['text', false],
    [rule('value: ~'), true],
    [rule('value: 5'), true],
    [rule('value: yes'), true],
    [rule('value: {}'), false],
    [rule('descriptors: [{key: n}, {value: v}]'), false],
    [rule('rate_limit: ~'), true],
    [rule('rate_limit: []'), false],
    [rule('shadow_mode: yes'), true],
    [rule('shadow_mode: ~'), true],
    [rule('shadow_mode: 1'), false],
    [rule('quota_mode: "true"'), false],
    [rule('metadata: {a: [1, {b: ~}]}'), true],
    [rule('metadata: []'), false],
    [rule('share_threshold: true'), false],
    [rule('share_threshold: true, value: ab'), false],
    [rule('share_threshold: true, value: "a*b"'), true],
    [rule('share_threshold: false, value: ab'), true],
    [limit('unit: day, requests_per_unit: 0'), true],
    [limit('unit: DaY, requests_per_unit: 4294967295'), true],
    [limit('unit: day, requests_per_unit: 0x10'), true],
    [limit('unit: day, requests_per_unit: 4294967296'), false],
    [limit('unit: day, requests_per_unit: -1'), false],
    [limit('unit: day, requests_per_unit: 1.5'), false],
    [limit('unit: day, requests_per_unit: "1"'), false],
    [limit('unit: day, requests_per_unit: ~'), false],
    [limit('unit: day'), false],
    [limit('requests_per_unit: 1'), false],
    [limit('unit: days, requests_per_unit: 1'), false],
    [limit('unit: [day], requests_per_unit: 1'), false],
    [limit('unlimited: true'), true],
    [limit('unlimited: true, unit: day'), false],
    [limit('unlimited: true, unit: any'), true],
    [limit('unlimited: true, unit: []'), false],
    [limit('unlimited: true, requests_per_unit: 5'), true],
    [limit('unlimited: true, requests_per_unit: five'), false],
    [limit('unlimited: false'), false],
    [limit('unlimited: maybe, unit: day, requests_per_unit: 1'), false],
    [limit('unit: day, requests_per_unit: 1, name: n, replaces: [{name: m}]'), true],
    [limit('unit: day, requests_per_unit: 1, replaces: ~'), true],
    [limit('unit: day, requests_per_unit: 1, replaces: [{name: ""}]'), false],
    [limit('unit: day, requests_per_unit: 1, replaces: [{}]'), false],
    [limit('unit: day, requests_per_unit: 1, replaces: [m]'), false],
    [limit('unit: day, requests_per_unit: 1, replaces: {name: m}'), false],
    [limit('unit: day, requests_per_unit: 1, shadow_mode: true'), false],
  ])('agrees with the loader about %s: %p', (yaml, expected) => {
    expect({ loader: loaderAccepts(yaml), schema: schemaAccepts(yaml) }).toEqual({
      loader: expected,
      schema: expected,
    });
  });

  it('agrees with the loader about any file composed of their keys and values', () => {
    const scalar = fc.constantFrom('k', '5', 'true', '~', '""', '"1"', 'day', '"a*"', '-1', '[]', '{}');
    function fieldsOf(...fields: readonly [string, fc.Arbitrary<string>][]) {
      return fc
        .subarray(fields.map(([name, value]) => value.map((text) => `${name}: ${text}`)))
        .chain((chosen) => fc.tuple(...chosen))
        .map((texts) => `{${texts.join(', ')}}`);
    }
    function mostly(good: fc.Arbitrary<string>) {
      return fc.oneof({ weight: 9, arbitrary: good }, scalar);
    }
    function listOf(items: fc.Arbitrary<string>) {
      return fc.array(mostly(items), { maxLength: 2 }).map((list) => `[${list.join(', ')}]`);
    }
    const flag = mostly(fc.constantFrom('true', 'false'));
    const rateLimit = fieldsOf(
      ['unit', mostly(fc.constantFrom('day', 'Week', 'fortnight'))],
      ['requests_per_unit', mostly(fc.constantFrom('1', '0'))],
      ['unlimited', flag],
      ['name', mostly(fc.constant('n'))],
      ['replaces', mostly(listOf(fieldsOf(['name', mostly(fc.constant('m'))])))],
      ['key', scalar],
    );
    const descriptor = fieldsOf(
      ['key', mostly(fc.constantFrom('k', 'l'))],
      ['value', mostly(fc.constantFrom('v', '"a*"'))],
      ['rate_limit', mostly(rateLimit)],
      ['shadow_mode', flag],
      ['share_threshold', flag],
      ['metadata', mostly(fc.constant('{a: 1}'))],
      ['descriptors', mostly(fc.constant('[{key: n}]'))],
    );
    const seen = { accepted: 0, rejected: 0 };
    fc.assert(
      fc.property(mostly(fc.constant('d')), listOf(descriptor), (name, descriptors) => {
        const yaml = `{domain: ${name}, descriptors: ${descriptors}}`;
        const accepted = loaderAccepts(yaml);
        seen[accepted ? 'accepted' : 'rejected'] += 1;
        expect({ yaml, accepted: schemaAccepts(yaml) }).toEqual({ yaml, accepted });
      }),
      { numRuns: 1500 },
    );
    expect(Math.min(seen.accepted, seen.rejected)).toBeGreaterThan(50);
  });
});
