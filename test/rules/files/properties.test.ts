import { readFileSync } from 'node:fs';
import { stringify, type ToStringOptions } from 'yaml';
import { formatProblem, summarizeProblem } from '../../../src/rules/files/problems/problem';
import { ProblemReport, SourceText } from '../../../src/rules/files/problems/source-text';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import { parseYaml } from '../../../src/rules/files/yaml/parse-yaml';
import type { YamlNode } from '../../../src/rules/files/yaml/yaml-tree';
import { parsePlainYaml } from '../../../src/rules/files/yaml/plain-yaml';
import { CALENDAR_UNITS } from '../../../src/rules/calendar';
import type { DomainConfig, JsonObject } from '../../../src/rules/rule-config';
import { valueText } from '../../../src/rules/values';
import { UNIT_NAMES, type UnitName } from '../../../src/rules/unit';
import fc from '../../support/data/properties';
import { type RuleSketch, domainConfig } from '../../support/data/rules';
import { fixtures } from './fixtures';
import { written } from './written-rules';

const UNITS = UNIT_NAMES.filter((name): name is UnitName => name !== 'UNKNOWN');
const word = fc.string({ maxLength: 5, unit: fc.constantFrom('a', 'b', '*', 'é', '😀', '"', '\n') });
const someKey = fc.constantFrom('a', 'b', '__proto__');

const rateLimit = fc.record({
  unit: fc.option(fc.constantFrom(...UNITS), { nil: undefined }),
  unitMultiplier: fc.constantFrom(1, 2, 10),
  calendar: fc.option(fc.record({ timeZone: fc.constantFrom('UTC', 'Asia/Kolkata'), startsOn: fc.constant(1) }), {
    nil: undefined,
  }),
  requestsPerUnit: fc.integer({ min: 0, max: 4_294_967_295 }),
  algorithm: fc.constantFrom(undefined, 'token_bucket' as const, 'sliding_window' as const),
  burst: fc.constantFrom(undefined, 1, 4_294_967_295),
  postpaid: fc.boolean(),
  lease: fc.constantFrom(undefined, true, false),
  unlimited: fc.boolean(),
  name: word,
  replaces: fc.array(word, { maxLength: 3 }),
});
const metadata = fc
  .dictionary(word, fc.oneof(fc.boolean(), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), word))
  .map((members) => JSON.parse(JSON.stringify(members)) as JsonObject);

const values = fc.oneof(
  { weight: 5, arbitrary: fc.record({ value: word }) },
  fc.record({ value: fc.constant(''), valueIn: fc.constantFrom(['l'], ['yes', '010', 'm: "'], ['~', '*n']) }),
  fc.record({ value: fc.constant(''), valueCidr: fc.constantFrom('10.0.0.0/8', '2001:db8::/32', '0.0.0.0/0') }),
  fc.record({ value: fc.constant(''), valueRegex: fc.constantFrom('^a', '[0-9]+$', ' # "x"', '\\\\n') }),
);

interface ArbitraryRule extends RuleSketch {
  readonly value: string;
  readonly descriptors: readonly ArbitraryRule[];
}

/** Rules of one level, without two of the same key and value, with all that rules can have. */
const arbitraryRules: fc.Arbitrary<readonly ArbitraryRule[]> = fc.letrec<{ rules: readonly ArbitraryRule[] }>(
  (tie) => ({
    rules: fc.uniqueArray(
      fc
        .record({
          key: someKey,
          values,
          rateLimit: fc.option(rateLimit, { nil: undefined }),
          shadowMode: fc.boolean(),
          quotaMode: fc.boolean(),
          detailedMetric: fc.boolean(),
          valueToMetric: fc.boolean(),
          shareThreshold: fc.boolean(),
          addressPrefix: fc.constantFrom(undefined, { ipv4: 32, ipv6: 64 }, { ipv4: 1, ipv6: 128 }),
          metadata: fc.option(metadata, { nil: undefined }),
          descriptors: fc.oneof({ depthSize: 'xsmall', withCrossShrink: true }, fc.constant([]), tie('rules')),
        })
        .map(({ values: matched, ...rest }) => ({ ...rest, ...matched })),
      { maxLength: 12, selector: (rule) => `${rule.key}\u0000${valueText(rule)}` },
    ),
  }),
).rules;

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

