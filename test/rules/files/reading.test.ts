import type { Problem } from '../../../src/rules/files/problems/problem';
import type * as Reading from '../../../src/rules/files/read-rule-files';
import { type ReadResult, readRuleFiles } from '../../../src/rules/files/read-rule-files';
import type { RuleConfig } from '../../../src/rules/rule-config';
import { buildRuleset } from '../../../src/rules/ruleset';
import { unitByName } from '../../../src/rules/unit';
import { domainConfig, limit, ruleConfig, unlimited, withoutPlaces } from '../../support/data/rules';

/** Reads files named a.yaml, b.yaml and so on. */
function readWith(mergeDomainConfigs: boolean, texts: readonly string[]): ReadResult {
  const files = texts.map((text, index) => {
    return { path: `${'abcdefgh'[index]}.yaml`, content: new TextEncoder().encode(text) };
  });
  const { configs, errors, warnings } = readRuleFiles(files, { mergeDomainConfigs });
  return { configs: withoutPlaces(configs), errors, warnings };
}
function read(...texts: readonly string[]) {
  return readWith(false, texts);
}

/** The rules of the only domain of a text that has no errors. */
function rulesOf(text: string): readonly RuleConfig[] {
  const { configs, errors } = read(text);
  expect(errors).toEqual([]);
  return configs[0]?.descriptors ?? [];
}
function ruleWith(field: string) {
  return rulesOf(`domain: d\ndescriptors:\n- key: k\n  ${field}\n`)[0];
}
function codes(problems: readonly Problem[]) {
  return problems.map(({ code }) => code);
}
/** The codes of the errors, and of the warnings, of one rule. */
function codesOf(...fields: readonly string[]) {
  const text = fields.map((field) => `  ${field}\n`).join('');
  const { errors, warnings } = read(`domain: d\ndescriptors:\n- key: k\n${text}`);
  return [codes(errors), codes(warnings)];
}

const PLAIN = 'domain: d\ndescriptors:\n- key: k\n';

