import fc from 'fast-check';
import { stringify, type ToStringOptions } from 'yaml';
import { parsePlainYaml } from '../../../src/rules/files/yaml/plain-yaml';
import { parseYaml } from '../../../src/rules/files/yaml/parse-yaml';
import { formatProblem, summarizeProblem } from '../../../src/rules/files/problems/format-problem';
import { ProblemReport } from '../../../src/rules/files/problems/problem-report';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import { SourceText } from '../../../src/rules/files/problems/source-text';
import type { DomainConfig, Json, RateLimitConfig, RuleConfig } from '../../../src/rules/rule-config';
import { UNIT_NAMES, type UnitName } from '../../../src/rules/unit';
import { fixtures } from './fixtures';
import { readFileSync, statSync } from 'node:fs';

function encode(text: string) {
  return new TextEncoder().encode(text);
}
const options = { mergeDomainConfigs: false };

/** Texts that YAML could read as another type, and ordinary ones. */
const text = fc.oneof(
  fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
    .filter((value) => !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\ufeff\ufffe\uffff]/u.test(value)),
  fc.constantFrom(
    '010',
    'yes',
    'null',
    '~',
    '<<',
    '*',
    'a*b',
    '- x',
    'k: v',
    '# no',
    ' blank ',
    "it's",
    '"q"',
    '1e3',
    '日本',
    '---',
    '...',
  ),
);
const units = UNIT_NAMES.filter((unit): unit is UnitName => unit !== 'UNKNOWN');
const json = fc
  .jsonValue({ maxDepth: 2 })
  .map((value) => JSON.parse(JSON.stringify(value).replaceAll('-0', '0')) as Json);

/** Configurations of one domain with these texts and metadata. */
function configurations(texts: fc.Arbitrary<string>, values: fc.Arbitrary<Json>): fc.Arbitrary<DomainConfig> {
  const optional = fc.oneof({ weight: 3, arbitrary: fc.constant('') }, texts);
  const rateLimit: fc.Arbitrary<RateLimitConfig> = fc
    .record({
      unit: fc.constantFrom(...units),
      requestsPerUnit: fc.integer({ min: 0, max: 4294967295 }),
      unlimited: fc.boolean(),
      name: optional,
      replaces: fc.array(texts, { maxLength: 2 }),
    })
    .map((limit) => ({
      ...limit,
      ...(limit.unlimited && { unit: undefined, requestsPerUnit: 0 }),
      replaces: limit.replaces.filter((replaced) => replaced !== limit.name),
    }));
  // The printer writes a key named << without quotes.
  const keys = texts.filter((key) => key !== '<<');
  const metadata = fc.dictionary(keys, values, { minKeys: 1, maxKeys: 3, noNullPrototype: true });
  const { rules } = fc.letrec<{ rules: RuleConfig[]; rule: RuleConfig }>((tie) => ({
    rules: fc.uniqueArray(tie('rule'), {
      maxLength: 3,
      depthIdentifier: 'rules',
      selector: (rule) => `${rule.key.length} ${rule.key}${rule.value}`,
    }),
    rule: fc
      .record({
        key: texts,
        value: optional,
        rateLimit: fc.option(rateLimit, { nil: undefined }),
        shadowMode: fc.boolean(),
        quotaMode: fc.boolean(),
        detailedMetric: fc.boolean(),
        valueToMetric: fc.boolean(),
        shareThreshold: fc.boolean(),
        metadata: fc.option(metadata, { nil: undefined }),
        descriptors: fc.oneof({ depthIdentifier: 'rules', maxDepth: 3 }, fc.constant([]), tie('rules')),
      })
      .map((rule) => ({ ...rule, shareThreshold: rule.shareThreshold && rule.value.includes('*') })),
  }));
  return fc.record({ domain: texts, descriptors: rules });
}

const domain = configurations(text, json);

/** A configuration in its usual written form: fields with default values are omitted. */
function written({ domain: ofDomain, descriptors }: DomainConfig): object {
  return { domain: ofDomain, descriptors: descriptors.map(writtenRule) };
}