/** A configuration that a rule file can have. */
function valid(descriptors: readonly ArbitraryRule[]): DomainConfig {
  return domainConfig('d', ...descriptors.slice(0, 3).map(validRule));
}

function validRule({ rateLimit: limit, ...rule }: ArbitraryRule): RuleSketch {
  const unit = limit?.unlimited ? undefined : (limit?.unit ?? 'DAY');
  const calendar = CALENDAR_UNITS.some((each) => each === unit) ? limit?.calendar : undefined;
  const unitMultiplier = limit?.unlimited || calendar ? 1 : (limit?.unitMultiplier ?? 1);
  const requestsPerUnit = limit?.unlimited ? 0 : (limit?.requestsPerUnit ?? 0);
  const replaces = limit?.replaces.filter((name) => name !== '' && name !== limit.name) ?? [];
  const algorithm = limit?.unlimited || calendar ? undefined : limit?.algorithm;
  // A bucket of 1 that has a token every 100 years or more often.
  const burst = algorithm === 'token_bucket' && requestsPerUnit > 0 && limit?.burst === 1 ? 1 : undefined;
  const isOneValue = rule.value !== '' && !rule.value.includes('*');
  const shareThreshold = rule.shareThreshold === true && valueText(rule) !== '' && !isOneValue;
  const isPrefixed = !isOneValue && !shareThreshold && rule.valueCidr === undefined;
  const postpaid = !limit?.unlimited && limit?.postpaid === true;
  const lease = limit?.unlimited || (postpaid && limit?.lease) ? undefined : limit?.lease;
  return {
    ...rule,
    rateLimit: limit && {
      ...{ ...limit, unit, unitMultiplier, calendar, requestsPerUnit },
      ...{ algorithm, burst, postpaid, lease, replaces },
    },
    shareThreshold,
    addressPrefix: isPrefixed ? rule.addressPrefix : undefined,
    descriptors: rule.descriptors.slice(0, 3).map(validRule),
  };
}

describe('reading rule files', () => {
  const domain = arbitraryRules.map(valid);

  it('returns every configuration that is printed as YAML, in any style, or as JSON', () => {
    const styles = fc.constantFrom<ToStringOptions>(
      ...[{}, { indentSeq: false }, { indent: 4 }, { collectionStyle: 'flow' as const }],
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
      { numRuns: 50 },
    );
  });

  const samples = fixtures
    .filter(({ isFolder, name }) => !isFolder && name !== 'too-many-aliases')
    .map(({ path }) => new Uint8Array(readFileSync(path)));

  it('finds the same errors in several files, in any order', () => {
    // Each file has its own domain, so that no file is a duplicate of another.
    const files = samples.map((content, index) => {
      const text = new TextDecoder().decode(content).replace('domain: shop', `domain: shop-${index}`);
      return { path: `${index}.yaml`, content: encode(text) };
    });
    const [expected, reversed] = [files, files.toReversed()].map((order) => {
      return readRuleFiles(order, { mergeDomainConfigs: false }).errors.map(formatProblem).toSorted();
    });
    expect(expected?.length).toBeGreaterThan(40);
    expect(reversed).toEqual(expected);
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
      { numRuns: 250 },
    );
  });
});