describe('a rule file', () => {
  it('is read as a domain and its rules in plain data', () => {
    const text = `
# Limits of the shop.
domain: shop
descriptors:
  - key: user
    value: anna
    rate_limit:
      unit: minute
      requests_per_unit: 10
      replaces:
        - name: per-address
    quota_mode: true
    metadata:
      plan: gold
  - key: path
    value: "/img/*"
    share_threshold: true
    descriptors:
      - key: user
        rate_limit: {unlimited: true}
`;
    const rateLimit = limit(10, 'MINUTE', { replaces: ['per-address'] });
    const user = { key: 'user', value: 'anna', rateLimit, quotaMode: true, metadata: { plan: 'gold' } };
    const descriptors = [{ key: 'user', rateLimit: unlimited() }];
    const path = { key: 'path', value: '/img/*', shareThreshold: true, descriptors };
    expect(read(text)).toMatchObject({ configs: [domainConfig('shop', user, path)], errors: [] });
  });

  const EMPTY = ['', ' \n\n  \n', '# one\n  # two\n', '---\n', '# one\n---\n# two\n...\n', '\ufeff'];
  it.each(EMPTY)('is rejected when it has only %j', (text) => {
    const { errors } = read(text, 'domain: d\ndescriptors: [{key: k}]');
    const message = 'config file cannot have empty domain';
    expect(errors).toMatchObject([{ file: 'a.yaml', line: 1, column: 1, code: 'empty-domain', message }]);
  });

  it('is rejected for an error in its first character, and when its first document is empty, with a warning about others', () => {
    expect(['@', '"a'].map((text) => codes(read(text).errors))).toEqual([['yaml-syntax'], ['yaml-syntax']]);
    const { errors, warnings } = read('---\n---\ndomain: d\ndescriptors: [{key: k}]\n');
    expect([codes(errors), codes(warnings)]).toEqual([['empty-domain'], ['second-document']]);
  });

  it.each([
    ['a byte order mark', `\ufeff${PLAIN}`],
    ['CRLF line breaks whose last LF is missing', PLAIN.replaceAll('\n', '\r\n').slice(0, -1)],
    ...['\r\n', '\r', '\u0085', '\u2028', '\u2029'].map((lineBreak) => {
      return [`the line breaks ${JSON.stringify(lineBreak)}`, PLAIN.replaceAll('\n', lineBreak)];
    }),
    ['the domain after the descriptors', 'descriptors:\n- key: k\ndomain: d\n'],
    ['a document marker first', `# rules\n---\n${PLAIN}`],
    ['an empty second document', `${PLAIN}---\n# nothing\n`],
    ['a comment directly after a quoted value', 'domain: "d"# comment\ndescriptors:\n- key: \'k\'#\n'],
    ['a comment directly after a brace or bracket', 'domain: d\ndescriptors: [# one\n  {key: k}# two\n  ]# three\n'],
    ['a %YAML 1.1 line', `%YAML 1.1\n---\n${PLAIN}`],
  ])('may have %s', (_, text) => {
    expect(read(text)).toEqual({ configs: [domainConfig('d', { key: 'k' })], errors: [], warnings: [] });
  });

  it('in plain YAML is read without loading the YAML library, which takes 9 MB of memory', () => {
    const load = jest.fn(() => jest.requireActual<object>('yaml'));
    jest.isolateModules(() => {
      jest.doMock('yaml', load);
      const { readRuleFiles: readAlone } = require('../../../src/rules/files/read-rule-files') as typeof Reading;
      function readText(text: string) {
        return readAlone([{ path: 'a.yaml', content: new TextEncoder().encode(text) }], { mergeDomainConfigs: false });
      }
      expect([readText(PLAIN).errors, load.mock.calls.length]).toEqual([[], 0]);
      expect([readText(`${PLAIN}  value: |-\n    v\n`).errors, load.mock.calls.length]).toEqual([[], 1]);
    });
    jest.dontMock('yaml');
  });

  it.each([
    ['little', [0xff, 0xfe, 0x64, 0x00]],
    ['big', [0xfe, 0xff, 0x00, 0x64]],
  ])('is rejected in UTF-16, %s endian, with an error that says so', (_, bytes) => {
    const file = { path: 'a.yaml', content: Uint8Array.from(bytes) };
    const { errors } = readRuleFiles([file], { mergeDomainConfigs: false });
    const message = 'error loading config file: the file is UTF-16';
    expect(errors).toMatchObject([{ code: 'invalid-utf8', line: 1, column: 1, message }]);
  });

  it.each([
    [[0x61, 0x0a, 0x62, 0xff], 3, '2:2'],
    [[0xef, 0xbb, 0xbf, 0x61, 0xe9, 0x62], 4, '1:2'],
    [[0xc3, 0xa9, 0xef, 0xbf], 2, '1:2'],
    [[0xef, 0xbf, 0xbd, 0xef, 0xbf, 0x61], 3, '1:2'],
    [[0xf0, 0x9f, 0x98, 0x80, 0xed, 0xa0, 0x80], 4, '1:2'],
  ])('that is no UTF-8, %j, has the position of its first wrong byte: %i', (bytes, position, place) => {
    const file = { path: 'a.yaml', content: Uint8Array.from(bytes) };
    const [error] = readRuleFiles([file], { mergeDomainConfigs: false }).errors;
    const byte = bytes[position]?.toString(16);
    expect(error?.message).toMatch(new RegExp(`: unexpected byte 0x${byte} at position ${position}$`));
    expect(`${error?.line}:${error?.column}`).toBe(place);
  });

  it.each(['\r', '\u0085', '\u2028', '\u2029'])('has problems on the lines that %j begins', (lineBreak) => {
    const { errors } = read(['# one', 'domain: d', 'descriptors:', '- key: k', '  vale: v'].join(lineBreak));
    expect(errors.map(({ line, column, sourceLine }) => [line, column, sourceLine])).toEqual([[5, 3, '  vale: v']]);
  });

  it('may be nested as deep as 200 levels, and is rejected once when it is deeper', () => {
    function nested(open: string, close: string, levels: number) {
      const value = `${open.repeat(levels - 4)}1${close.repeat(levels - 4)}`;
      return codes(read(`domain: d\ndescriptors: [{key: k, metadata: {a: ${value}}}]`).errors);
    }
    for (const [open, close] of Object.entries({ '[': ']', '{a: ': '}' }))
      expect([nested(open, close, 200), nested(open, close, 201)]).toEqual([[], ['nested-too-deeply']]);
    const blocks = Array.from({ length: 1000 }, (_, depth) => `${' '.repeat(depth)}descriptors:\n`).join('');
    for (const text of ['['.repeat(10_000), '{'.repeat(10_000), '- '.repeat(10_000), blocks]) {
      expect(codes(read(text).errors)).toEqual(['nested-too-deeply']);
    }
  });
});