function writtenRule(rule: RuleConfig): object {
  const { rateLimit: limit } = rule;
  return withoutDefaults({
    key: rule.key,
    value: rule.value,
    rate_limit: limit && {
      ...(limit.unlimited
        ? { unlimited: true }
        : { unit: limit.unit?.toLowerCase(), requests_per_unit: limit.requestsPerUnit }),
      ...withoutDefaults({ name: limit.name, replaces: limit.replaces.map((replaced) => ({ name: replaced })) }),
    },
    shadow_mode: rule.shadowMode,
    quota_mode: rule.quotaMode,
    detailed_metric: rule.detailedMetric,
    value_to_metric: rule.valueToMetric,
    share_threshold: rule.shareThreshold,
    metadata: rule.metadata,
    descriptors: rule.descriptors.map(writtenRule),
  });
}

function withoutDefaults(fields: object): object {
  function isDefault(value: unknown) {
    return value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0);
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isDefault(value)));
}

const styles = fc.constantFrom<ToStringOptions>(
  {},
  { indentSeq: false },
  { indent: 4 },
  { collectionStyle: 'flow' },
  { defaultStringType: 'QUOTE_DOUBLE' },
  { defaultStringType: 'QUOTE_SINGLE', defaultKeyType: 'PLAIN' },
);

describe('reading rule files', () => {
  it('returns every configuration that is printed as YAML, in any style', () => {
    fc.assert(
      fc.property(domain, styles, (config, style) => {
        const printed = stringify(written(config), { version: '1.1', aliasDuplicateObjects: false, ...style });
        const { configs, errors } = readRuleFiles([{ path: 'a.yaml', content: encode(printed) }], options);
        expect(errors).toEqual([]);
        expect(configs).toEqual([config]);
      }),
      { numRuns: 100 },
    );
  });

  it('returns every configuration that is printed as JSON', () => {
    fc.assert(
      fc.property(domain, (config) => {
        const content = encode(JSON.stringify(written(config)));
        expect(readRuleFiles([{ path: 'a.yaml', content }], options).configs).toEqual([config]);
      }),
    );
  });

  const samples = fixtures
    .filter(({ path, name: fixture }) => statSync(path).isFile() && fixture !== 'too-many-aliases')
    .map(({ path }) => new Uint8Array(readFileSync(path)));

  it('finds the same configurations and errors in several files, in any order', () => {
    const files = samples.map((content, index) => ({ path: `${index}.yaml`, content }));
    // Each file has its own domain, so that no file is a duplicate of another.
    const ownDomains = files.map(({ path, content }) => ({
      path,
      content: encode(new TextDecoder().decode(content).replace('domain: shop', `domain: shop-${path}`)),
    }));
    function found(order: typeof files) {
      const { errors } = readRuleFiles(order, options);
      return errors.map(formatProblem).toSorted();
    }
    const expected = found(ownDomains);
    expect(expected.length).toBeGreaterThan(40);
    fc.assert(
      fc.property(fc.shuffledSubarray(ownDomains, { minLength: ownDomains.length }), (order) => {
        expect(found(order)).toEqual(expected);
      }),
      { numRuns: 5 },
    );
  });

  it('never throws for any bytes, and every problem can be printed', () => {
    const mutation = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      cut: fc.nat(6),
      insert: fc.oneof(
        fc.uint8Array({ maxLength: 3 }),
        fc
          .constantFrom(
            '\n',
            '  ',
            '- ',
            ': ',
            '*',
            '&a ',
            '[',
            '}',
            '"',
            '|',
            '#',
            '---\n',
            '<<: ',
            '\t',
            '!!x ',
            '? ',
            '%',
          )
          .map(encode),
      ),
    });
    const mutated = fc
      .tuple(fc.constantFrom(...samples), fc.array(mutation, { minLength: 1, maxLength: 4 }))
      .map(([sample, mutations]) => {
        let bytes = [...sample];
        for (const { at, cut, insert } of mutations)
          bytes = bytes.toSpliced(Math.floor(at * bytes.length), cut, ...insert);
        return new Uint8Array(bytes);
      });
    fc.assert(
      fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 60 })), (content) => {
        const { configs, errors, warnings } = readRuleFiles([{ path: 'a.yaml', content }], options);
        for (const problem of [...errors, ...warnings]) {
          expect(formatProblem(problem).length).toBeLessThan(2000);
          expect(summarizeProblem(problem)).not.toContain('\n');
          expect(problem.mark.start + problem.mark.length).toBeLessThanOrEqual(problem.sourceLine.length + 1);
        }
        if (errors.length === 0) expect(configs.length).toBeLessThanOrEqual(1);
      }),
      { numRuns: 600 },
    );
  });
});

