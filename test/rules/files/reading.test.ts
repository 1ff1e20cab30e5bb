import type { Problem } from '../../../src/rules/files/problems/problem';
import { type ReadResult, readRuleFiles } from '../../../src/rules/files/read-rule-files';
import type { RuleConfig } from '../../../src/rules/rule-config';
import { domainConfig, limit, ruleConfig, unlimited } from '../../support/data/rules';

function read(...texts: readonly string[]) {
  return readWith(false, texts);
}
function readMerged(...texts: readonly string[]) {
  return readWith(true, texts);
}

/** Reads files named a.yaml, b.yaml and so on. */
function readWith(mergeDomainConfigs: boolean, texts: readonly string[]): Omit<ReadResult, 'placeOf'> {
  const files = texts.map((text, index) => ({
    path: `${String.fromCodePoint(0x61 + index)}.yaml`,
    content: new TextEncoder().encode(text),
  }));
  const { configs, errors, warnings } = readRuleFiles(files, { mergeDomainConfigs });
  return { configs, errors, warnings };
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
      name: per-user
      replaces:
        - name: per-address
    shadow_mode: true
    quota_mode: true
    metadata:
      plan: gold
  - key: path
    value: "/img/*"
    share_threshold: true
    value_to_metric: true
    descriptors:
      - key: user
        detailed_metric: true
        rate_limit: {unlimited: true}
  - key: remote_address
    rate_limit: {unit: hour, requests_per_unit: 5, name: per-address}
`;
    expect(read(text)).toEqual({
      configs: [
        domainConfig(
          'shop',
          {
            key: 'user',
            value: 'anna',
            rateLimit: limit(10, 'MINUTE', { name: 'per-user', replaces: ['per-address'] }),
            shadowMode: true,
            quotaMode: true,
            metadata: { plan: 'gold' },
          },
          {
            key: 'path',
            value: '/img/*',
            shareThreshold: true,
            valueToMetric: true,
            descriptors: [{ key: 'user', detailedMetric: true, rateLimit: unlimited() }],
          },
          { key: 'remote_address', rateLimit: limit(5, 'HOUR', { name: 'per-address' }) },
        ),
      ],
      errors: [],
      warnings: [],
    });
  });

  it.each([
    ['no bytes', ''],
    ['white space', ' \n\n  \n'],
    ['comments', '# one\n  # two\n'],
    ['a document marker', '---\n'],
    ['a marker and comments', '# one\n---\n# two\n...\n'],
    ['a byte order mark', '\ufeff'],
  ])('is rejected when it has only %s', (_, text) => {
    const { errors } = read(text, 'domain: d\ndescriptors: [{key: k}]');
    expect(errors).toEqual([
      expect.objectContaining({
        file: 'a.yaml',
        line: 1,
        column: 1,
        code: 'empty-domain',
        message: 'config file cannot have empty domain',
      }),
    ]);
  });

  it('is rejected when its first document is empty, with a warning about the second one', () => {
    const { errors, warnings } = read('---\n---\ndomain: d\ndescriptors: [{key: k}]\n');
    expect([codes(errors), codes(warnings)]).toEqual([['empty-domain'], ['second-document']]);
  });

  it.each([
    ['a byte order mark', '\ufeffdomain: d\ndescriptors: [{key: k}]\n'],
    ['CRLF line breaks', 'domain: d\r\ndescriptors:\r\n- key: k\r\n'],
    ['CRLF line breaks whose last LF is missing', 'domain: d\r\ndescriptors:\r\n- key: k\r'],
    ['CR line breaks', 'domain: d\rdescriptors:\r- key: k\r'],
    ['NEL line breaks', 'domain: d\u0085descriptors:\u0085- key: k\u0085'],
    ['line separators', 'domain: d\u2028descriptors:\u2028- key: k\u2028'],
    ['paragraph separators', 'domain: d\u2029descriptors:\u2029- key: k\u2029'],
    ['no line break at its end', 'domain: d\ndescriptors:\n- key: k'],
    ['lists with the indentation of their key', 'domain: d\ndescriptors:\n- key: k\n'],
    ['indented lists', 'domain: d\ndescriptors:\n    - key: k\n'],
    ['the domain after the descriptors', 'descriptors:\n- key: k\ndomain: d\n'],
    ['a document marker first', '# rules\n---\ndomain: d\ndescriptors:\n- key: k\n'],
    ['an empty second document', 'domain: d\ndescriptors:\n- key: k\n---\n# nothing\n'],
    ['a comment directly after a quoted value', 'domain: "d"# comment\ndescriptors:\n- key: \'k\'#\n'],
    ['a comment directly after a brace or bracket', 'domain: d\ndescriptors: [# one\n  {key: k}# two\n  ]# three\n'],
    ['JSON', '{"domain": "d", "descriptors": [{"key": "k"}]}'],
    ['a %YAML 1.1 line', '%YAML 1.1\n---\ndomain: d\ndescriptors: [{key: k}]\n'],
  ])('may have %s', (_, text) => {
    expect(read(text)).toEqual({ configs: [domainConfig('d', { key: 'k' })], errors: [], warnings: [] });
  });

  it.each([
    ['little-endian', [0xff, 0xfe], 0],
    ['big-endian', [0xfe, 0xff], 1],
  ])('may be %s UTF-16 with a byte order mark', (_, mark, low) => {
    const text = 'domain: dé\n';
    const content = new Uint8Array(mark.length + 2 * text.length);
    content.set(mark);
    for (let at = 0; at < text.length; at += 1) content[mark.length + 2 * at + low] = text.charCodeAt(at);
    const { configs, errors } = readRuleFiles([{ path: 'a.yaml', content }], { mergeDomainConfigs: false });
    expect({ configs, errors }).toEqual({ configs: [domainConfig('dé')], errors: [] });
  });
});

describe('a problem after line breaks of other kinds', () => {
  it.each(['\r', '\u0085', '\u2028', '\u2029'])('has the line that these breaks give it: %j', (lineBreak) => {
    const { errors } = read(['# one', 'domain: d', 'descriptors:', '- key: k', '  vale: v'].join(lineBreak));
    expect(errors.map(({ line, column, sourceLine }) => [line, column, sourceLine])).toEqual([[5, 3, '  vale: v']]);
  });
});

describe('a file that is nested too deeply', () => {
  it.each([
    ['lists that are never closed', '['.repeat(1_000_000)],
    ['mappings that are never closed', '{'.repeat(1_000_000)],
    ['lists in one line', '- '.repeat(100_000)],
    ['mappings in blocks', Array.from({ length: 5000 }, (_, depth) => `${' '.repeat(depth)}descriptors:\n`).join('')],
  ])('is reported once, however deep it is: %s', (_, text) => {
    expect(codes(read(text).errors)).toEqual(['nested-too-deeply']);
  });
});

describe('a text field', () => {
  it.each([
    ['010', '010'],
    ['yes', 'yes'],
    ['On', 'On'],
    ['1_000', '1_000'],
    ['0x1F', '0x1F'],
    ['1.50', '1.50'],
    ['.inf', '.inf'],
    ['2001-01-01', '2001-01-01'],
    ['1:30', '1:30'],
    ['=', '='],
    ['-1', '-1'],
    ['http://example.com/#top', 'http://example.com/#top'],
    ['two words  # and a comment', 'two words'],
    ['"quoted # text"', 'quoted # text'],
    ["'it''s'", "it's"],
    ['"tab\\tand \\u00e9"', 'tab\tand é'],
    ['"null"', 'null'],
    ['"~"', '~'],
    ['!!str 010', '010'],
    ['! 010', '010'],
    ['!!int 010', '010'],
    ['|-\n    one\n    two', 'one\ntwo'],
    ['>-\n    one\n    two', 'one two'],
    ['one\n    two', 'one two'],
    ['日本 *', '日本 *'],
    ['one\r    two', 'one two'],
    ['"one\u2028two"', 'one\u2028two'],
    ["'one\u2029two' # it's\u2029", 'one\u2029two'],
    ['one\u2028    two', 'one two'],
    ["it's\u2028    'two'", "it's 'two'"],
    ['|-\n    "one\u2028    two"', '"one\ntwo"'],
    ["'a'''", "a'"],
    ['"a\\\\"', 'a\\'],
    ['|-\n    one\u0085    two', 'one\ntwo'],
    ['"\\L\\r"', '\u2028\r'],
  ])('keeps the source text: value: %s is %j', (written, expected) => {
    expect(ruleWith(`value: ${written}`)).toEqual(ruleConfig({ key: 'k', value: expected }));
  });

  it.each(['', '~', 'null', 'Null', 'NULL', '""', "''", '!!null ~'])(
    'value: %s is read as absent, with a warning',
    (written) => {
      const { configs, errors, warnings } = read(`domain: d\ndescriptors:\n- key: k\n  value: ${written}\n`);
      expect({ configs, errors, warnings: codes(warnings) }).toEqual({
        configs: [domainConfig('d', { key: 'k' })],
        errors: [],
        warnings: ['empty-field'],
      });
    },
  );

  it('keeps the source text of a domain and a key', () => {
    expect(read('domain: 010\ndescriptors: [{key: yes}]').configs).toEqual([domainConfig('010', { key: 'yes' })]);
  });
});

describe('a boolean field', () => {
  it.each(['true', 'True', 'TRUE', 'yes', 'Yes', 'YES', 'on', 'On', 'ON', 'y', 'Y', '!!bool "true"'])(
    'reads %s as true',
    (written) => {
      expect(ruleWith(`share_threshold: ${written}\n  value: "*"`)?.shareThreshold).toBe(true);
    },
  );

  it.each(['false', 'False', 'FALSE', 'no', 'No', 'NO', 'off', 'Off', 'OFF', 'n', 'N', '~', ''])(
    'reads %s as false',
    (written) => {
      expect(ruleWith(`share_threshold: ${written}`)?.shareThreshold).toBe(false);
    },
  );

  it.each(['"true"', "'yes'", '1', '0', 'tRUE', 'ja', '[]', '{}'])('rejects %s', (written) => {
    expect(codes(read(`domain: d\ndescriptors: [{key: k, shadow_mode: ${written}}]`).errors)).toEqual(['wrong-type']);
  });
});

describe('requests_per_unit', () => {
  function fileWith(written: string) {
    return `domain: d\ndescriptors:\n- key: k\n  value: v\n  rate_limit:\n    unit: day\n    requests_per_unit: ${written}\n`;
  }

  it.each([
    ['0', 0],
    ['-0', 0],
    ['+5', 5],
    ['10', 10],
    ['1_000', 1000],
    ['0x10', 16],
    ['0X1f', 31],
    ['0b101', 5],
    ['0o17', 15],
    ['!!int "7"', 7],
    ['4294967295', 4294967295],
  ])('%s is %i', (written, expected) => {
    const { configs, errors, warnings } = read(fileWith(written));
    expect({ configs, errors, warnings }).toEqual({
      configs: [domainConfig('d', { key: 'k', value: 'v', rateLimit: limit(expected, 'DAY') })],
      errors: [],
      warnings: [],
    });
  });

  it.each([
    ['010', 8],
    ['0_17', 15],
    ['+010', 8],
  ])('%s is octal: %i, with a warning', (written, expected) => {
    const { configs, warnings } = read(fileWith(written));
    expect(configs[0]?.descriptors[0]?.rateLimit?.requestsPerUnit).toBe(expected);
    expect(codes(warnings)).toEqual(['octal-number']);
  });

  it.each([
    '-1',
    '4294967296',
    '99999999999999999999',
    '1.5',
    '1.0',
    '1e3',
    '08',
    '"10"',
    "'10'",
    'ten',
    'yes',
    '1:30',
    '.inf',
    '.nan',
    '!!str 10',
    '10 000',
  ])('rejects %s', (written) => {
    expect(codes(read(fileWith(written)).errors)).toEqual(['invalid-requests-per-unit']);
  });

  it.each(['', '~', 'null'])('rejects %j as missing', (written) => {
    expect(codes(read(fileWith(written)).errors)).toEqual(['missing-requests-per-unit']);
  });

  it.each(['[10]', '{a: 10}'])('rejects %s as a wrong type', (written) => {
    expect(codes(read(fileWith(written)).errors)).toEqual(['wrong-type']);
  });
});

describe('unit', () => {
  it.each([
    ['second', 'SECOND'],
    ['Minute', 'MINUTE'],
    ['HOUR', 'HOUR'],
    ['day', 'DAY'],
    ['week', 'WEEK'],
    ['month', 'MONTH'],
    ['year', 'YEAR'],
    ['"day"', 'DAY'],
  ])('%s is %s', (written, expected) => {
    expect(ruleWith(`rate_limit: {unit: ${written}, requests_per_unit: 1}`)?.rateLimit?.unit).toBe(expected);
  });

  it.each(['seconds', 'fortnight', 'unknown', '""', '~', '1', '"day "'])('rejects %s', (written) => {
    const { errors } = read(`domain: d\ndescriptors: [{key: k, rate_limit: {unit: ${written}, requests_per_unit: 1}}]`);
    expect(codes(errors)).toEqual(['invalid-unit']);
  });
});

describe('metadata', () => {
  it('is any mapping, whose values have their YAML 1.1 types', () => {
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
      date: 2001-01-01`;
    expect(ruleWith(`rate_limit: {unit: day, requests_per_unit: 1}\n  metadata:${metadata}`)?.metadata).toEqual({
      text: 'gold',
      quoted: '5',
      number: 5,
      fraction: 1.5,
      octal: 8,
      flag: true,
      nothing: null,
      list: [1, 'two', { three: 3 }],
      deep: { er: { still: true } },
      5: 'a number as key',
      date: '2001-01-01',
    });
  });

  it('supports merges, and a key named __proto__', () => {
    const metadata = '{base: &b {x: 1, z: 2}, over: {<<: *b, z: 3}, __proto__: {polluted: true}}';
    const merged = ruleWith(`rate_limit: {unit: day, requests_per_unit: 1}\n  metadata: ${metadata}`)?.metadata;
    expect(Object.entries(merged ?? {})).toEqual([
      ['base', { x: 1, z: 2 }],
      ['over', { x: 1, z: 3 }],
      ['__proto__', { polluted: true }],
    ]);
  });
});

