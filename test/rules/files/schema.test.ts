import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { parseDocument } from 'yaml';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import { FIELDS } from '../../../src/rules/files/rule-fields';
import fc from '../../support/data/properties';
import { fixtures } from './fixtures';

interface SchemaNode {
  readonly properties: Readonly<Record<string, SchemaNode & { readonly items?: SchemaNode }>>;
  readonly anyOf?: readonly SchemaNode[];
}
interface FileSchema extends SchemaNode {
  readonly definitions: Readonly<Record<'descriptor' | 'rateLimit', SchemaNode>>;
}

const schema: FileSchema = JSON.parse(readFileSync(join(__dirname, '../../../schema/rule-file.schema.json'), 'utf8'));
const validate = new Ajv({ strict: true, allowUnionTypes: true, strictRequired: false }).compile(schema);

/**
 * The codes that a schema for one file can detect. `misplaced-key` is only a warning of the loader, but an error in an
 * editor.
 */
const STRUCTURAL = new Set<string>([
  ...['not-a-mapping', 'kubernetes-object', 'unrendered-template', 'unknown-key', 'misplaced-key'],
  ...['list-item-not-a-mapping', 'wrong-type', 'empty-domain'],
  ...['empty-key', 'invalid-unit', 'unit-when-unlimited', 'missing-requests-per-unit', 'invalid-requests-per-unit'],
  ...['invalid-algorithm', 'invalid-burst', 'invalid-max-concurrent', 'invalid-enforce-percent'],
  ...[
    'invalid-address-prefix',
    'invalid-unit-multiplier',
    'invalid-failure-policy',
    'invalid-unmatched-policy',
    'invalid-value-in',
  ],
  ...['empty-replaces', 'share-threshold-without-wildcard', 'invalid-metadata'],
]);
// A schema cannot detect values that JSON cannot represent, nor numbers that YAML 1.1 reads differently.
const UNSEEN = ['invalid-metadata.not-json', 'invalid-requests-per-unit.not-octal'];
// A schema is applied after the YAML parser has resolved aliases, merges, tags and keys that are not text.
const NOT_PLAIN = [
  ...['anchor-contains-itself', 'too-many-aliases', 'unknown-anchor', 'invalid-merge', 'merged-rate-limit'],
  ...['key-not-text', 'unsupported-tag', 'yaml-syntax', 'merge-conflict'],
];

function parse(yaml: string) {
  return parseDocument(yaml, { version: '1.1', logLevel: 'silent' });
}

/** Whether the schema accepts a file, and whether the loader does. */
function verdicts(yaml: string): readonly boolean[] {
  const files = [{ path: 'a.yaml', content: new TextEncoder().encode(yaml) }];
  const { errors, warnings } = readRuleFiles(files, { mergeDomainConfigs: false });
  return [validate(parse(yaml).toJS()), ![...errors, ...warnings].some(({ code }) => STRUCTURAL.has(code))];
}

describe('the schema of rule files', () => {
  const files = fixtures.filter(({ isFolder, name }) => !isFolder && !UNSEEN.includes(name));
  const structural = files.filter(({ code }) => STRUCTURAL.has(code));
  it.each(structural.map(({ name, path }) => [name, path]))('rejects what the loader rejects: %s', (_, path) => {
    expect(verdicts(readFileSync(path, 'utf8'))).toEqual([false, false]);
  });

  const meaningful = files.filter(({ code, path }) => {
    if (STRUCTURAL.has(code) || NOT_PLAIN.includes(code)) return false;
    return parse(readFileSync(path, 'utf8')).errors.length === 0;
  });
  it.each(meaningful.map(({ name, path }) => [name, path]))('accepts what is not structural: %s', (_, path) => {
    expect(verdicts(readFileSync(path, 'utf8'))[0]).toBe(true);
  });

  it('has the same fields as the loader, in the same order', () => {
    const { descriptor, rateLimit } = schema.definitions;
    const { replaces, calendar, active, block_for } = rateLimit.properties;
    const { address_prefix } = descriptor.properties;
    const sections = {
      ...{ 'top level': schema, descriptor, rate_limit: rateLimit, calendar, active, address_prefix },
      ...{ block_for: block_for?.anyOf?.at(-1), replaces: replaces?.items },
      'active range': active?.properties['ranges']?.items,
    };
    for (const [section, fields] of Object.entries(FIELDS)) {
      expect(Object.keys(sections[section as keyof typeof FIELDS]?.properties ?? {})).toEqual(Object.keys(fields));
    }
  });

  it('agrees with the loader about any file composed of their keys and values', () => {
    const words = 'k 5 true ~ "" "1" day "a*" -1 [] {} [m] [{}] text 010';
    const scalar = fc.constantFrom(...words.split(' '));
    function fieldsOf(fields: Readonly<Record<string, fc.Arbitrary<string>>>) {
      return fc
        .subarray(Object.entries(fields).map(([name, value]) => value.map((text) => `${name}: ${text}`)))
        .chain((chosen) => fc.tuple(...chosen))
        .map((texts) => `{${texts.join(', ')}}`);
    }
    function mostly(...good: (string | fc.Arbitrary<string>)[]) {
      const all = good.map((each) => (typeof each === 'string' ? fc.constant(each) : each));
      return fc.oneof({ weight: 9, arbitrary: fc.oneof(...all) }, scalar);
    }
    function listOf(items: fc.Arbitrary<string>) {
      return fc.array(mostly(items), { maxLength: 2 }).map((list) => `[${list.join(', ')}]`);
    }
    const flag = mostly('true', 'false', 'yes');
    const rateLimit = fieldsOf({
      ...{ unit: mostly('day', 'Week', 'days'), requests_per_unit: mostly('1', '0', '5000000000') },
      ...{ unlimited: flag, key: scalar, algorithm: mostly('token_bucket', 'fixed_window') },
      ...{ name: mostly('n'), replaces: mostly(listOf(fieldsOf({ name: mostly('m') }))) },
    });
    const descriptor = fieldsOf({
      ...{ key: mostly('k', 'l'), value: mostly('v', '"a*"', '"a*b"'), rate_limit: mostly(rateLimit) },
      ...{ shadow_mode: flag, share_threshold: flag, metadata: mostly('{a: [1, {b: ~}]}', '{}') },
      descriptors: mostly('[{key: n}]'),
    });
    const seen = new Map([true, false].map((each) => [each, 0]));
    fc.assert(
      fc.property(mostly('d'), listOf(descriptor), (name, descriptors) => {
        const [bySchema, byLoader = false] = verdicts(`{domain: ${name}, descriptors: ${descriptors}}`);
        expect([descriptors, bySchema]).toEqual([descriptors, byLoader]);
        seen.set(byLoader, (seen.get(byLoader) ?? 0) + 1);
      }),
      { numRuns: 1000 },
    );
    expect(Math.min(...seen.values())).toBeGreaterThan(40);
  });
});