describe('a text field', () => {
  const TEXTS = '010 yes On 1_000 0x1F 1.50 .inf 2001-01-01 1:30 = -1 http://example.com/#top';
  it.each(TEXTS.split(' '))('keeps the source text: value: %s', (written) => {
    expect(ruleWith(`value: ${written}`)).toEqual(ruleConfig({ key: 'k', value: written }));
  });

  it.each([
    ['two words  # and a comment', 'two words'],
    ["'it''s'", "it's"],
    ['"a\\\\"', 'a\\'],
    ['"tab\\tand \\u00e9"', 'tab\tand é'],
    ['"\\L\\r"', '\u2028\r'],
    ['"null"', 'null'],
    ['!!str 010', '010'],
    ['! 010', '010'],
    ['|-\n    one\n    two', 'one\ntwo'],
    ['one\n    two', 'one two'],
    ['one\r    two', 'one two'],
    ["'one\u2029two' # it's\u2029", 'one\u2029two'],
    ["it's\u2028    'two'", "it's 'two'"],
    ['|-\n    "one\u2028    two"', '"one\ntwo"'],
  ])('value: %j is %j', (written, expected) => {
    expect(ruleWith(`value: ${written}`)).toEqual(ruleConfig({ key: 'k', value: expected }));
  });

  it.each(['', '~', 'null', 'Null', 'NULL', '""', "''", '!!null ~'])(
    'value: %s is absent, with a warning only if nothing is written',
    (written) => {
      expect(codesOf(`value: ${written}`)).toEqual([[], written === '' ? ['empty-field'] : []]);
      expect(ruleWith(`value: ${written}`)).toEqual(ruleConfig({ key: 'k' }));
    },
  );
});

describe('a boolean field', () => {
  it.each('true True TRUE yes Yes YES on On ON y Y'.split(' ').concat('!!bool "true"'))('%s is true', (written) => {
    expect(ruleWith(`share_threshold: ${written}\n  value: "*"`)?.options.shareThreshold).toBe(true);
  });
  it.each('false False FALSE no No NO off Off OFF n N ~ '.split(' '))('%s is false', (written) => {
    expect(ruleWith(`share_threshold: ${written}`)?.options.shareThreshold).toBe(false);
  });
  it.each('"true" \'yes\' 1 0 tRUE ja [] {}'.split(' '))('rejects %s', (written) => {
    expect(codesOf(`shadow_mode: ${written}`)[0]).toEqual(['wrong-type']);
  });
});

describe('requests_per_unit', () => {
  function limited(written: string) {
    return `rate_limit: {unit: day, requests_per_unit: ${written}}`;
  }

  const numbers = { 0: 0, '-0': 0, '+5': 5, '1_000': 1000, '0x10': 16, '0b101': 5, '0o17': 15, '!!int "7"': 7 };
  it.each(Object.entries({ ...numbers, 1000000000000000: 1e15 }))('%s is %i', (written, expected) => {
    expect(codesOf('value: v', limited(written))).toEqual([[], []]);
    expect(Object.is(ruleWith(limited(written))?.limits[0]?.requestsPerUnit, expected)).toBe(true);
  });

  const octal = { '010': 8, '0_17': 15, '+010': 8 };
  it.each(Object.entries(octal))('%s is octal: %i, with a warning', (written, expected) => {
    expect(codesOf(limited(written))[1]).toEqual(['octal-number']);
    expect(ruleWith(limited(written))?.limits[0]?.requestsPerUnit).toBe(expected);
  });

  const wrong = '-1 1000000000000001 99999999999999999999 1.5 1.0 1e3 08 "10" \'10\' ten yes 1:30 .inf .nan';
  it.each([
    ...[...wrong.split(' '), '!!str 10', '10 000'].map((written) => ['invalid-requests-per-unit', written]),
    ...['', '~', 'null'].map((written) => ['missing-requests-per-unit', written]),
    ...['[10]', '{a: 10}'].map((written) => ['wrong-type', written]),
  ])('is rejected as %s: %s', (code, written) => {
    expect(codesOf(limited(written))[0]).toEqual([code]);
  });
});