describe('anchors and merges', () => {
  it('reuse parts of a rule', () => {
    const text = `
domain: d
descriptors:
  - key: a
    rate_limit: &limit {unit: day, requests_per_unit: 1}
    descriptors: &nested
      - key: n
  - key: b
    rate_limit: *limit
    descriptors: *nested
`;
    const both = { rateLimit: limit(1, 'DAY'), descriptors: [{ key: 'n' }] };
    expect(rulesOf(text)).toEqual([ruleConfig({ key: 'a', ...both }), ruleConfig({ key: 'b', ...both })]);
  });

  it('let keys after a merge override it', () => {
    const text = `
domain: d
descriptors:
  - &base {key: a, value: x, rate_limit: {unit: day, requests_per_unit: 1}}
  - <<: *base
    value: y
`;
    expect(rulesOf(text)[1]).toEqual(ruleConfig({ key: 'a', value: 'y', rateLimit: limit(1, 'DAY') }));
  });

  it('give precedence to the first of several merged mappings', () => {
    const text = `
domain: d
descriptors:
  - &one {key: a, value: x}
  - &two {key: a, value: y, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 2}}
  - <<: [*one, *two]
    key: c
`;
    expect(rulesOf(text)[2]).toEqual(
      ruleConfig({ key: 'c', value: 'x', shadowMode: true, rateLimit: limit(2, 'DAY') }),
    );
    // The order of the list determines the precedence, so there is no warning.
    expect(read(text).warnings).toEqual([]);
  });

  it('extend a merged rate_limit by the written one, as the Go service does', () => {
    const text = `
domain: d
descriptors:
  - &base {key: a, value: x, rate_limit: {unit: day, requests_per_unit: 1, name: n}}
  - {<<: *base, value: y, rate_limit: {requests_per_unit: 5}}
  - {<<: *base, value: z, rate_limit: ~}
`;
    const [, laidOver, emptied] = rulesOf(text);
    expect(laidOver?.rateLimit).toEqual(limit(5, 'DAY', { name: 'n' }));
    expect(emptied?.rateLimit).toBeUndefined();
  });

  it('let a merge override keys above it, as the Go service does', () => {
    const text = 'domain: d\ndescriptors: [&b {key: a, value: x}, {key: c, value: y, <<: *b, value: z}]';
    expect(rulesOf(text)[1]).toEqual(ruleConfig({ key: 'a', value: 'z' }));
  });

  it('do not treat a quoted << as a merge', () => {
    expect(codes(read('domain: d\ndescriptors: [{key: a, "<<": 1}]').errors)).toEqual(['unknown-key']);
  });

  it('resolve an alias to the last anchor of its name above it', () => {
    const text = 'domain: d\ndescriptors: [{key: &n a, value: &n b}, {key: *n}, {key: &n c}, {key: *n, value: *n}]';
    expect(rulesOf(text).map(({ key, value }) => [key, value])).toEqual([
      ['a', 'b'],
      ['b', ''],
      ['c', ''],
      ['c', 'c'],
    ]);
  });
});

