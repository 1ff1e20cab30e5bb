import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { stringify, type ToStringOptions } from 'yaml';
import { formatProblem, summarizeProblem } from '../../../src/rules/files/problems/format-problem';
import { ProblemReport } from '../../../src/rules/files/problems/problem-report';
import { SourceText } from '../../../src/rules/files/problems/source-text';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import { parseYaml } from '../../../src/rules/files/yaml/parse-yaml';
import { parsePlainYaml } from '../../../src/rules/files/yaml/plain-yaml';
import type { DomainConfig, Json, RateLimitConfig, RuleConfig } from '../../../src/rules/rule-config';
import type { UnitName } from '../../../src/rules/unit';
import { fixtures } from './fixtures';

/** Pieces of text, written next to each other with a separator that none of them has. */
function pieces(text: string): fc.Arbitrary<string> {
  return fc.constantFrom(...text.split('·'));
}
function encode(text: string) {
  return new TextEncoder().encode(text);
}
function read(content: Uint8Array | string) {
  const bytes = typeof content === 'string' ? encode(content) : content;
  return readRuleFiles([{ path: 'a.yaml', content: bytes }], { mergeDomainConfigs: false });
}

/** Configurations of one domain with these texts and metadata. */
function configurations(texts: fc.Arbitrary<string>, values: fc.Arbitrary<Json>): fc.Arbitrary<DomainConfig> {
  const optional = fc.oneof({ weight: 3, arbitrary: fc.constant('') }, texts);
  const units = fc.constantFrom<UnitName[]>('SECOND', 'MINUTE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR');
  const limit = {
    unit: units,
    requestsPerUnit: fc.integer({ min: 0, max: 4294967295 }),
    unlimited: fc.constant(false),
  };
  const free = { unit: fc.constant(undefined), requestsPerUnit: fc.constant(0), unlimited: fc.constant(true) };
  const names = { name: optional, replaces: fc.array(texts, { maxLength: 2 }) };
  const rateLimit: fc.Arbitrary<RateLimitConfig> = fc
    .oneof(fc.record({ ...limit, ...names }), fc.record({ ...free, ...names }))
    .map((block) => ({ ...block, replaces: block.replaces.filter((name) => name !== block.name) }));
  // The printer writes a key named << without quotes.
  const keys = texts.filter((key) => key !== '<<');
  const metadata = fc.dictionary(keys, values, { minKeys: 1, maxKeys: 3, noNullPrototype: true });
  const flag = fc.boolean();
  const { rules } = fc.letrec<{ rules: RuleConfig[]; rule: RuleConfig }>((tie) => ({
    rules: fc.uniqueArray(tie('rule'), {
      maxLength: 3,
      depthIdentifier: 'rules',
      selector: (rule) => `${rule.key.length} ${rule.key}${rule.value}`,
    }),
    rule: fc
      .record({
        ...{ key: texts, value: optional, rateLimit: fc.option(rateLimit, { nil: undefined }) },
        ...{ shadowMode: flag, quotaMode: flag, detailedMetric: flag, valueToMetric: flag, shareThreshold: flag },
        metadata: fc.option(metadata, { nil: undefined }),
        descriptors: fc.oneof({ depthIdentifier: 'rules', maxDepth: 3 }, fc.constant([]), tie('rules')),
      })
      .map((rule) => ({ ...rule, shareThreshold: rule.shareThreshold && rule.value.includes('*') })),
  }));
  return fc.record({ domain: texts, descriptors: rules });
}

/** A configuration in its usual written form: fields with default values are omitted. */
function written({ domain, descriptors }: DomainConfig): object {
  return { domain, descriptors: descriptors.map(writtenRule) };
}

function writtenRule({ rateLimit: limit, descriptors, metadata, key, value, ...flags }: RuleConfig): object {
  const requests = { unit: limit?.unit?.toLowerCase(), requests_per_unit: limit?.requestsPerUnit };
  const names = { name: limit?.name, replaces: limit?.replaces.map((name) => ({ name })) };
  return withoutDefaults({
    ...{ key, value, metadata },
    rate_limit: limit && { ...(limit.unlimited ? { unlimited: true } : requests), ...withoutDefaults(names) },
    ...Object.fromEntries(
      Object.entries(flags).map(([name, is]) => [
        name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        is,
      ]),
    ),
    descriptors: descriptors.map(writtenRule),
  });
}

function withoutDefaults(fields: object): object {
  function isDefault(value: unknown) {
    return value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0);
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isDefault(value)));
}