describe('the reader of plain YAML', () => {
  /** Compares the two readers; true if the plain reader supports the text. */
  function agrees(yaml: string): boolean {
    const plain = parsePlainYaml(yaml);
    if (plain === undefined) return false;
    const report = new ProblemReport();
    const source = new SourceText('a.yaml', yaml);
    const parsed = parseYaml(source, report.of(source));
    expect(report.finish(['a.yaml'])).toEqual({ errors: [], warnings: [] });
    expect(whole(plain)).toEqual(parsed);
    return true;
  }

  /** A tree with the entries that are read again. */
  function whole(node: YamlNode): YamlNode {
    if (node.kind === 'scalar') return node;
    const { offset, end } = node;
    if (node.kind === 'list') return { ...node, items: node.items.map(whole) };
    const entries = node.entries.map(({ key, value }) => ({ key: whole(key), value: whole(value) }));
    return { kind: 'map', entries, offset, end };
  }

  it('returns the same tree and ranges as the library, or nothing', () => {
    const scalars = 'key·a·key: value·"q"·\'q\'·"·x y·010·*·&a·[a]·{a: b}·|·~·é·http://x·a#b·-1·%·!t ·"a: b"·\'\'·<<: ';
    const marks = 'b: ·b:·- ·-·-  ·  ·    · ·k: ·d:\n·: ·? ·::·# c· # c·---·\n---\n·...·\t·\u2028·\u00a0';
    const breaks = '\n·\n·\n  ·\n    ·\n- ·\n  - ·\r\n·- key: v\n  w: x';
    const piece = pieces([scalars, marks, breaks].join('·'));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (all) => void agrees(all.join(''))),
      { numRuns: 2500 },
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
      { numRuns: 2500 },
    );
  });

  it('reads braces and brackets over several lines as the library does, or returns nothing', () => {
    const gap = pieces('· · ·\n·\n  ·\n    ·\t·\n\t·\r\n ·\n\n  · # c\n ');
    const scalar = pieces('a·"q"·1·-a·---·...·.5·x y·"\\n\\"\\/"·"\\u00e9"·"\\x41"·\'s\'·~·http://x·a:b·""·*a·|·"#"·é');
    const key = pieces('k·"k"·k ·"k" ·a b·---·"\\t"');
    function parts(all: readonly string[], gaps: readonly string[]) {
      return all.map((part, index) => `${gaps[2 * index]}${part}${gaps[2 * index + 1]}`).join(',');
    }
    const gaps = fc.array(gap, { minLength: 6, maxLength: 6 });
    const { value } = fc.letrec<{ value: string }>((tie) => {
      const list = fc.array(tie('value'), { maxLength: 3 });
      const map = fc.array(fc.tuple(key, pieces(': ·:·:\n'), tie('value')), { maxLength: 3 });
      return {
        value: fc.oneof(
          { depthSize: 'small', withCrossShrink: true },
          scalar,
          fc.tuple(list, gaps, gap).map(([items, between, last]) => `[${parts(items, between)}${last}]`),
          fc.tuple(map, gaps, gap).map(([entries, between, last]) => {
            const texts = entries.map((entry) => entry.join(''));
            return `{${parts(texts, between)}${last}}`;
          }),
        ),
      };
    });
    const begin = pieces('·k: ·d:\n- ·d:\n  - k: ·---\n· ');
    const end = pieces('·\n·\nz: y·\n---\n· x·}·,');
    let supported = 0;
    fc.assert(
      fc.property(begin, value, end, (first, all, last) => void (supported += Number(agrees(first + all + last)))),
      { numRuns: 1500 },
    );
    expect(supported).toBeGreaterThan(150);
  });

  it('supports JSON in any layout', () => {
    const layouts = fc.constantFrom(undefined, 1, 4, '\t');
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4, stringUnit: 'grapheme' }), layouts, (descriptors, layout) => {
        expect(agrees(JSON.stringify({ domain: 'd', descriptors }, undefined, layout))).toBe(true);
      }),
      { numRuns: 250 },
    );
  });

  const NO_YAML = ['a: 1\n- b', 'a:\n  b: 1\n - c', '- a\n b: 1\n- c', '{a: [b,\n---\n]}', '{a: [b,\n...\n]}'];
  it.each(NO_YAML)('leaves %j, which is no YAML, to the library', (yaml) => {
    expect(parsePlainYaml(yaml)).toBeUndefined();
  });

  it('supports items on one line, of which each is read again by itself', () => {
    const lines = `domain: shop
descriptors:
- { key: a, value: "1", rate_limit: { unit: day, requests_per_unit: 1 } }
-   key: b
    value_in: # two
    - x y

    - 'z'
- {key: c, value_in: [p, q]} # a comment
# another
- key: d
  descriptors:
    - { key: e }
    - f: 1
    -   - g
        - h: 2
other: 1
`;
    expect(agrees(lines)).toBe(true);
    expect(agrees(lines.slice(0, lines.indexOf('other')))).toBe(true);
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
      replaces:
      - name: it's-me
    metadata:

  -   key: path
      value: /a:b/c#d
      metadata:
        plan:
        owner: 'team: a'
      descriptors:
        - rate_limit: {requests_per_unit: 5, replaces: [{name: a b}, {name: "c"}]} # short
          metadata: {}
          shadow_mode: yes
`;
    expect(agrees(plain)).toBe(true);
    expect(agrees(plain.replaceAll('\n', '\r\n'))).toBe(true);
  });
});