describe('a repeated key', () => {
  it('has the last value, where a second rate_limit extends the first', () => {
    const text =
      'domain: c\ndomain: d\ndescriptors: [{key: x}]\ndescriptors: [{key: k, value: a, value: b, ' +
      'rate_limit: {unit: day, requests_per_unit: 1}, rate_limit: {requests_per_unit: 2}}]';
    const { configs, warnings } = read(text);
    expect(configs).toEqual([domainConfig('d', { key: 'k', value: 'b', rateLimit: limit(2, 'DAY') })]);
    expect(codes(warnings)).toEqual(['repeated-key', 'repeated-key', 'repeated-key', 'repeated-key']);
  });
});

describe('files of one domain', () => {
  const first = 'domain: d\ndescriptors: [{key: a}, {key: b, value: x}]';
  const second = 'domain: e\ndescriptors: [{key: a}]';
  const third = 'domain: d\ndescriptors: [{key: b}, {key: a, value: x}]';

  it('are an error by default', () => {
    const { errors } = read(first, second, third);
    expect(errors.map(({ code, file, message }) => [code, file, message])).toEqual([
      ['duplicate-domain', 'c.yaml', "duplicate domain 'd' in config file"],
    ]);
  });

  it('are joined in the order of the files when mergeDomainConfigs is set', () => {
    const { configs, errors } = readMerged(first, second, third);
    expect(errors).toEqual([]);
    expect(configs).toEqual([
      domainConfig('d', { key: 'a' }, { key: 'b', value: 'x' }, { key: 'b' }, { key: 'a', value: 'x' }),
      domainConfig('e', { key: 'a' }),
    ]);
  });

  it('must not have the same key and value at the top level, because subtrees are not merged', () => {
    const { errors } = readMerged(first, 'domain: d\ndescriptors: [{key: a, descriptors: [{key: n}]}]');
    expect(errors.map(({ code, file }) => [code, file])).toEqual([['duplicate-descriptor', 'b.yaml']]);
  });
});