describe('reading rule files', () => {
  /** Texts that YAML could read as another type, and ordinary ones. */
  const text = fc.oneof(
    fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
      .filter((value) => !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\ufeff\ufffe\uffff]/u.test(value)),
    pieces('010·yes·null·~·<<·*·a*b·- x·k: v·# no· blank ·it\'s·"q"·1e3·日本·---·...'),
  );
  const json = fc
    .jsonValue({ maxDepth: 2 })
    .map((value) => JSON.parse(JSON.stringify(value).replaceAll('-0', '0')) as Json);
  const domain = configurations(text, json);

  it('returns every configuration that is printed as YAML, in any style, or as JSON', () => {
    const styles = fc.constantFrom<ToStringOptions>(
      {},
      { indentSeq: false },
      { indent: 4 },
      { collectionStyle: 'flow' },
      { defaultStringType: 'QUOTE_DOUBLE' },
      { defaultStringType: 'QUOTE_SINGLE', defaultKeyType: 'PLAIN' },
    );
    fc.assert(
      fc.property(domain, styles, (config, style) => {
        const printed = stringify(written(config), { version: '1.1', aliasDuplicateObjects: false, ...style });
        for (const form of [printed, JSON.stringify(written(config))]) {
          expect(read(form)).toMatchObject({ configs: [config], errors: [] });
        }
      }),
      { numRuns: 100 },
    );
  });

  const samples = fixtures
    .filter(({ isFolder, name }) => !isFolder && name !== 'too-many-aliases')
    .map(({ path }) => new Uint8Array(readFileSync(path)));

  it('finds the same errors in several files, in any order', () => {
    // Each file has its own domain, so that no file is a duplicate of another.
    const files = samples.map((content, index) => ({
      path: `${index}.yaml`,
      content: encode(new TextDecoder().decode(content).replace('domain: shop', `domain: shop-${index}`)),
    }));
    function found(order: typeof files) {
      return readRuleFiles(order, { mergeDomainConfigs: false }).errors.map(formatProblem).toSorted();
    }
    const expected = found(files);
    expect(expected.length).toBeGreaterThan(40);
    fc.assert(
      fc.property(fc.shuffledSubarray(files, { minLength: files.length }), (order) => {
        expect(found(order)).toEqual(expected);
      }),
      { numRuns: 3 },
    );
  });

  it('never throws for any bytes, and every problem can be printed', () => {
    const insert = pieces('\n·  ·- ·: ·*·&a ·[·}·"·|·#·---\n·<<: ·\t·!!x ·? ·%').map(encode);
    const mutation = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      cut: fc.nat(6),
      inserted: fc.oneof(fc.uint8Array({ maxLength: 3 }), insert),
    });
    const mutated = fc
      .tuple(fc.constantFrom(...samples), fc.array(mutation, { minLength: 1, maxLength: 4 }))
      .map(([sample, mutations]) =>
        mutations.reduce(
          (bytes, { at, cut, inserted }) => bytes.toSpliced(Math.floor(at * bytes.length), cut, ...inserted),
          [...sample],
        ),
      );
    fc.assert(
      fc.property(fc.oneof(mutated, fc.array(fc.nat(255), { maxLength: 60 })), (bytes) => {
        const { configs, errors, warnings } = read(Uint8Array.from(bytes));
        for (const problem of [...errors, ...warnings]) {
          expect(formatProblem(problem).length).toBeLessThan(2000);
          expect(summarizeProblem(problem)).not.toContain('\n');
          expect(problem.mark.start + problem.mark.length).toBeLessThanOrEqual(problem.sourceLine.length + 1);
        }
        if (errors.length === 0) expect(configs.length).toBeLessThanOrEqual(1);
      }),
      { numRuns: 500 },
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
    const scalars = 'key·a·key: value·"q"·\'q\'·"·x y·010·*·&a·[a]·{a: b}·|·~·é·http://x·a#b·-1·%·!t ·"a: b"·\'\'·<<: ';
    const marks = 'b: ·b:·- ·-·-  ·  ·    · ·k: ·d:\n·: ·? ·::·# c· # c·---·\n---\n·...·\t·\u2028·\u00a0';
    const breaks = '\n·\n·\n  ·\n    ·\n- ·\n  - ·\r\n·- key: v\n  w: x';
    const piece = pieces([scalars, marks, breaks].join('·'));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (all) => void agrees(all.join(''))),
      { numRuns: 5000 },
    );
  });

  it('reads braces and brackets as the library does, or returns nothing', () => {
    const begin = pieces('k: ·k: {·k: [·- a: {·d:\n- x: [·k: {a: ·k: [{a: b}, ');
    const marks =
      '{·}·[·]·a·b·: ·:·, ·,· ·-·#· #·"q"·\'q\'·x y·~·*·&a ·a: b·{k: v}·[1, 2]·http://x·\'·"·|·?·\n  ·010·-1';
    const piece = pieces(`${marks}·"q": ·: [·: {·é`);
    const end = fc.constantFrom('', '}', ']', '}]', ']}', '\nz: y');
    fc.assert(
      fc.property(begin, fc.array(piece, { maxLength: 9 }), end, (first, all, last) => {
        agrees(first + all.join('') + last);
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
      fc.property(config, (each) => {
        expect(agrees(stringify(written(each), { version: '1.1', aliasDuplicateObjects: false }))).toBe(true);
      }),
      { numRuns: 100 },
    );
  });
});