describe('the reader of plain YAML', () => {
  /** Compares the two readers; true if the plain reader supports the text. */
  function agrees(yaml: string): boolean {
    const plain = parsePlainYaml(yaml);
    if (plain === undefined) return false;
    const report = new ProblemReport();
    const parsed = parseYaml(new SourceText('a.yaml', yaml), report);
    expect(report.finish(['a.yaml'])).toEqual({ errors: [], warnings: [] });
    expect(plain).toEqual(parsed);
    return true;
  }

  it('returns the same tree and ranges as the library, or nothing', () => {
    const piece = fc.constantFrom(
      'key',
      'a',
      'b: ',
      'b:',
      '- ',
      '-',
      '-  ',
      '  ',
      '    ',
      ' ',
      '\n',
      '\n',
      '\n  ',
      '\n    ',
      '\n- ',
      '\n  - ',
      'key: value',
      'k: ',
      '# c',
      ' # c',
      '"q"',
      "'q'",
      '"',
      'x y',
      '010',
      '*',
      '&a',
      '[a]',
      '{a: b}',
      '|',
      '---',
      '\n---\n',
      '...',
      '\t',
      '\r\n',
      'é',
      'http://x',
      'a#b',
      '- key: v\n  w: x',
      'd:\n',
      '~',
      '<<: ',
      ': ',
      '? ',
      '\u2028',
      '\u00a0',
      '-1',
      '::',
      '%',
      '!t ',
      '"a: b"',
      "''",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
        agrees(pieces.join(''));
      }),
      { numRuns: 5000 },
    );
  });

  it('reads braces and brackets as the library does, or returns nothing', () => {
    const begin = fc.constantFrom('k: ', 'k: {', 'k: [', '- a: {', 'd:\n- x: [', 'k: {a: ', 'k: [{a: b}, ');
    const piece = fc.constantFrom(
      ...[
        '{',
        '}',
        '[',
        ']',
        'a',
        'b',
        ': ',
        ':',
        ', ',
        ',',
        ' ',
        '-',
        '#',
        ' #',
        '"q"',
        "'q'",
        'x y',
        '~',
        '*',
        '&a ',
      ],
      ...['a: b', '{k: v}', '[1, 2]', 'http://x', "'", '"', '|', '?', '\n  ', '010', '-1', '"q": ', ': [', ': {', 'é'],
    );
    const end = fc.constantFrom('', '}', ']', '}]', ']}', '\nz: y');
    fc.assert(
      fc.property(begin, fc.array(piece, { maxLength: 9 }), end, (first, pieces, last) => {
        agrees(first + pieces.join('') + last);
      }),
      { numRuns: 5000 },
    );
  });

  it('supports rule files in their usual form', () => {
    const plain = `# Limits of the shop.
---
domain: shop # the domain

descriptors:
  - key: user
    value: "anna"
    rate_limit:
      unit: minute
      requests_per_unit: 10
      replaces:
      - name: it's-me

  # Nested.
  -   key: path
      value: /a:b/c#d
      metadata:
        plan:
        owner: 'team: a'
      descriptors:
        - key: deep
          rate_limit: {unit: day, requests_per_unit: 5, replaces: [{name: a b}, {name: "c"}]} # short
          metadata: {}
          descriptors:
          - key: deeper
            shadow_mode: yes
`;
    expect(agrees(plain)).toBe(true);
    expect(agrees(plain.replaceAll('\n', '\r\n'))).toBe(true);
  });

  it('supports every configuration of ordinary texts that is printed in block style', () => {
    const ordinary = fc.stringMatching(/^[a-z][a-z0-9_.-]{4,8}[a-z]$/);
    const config = configurations(ordinary, ordinary).filter(({ descriptors }) => descriptors.length > 0);
    fc.assert(
      fc.property(config, (ordinaryConfig) => {
        expect(agrees(stringify(written(ordinaryConfig), { version: '1.1', aliasDuplicateObjects: false }))).toBe(true);
      }),
      { numRuns: 100 },
    );
  });
});