describe('duplicates', () => {
  it('are distinguished from keys and values that are equal only when joined', () => {
    const text =
      'domain: d\ndescriptors: [{key: a_b, value: c}, {key: a, value: b_c}, {key: a}, {key: ab}, {key: ab, value: c}, {key: a, value: bc}]';
    expect(rulesOf(text)).toHaveLength(6);
  });

  it('are reported with the whole path', () => {
    const text = 'domain: d\ndescriptors: [{key: a, value: x, descriptors: [{key: b}, {key: b, value: ""}]}]';
    expect(read(text).errors.map(({ message }) => message)).toEqual(["duplicate descriptor composite key 'd.a_x.b'"]);
  });
});

describe('every error', () => {
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

  it('of every file is reported in one run, in reading order', () => {
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

  it('is reported once, however many aliases lead to it', () => {
    const text = 'domain: d\ndescriptors: [{key: a, descriptors: &n [{kex: b}]}, {key: b, descriptors: *n}]';
    expect(codes(read(text).errors)).toEqual(['empty-key', 'unknown-key']);
  });

  it.each([
    [
      'a mapping instead of the list of descriptors',
      'domain: d\ndescriptors: {key: k, rate_limit: {unit: minut, requests_per_unit: 1}}',
      ['wrong-type', 'invalid-unit'],
    ],
    [
      'a list instead of a limit',
      'domain: d\ndescriptors: [{key: k, rate_limit: [{unit: minut}, {requests_per_unit: -1, nme: x}]}]',
      ['wrong-type', 'invalid-unit', 'invalid-requests-per-unit', 'unknown-key'],
    ],
    [
      'a list instead of a descriptor',
      'domain: d\ndescriptors: [[{key: k, shadow_mode: 1}]]',
      ['list-item-not-a-mapping', 'wrong-type'],
    ],
    [
      'a list of domains instead of the top level',
      '- domain: d\n  descriptors: [{key: k, shadow_mode: 1}]',
      ['not-a-mapping', 'wrong-type'],
    ],
    [
      'a list of descriptors instead of the top level',
      '- {key: k, rate_limit: {unit: minut, requests_per_unit: 1}}',
      ['not-a-mapping', 'invalid-unit'],
    ],
    [
      'a list instead of a key',
      'domain: d\ndescriptors: [{key: [k], value: v, share_threshold: true}]',
      ['wrong-type', 'share-threshold-without-wildcard'],
    ],
    [
      'a list instead of the domain',
      'domain: [d]\ndescriptors: [{kex: k}]',
      ['wrong-type', 'unknown-key', 'empty-key'],
    ],
  ])('after %s is reported too', (_, text, expected) => {
    expect(codes(read(text).errors).toSorted()).toEqual(expected.toSorted());
  });

  it.each([
    ['the value of one of two rules', '{key: k}, {key: k, value: [v]}'],
    ['the value of a rule with a shared threshold', '{key: k, value: [v], share_threshold: true}'],
    ['`unlimited` in a limit without unit and number', '{key: k, rate_limit: {unlimited: "yes"}}'],
    ['the limit of a rule in shadow mode', '{key: k, shadow_mode: true, detailed_metric: true, rate_limit: 5}'],
  ])('that only follows from the wrong type of %s is not reported', (_, rules) => {
    const { errors, warnings } = read(`domain: d\ndescriptors: [${rules}]`);
    expect([codes(errors), codes(warnings)]).toEqual([['wrong-type'], []]);
  });

  it('leaves the warnings about several rules of other domains as they are', () => {
    const reach = 'domain: e\ndescriptors: [{key: a, value: "*"}, {key: a}]';
    const { errors, warnings } = read('domain: d\ndescriptors: [{kex: b}]', reach);
    expect([codes(errors), codes(warnings)]).toEqual([['empty-key', 'unknown-key'], ['unreachable-rule']]);
  });

  it('suppresses these warnings for all domains when domains are merged, because rules of any may be missing', () => {
    const texts = ['domain: [', 'domain: e\ndescriptors: [{key: a, value: "*"}, {key: a}]'];
    const files = texts.map((text, i) => ({ path: `${i}.yaml`, content: new TextEncoder().encode(text) }));
    expect(readRuleFiles(files, { mergeDomainConfigs: true }).warnings).toEqual([]);
  });

  it('suppresses the warnings about several rules, which may be wrong for incomplete rules', () => {
    const { errors, warnings } = read('domain: d\ndescriptors: [{key: a, value: "*"}, {key: a}, {kex: b}]');
    expect(codes(errors)).toEqual(['empty-key', 'unknown-key']);
    expect(warnings).toEqual([]);
  });
});

describe('the result', () => {
  it('survives a structured clone, problems included', () => {
    const result = read('domain: d\ndescriptors: [{key: a, metadata: {a: [1]}, vale: x}]');
    expect(structuredClone(result)).toEqual(result);
  });
});