describe('a unit', () => {
  it.each([
    ...Object.entries({ second: 1, Minute: 60, HOUR: 3600, day: 86_400, '"day"': 86_400 }),
    ...Object.entries({ week: 604_800, month: 30 * 86_400, year: 365 * 86_400 }),
  ])('may be %s, which is %i s', (written, seconds) => {
    const rule = ruleWith(`rate_limit: {unit: ${written}, requests_per_unit: 1}`);
    expect(rule?.limits[0]?.unit).toBe(written.replaceAll('"', '').toUpperCase());
    expect(unitByName(rule?.limits[0]?.unit ?? '')?.seconds).toBe(seconds);
  });
  it.each(['seconds', 'fortnight', 'unknown', '""', '~', '1', '"day "'])('is not %s', (written) => {
    expect(codesOf(`rate_limit: {unit: ${written}, requests_per_unit: 1}`)[0]).toEqual(['invalid-unit']);
  });
});

describe('metadata', () => {
  it('is any mapping, whose values have their YAML 1.1 types, with merges and a key named __proto__', () => {
    const metadata = `
      text: gold
      quoted: "5"
      number: 5
      fraction: 1.5
      octal: 010
      flag: yes
      nothing: ~
      list: [1, two, {three: 3}]
      deep: {er: {still: true}}
      5: a number as key
      base: &b {x: 1, z: 2}
      over: {<<: *b, z: 3}
      __proto__: {polluted: true}`;
    const read5 = ruleWith(`rate_limit: {unit: day, requests_per_unit: 1}\n  metadata:${metadata}`)?.metadata;
    expect(Object.entries(read5 ?? {})).toEqual([
      ['5', 'a number as key'],
      ...Object.entries({ text: 'gold', quoted: '5', number: 5, fraction: 1.5, octal: 8, flag: true, nothing: null }),
      ...Object.entries({ list: [1, 'two', { three: 3 }], deep: { er: { still: true } } }),
      ...Object.entries({ base: { x: 1, z: 2 }, over: { x: 1, z: 3 } }),
      ['__proto__', { polluted: true }],
    ]);
  });

  const keys = 'yes y 0x10 1.50 1e6 .inf 1:30 9007199254740993 18446744073709551616';
  it.each(keys.split(' '))('has a key at the top level as its source text: %s', (written) => {
    const metadata = ruleWith(`metadata: {${written}: 1, ~: 2, "~": 3}`)?.metadata;
    expect(Object.keys(metadata ?? {})).toEqual([written, '', '~']);
  });

  // As printed by the Go service, which converts the values of nested keys to text.
  const words = { yes: 'true', '!!bool "no"': 'false', '"yes"': 'yes', '~': '<nil>', '1:30': '1:30' };
  const integers = { '0x10': '16', '010': '8', '1_0': '10', '-9223372036854775808': '-9223372036854775808' };
  const large = { '18446744073709551615': '18446744073709551615', '18446744073709551616': '1.8446744073709552e+19' };
  const fractions = { '1.50': '1.5', '100000.0': '100000', '1e6': '1e+06', '0.0001': '0.0001', '0.00001': '1e-05' };
  const special = { '-0.0': '-0', '-.inf': '-Inf', '.inf': '+Inf', '.nan': 'NaN' };
  it.each(Object.entries({ ...words, ...integers, ...large, ...fractions, ...special }))(
    'has a key within another value as the text of its value: %s is %j',
    (written, expected) => {
      const metadata = ruleWith(`metadata: {in: {${written}: 1}, list: [{${written}: 2}]}`)?.metadata;
      expect(metadata).toEqual({ in: { [expected]: 1 }, list: [{ [expected]: 2 }] });
    },
  );

  // After a merge, before one, by two of them, by a repeated key, and with an empty one in between.
  it.each([
    ['<<: *base, metadata: {tier: 2, deep: {two: 2}}', { team: 'x', deep: { two: 2 }, tier: 2 }],
    ['metadata: {own: 0, tier: 2}, <<: *base', { own: 0, team: 'x', deep: { one: 1 }, tier: 1 }],
    ['<<: [{metadata: {tier: 3}}, *base]', { team: 'x', deep: { one: 1 }, tier: 3 }],
    ['metadata: {team: x, tier: 1}, metadata: {tier: 2}', { team: 'x', tier: 2 }],
    ['metadata: {team: x}, metadata: ~, metadata: {tier: 2}', { tier: 2 }],
  ])('that is assigned twice, by %s, is extended as in the Go service', (fields, expected) => {
    const base = '&base {key: a, metadata: {team: x, deep: {one: 1}, tier: 1}}';
    expect(rulesOf(`domain: d\ndescriptors: [${base}, {${fields}, key: b}]`)[1]?.metadata).toEqual(expected);
  });
});

describe('anchors and merges', () => {
  const A = 'key: a, rate_limit: &l {unit: day, requests_per_unit: 1, name: n}';
  const [rateLimit, five] = [1, 5].map((requests) => limit(requests, 'DAY', { name: 'n' }));
  const TWO = '&x {key: x, value: x}, &y {key: y, value: y, shadow_mode: true}';

  it.each<[what: string, rules: string, expected: Partial<Parameters<typeof ruleConfig>[0]>]>([
    ['reuse parts of a rule', `{${A}}, {key: b, rate_limit: *l}`, { rateLimit }],
    ['let keys after a merge override it', `&b {value: x, ${A}}, {<<: *b, key: b}`, { value: 'x', rateLimit }],
    ['let a merge override keys above it', '&b {key: b, value: x}, {key: c, <<: *b, value: z}', { value: 'z' }],
    ['extend a limit', `&b {${A}}, {<<: *b, key: b, rate_limit: {requests_per_unit: 5}}`, { rateLimit: five }],
    ['remove a merged rate_limit by an empty one', `&b {${A}}, {<<: *b, key: b, rate_limit: ~}`, {}],
    ['use the first of several first', `${TWO}, {<<: [*x, *y], key: b}`, { value: 'x', shadowMode: true }],
    ['use the last anchor of a name', '{key: &n a, value: &n b}, {key: *n, value: *n}', { value: 'b' }],
  ])('%s', (_, rules, expected) => {
    expect(rulesOf(`domain: d\ndescriptors: [${rules}]`).at(-1)).toEqual(ruleConfig({ key: 'b', ...expected }));
  });

  it('do not include a quoted <<, and have no warning about the precedence in a list', () => {
    expect(codesOf('"<<": 1')[0]).toEqual(['unknown-key']);
    const text = 'domain: d\ndescriptors: [&a {key: a, value: x}, &b {key: a, value: y}, {<<: [*a, *b], key: c}]';
    expect(read(text).warnings).toEqual([]);
  });

  it('have a repeated key with its last value, where a second rate_limit extends the first', () => {
    const repeated = 'rate_limit: {unit: day, requests_per_unit: 1}, rate_limit: {requests_per_unit: 2}';
    const rules = `descriptors: [{key: x}]\ndescriptors: [{key: k, value: a, value: b, ${repeated}}]`;
    const { configs, warnings } = read(`domain: c\ndomain: d\n${rules}`);
    expect(configs).toEqual([domainConfig('d', { key: 'k', value: 'b', rateLimit: limit(2, 'DAY') })]);
    expect(codes(warnings)).toEqual(['repeated-key', 'repeated-key', 'repeated-key', 'repeated-key']);
  });
});

describe('files of one domain', () => {
  const texts = ['d [{key: a}, {key: b, value: x}]', 'e [{key: a}]', 'd [{key: b}, {key: a, value: x}]'];
  const files = texts.map((text) => `domain: ${text.replace(' ', '\ndescriptors: ')}`);

  it('are joined in the order of the files when mergeDomainConfigs is set, but not rules of the same key and value', () => {
    const [first, last] = [
      [{ key: 'a' }, { key: 'b', value: 'x' }],
      [{ key: 'b' }, { key: 'a', value: 'x' }],
    ].map((rules) => domainConfig('d', ...rules));
    const { configs, errors: none } = readWith(true, files);
    expect([configs, none]).toEqual([[first, domainConfig('e', { key: 'a' }), last], []]);
    const rules = [...(buildRuleset(configs).domains.get('d')?.rules() ?? [])];
    expect(rules.map(({ key, value }) => `${key}=${value}`)).toEqual(['a=x', 'a=', 'b=x', 'b=']);
    const { errors } = readWith(true, [files[0]!, 'domain: d\ndescriptors: [{key: a, descriptors: [{key: n}]}]']);
    expect(errors.map(({ code, file }) => [code, file])).toEqual([['duplicate-descriptor', 'b.yaml']]);
  });

  it('have duplicates by key and value, not by their joined text; these are reported with the whole path', () => {
    const joined = '{key: a_b, value: c}, {key: a, value: b_c}, {key: a}, {key: a, value: bc}';
    expect(rulesOf(`domain: d\ndescriptors: [${joined}]`)).toHaveLength(4);
    const same = '{key: b}, {key: b, value: ""}';
    const { errors } = read(`domain: d\ndescriptors: [{key: a, value: x, descriptors: [${same}]}]`);
    expect(errors.map(({ message }) => message)).toEqual(["duplicate descriptor composite key 'd.a_x.b'"]);
  });
});

describe('every error', () => {
  it('of every file is reported in one run, in reading order', () => {
    const broken = `
domain: d
descriptors:
  - key: a
    rate_limit: {unit: minutes, requests_per_unit: -1, name: n, replaces: [{name: n}, {}]}
    value: [x]
  - keys: b
    shadow_mode: maybe
  - c
`;
    const { errors } = read(broken, '- not: a mapping', 'descriptors: [{key: a}]');
    expect(errors.map(({ file, line, column, code }) => `${file}:${line}:${column} ${code}`)).toEqual([
      'a.yaml:5:24 invalid-unit',
      'a.yaml:5:52 invalid-requests-per-unit',
      'a.yaml:5:83 replaces-itself',
      'a.yaml:5:87 empty-replaces',
      'a.yaml:6:12 wrong-type',
      'a.yaml:7:5 unknown-key',
      'a.yaml:7:5 empty-key',
      'a.yaml:8:18 wrong-type',
      'a.yaml:9:5 list-item-not-a-mapping',
      'b.yaml:1:1 not-a-mapping',
      'c.yaml:1:1 empty-domain',
    ]);
  });

  const MINUT = 'rate_limit: {unit: minut, requests_per_unit: 1}';
  const [TYPE, MISSING] = ['wrong-type', 'missing-requests-per-unit'];
  it.each([
    ['a mapping for descriptors', `{key: k, ${MINUT}}`, `${TYPE} invalid-unit`],
    [
      'a list for a limit',
      '[{key: k, rate_limit: [{unit: x, nme: x}, 1]}]',
      `${TYPE} ${MISSING} invalid-unit unknown-key`,
    ],
    ['a list for a descriptor', '[[{key: k, shadow_mode: 1}]]', `list-item-not-a-mapping ${TYPE}`],
    ['a list for a key', '[{key: [k], share_threshold: true}]', `${TYPE} share-threshold-without-wildcard`],
    [
      'aliases, once for all,',
      '[{key: a, descriptors: &n [{kex: b}]}, {key: b, descriptors: *n}]',
      'empty-key unknown-key',
    ],
    ['the wrong type of a value', '[{key: k}, {key: k, value: [v]}]', TYPE],
    ['that of a shared value', '[{key: k, value: [v], share_threshold: true}]', TYPE],
    ['that of `unlimited`', '[{key: k, rate_limit: {unlimited: "yes"}}]', TYPE],
    ['that of a limit', '[{key: k, shadow_mode: true, detailed_metric: true, rate_limit: 5}]', TYPE],
  ])('that does not only follow from %s is reported', (_, rules, expected) => {
    const { errors, warnings } = read(`domain: d\ndescriptors: ${rules}`);
    expect([codes(errors).toSorted(), warnings]).toEqual([expected.split(' ').toSorted(), []]);
  });

  it.each([
    ['a list of domains', '- domain: d\n  descriptors: [{key: k, shadow_mode: 1}]', `not-a-mapping ${TYPE}`],
    ['a list of descriptors', `- {key: k, ${MINUT}}`, 'not-a-mapping invalid-unit'],
    ['a list for the domain', 'domain: [d]\ndescriptors: [{kex: k}]', `${TYPE} unknown-key empty-key`],
  ])('in %s is reported', (_, text, expected) => {
    expect(codes(read(text).errors).toSorted()).toEqual(expected.split(' ').toSorted());
  });

  it('suppresses the warnings about several rules, which may be wrong for incomplete rules of their domain', () => {
    const reach = '{key: a, value: "*"}, {key: a}';
    const own = read(`domain: d\ndescriptors: [${reach}, {kex: b}]`);
    expect([codes(own.errors), codes(own.warnings)]).toEqual([['empty-key', 'unknown-key'], []]);
    const texts = ['domain: d\ndescriptors: [{kex: b}]', `domain: e\ndescriptors: [${reach}]`];
    expect(codes(read(...texts).warnings)).toEqual(['unreachable-rule']);
    // When domains are merged, rules of any may be missing.
    expect(readWith(true, ['domain: [', texts[1]!]).warnings).toEqual([]);
  });
});
