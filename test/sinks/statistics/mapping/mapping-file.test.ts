import { Mapper } from '../../../../src/sinks/statistics/mapping/mapping';
import { MappingFileError } from '../../../../src/sinks/statistics/mapping/mapping-document';
import { readMappingFile } from '../../../../src/sinks/statistics/mapping/mapping-file';
import { mappedTo } from './mapped-to';

function mapperOf(text: string) {
  return new Mapper(readMappingFile(text));
}

describe('a mapping of a mapping file', () => {
  // The rules of the statsd exporter's documentation, one per row; the exporter itself maps these names in the same way.
  it.each<[title: string, mapping: string, name: string, metric: string | undefined]>([
    [
      'a star matches one component between two dots',
      'match: "a.*.c"\n  name: m\n  labels: {job: "$1"}',
      'a.b.c',
      'm{job=b}',
    ],
    ['a star matches no dots', 'match: "a.*.c"\n  name: m', 'a.b.b.c', undefined],
    ['a glob matches the whole name', 'match: "a.*"\n  name: m', 'x.a.b', undefined],
    ['a star matches dashes and spaces', 'match: "a.*"\n  name: m\n  labels: {job: "$1"}', 'a.x-y z', 'm{job=x-y z}'],
    ['a dot of a glob matches only a dot', 'match: "a.b"\n  name: m', 'axb', undefined],
    ['a glob without dots matches', 'match: "ab"\n  name: m', 'ab', 'm{}'],
    ['groups are expanded in the name', 'match: "a.*.*"\n  name: "m_${2}_${1}s"', 'a.b.c', 'm_c_bs{}'],
    [
      'several groups are expanded in one label',
      'match: "a.*.*"\n  name: m\n  labels: {x: "$2-$1"}',
      'a.b.c',
      'm{x=c-b}',
    ],
    [
      'a label without references stays as written',
      'match: "a.*"\n  name: m\n  labels: {job: fixed}',
      'a.b',
      'm{job=fixed}',
    ],
    [
      'a reference to a missing group is empty',
      'match: "a.*"\n  name: "m$2"\n  labels: {x: "$9-${1}"}',
      'a.b',
      'm{x=-b}',
    ],
    ['a reference is as long as possible', 'match: "a.*"\n  name: "m_$1_total"', 'a.b', 'm_{}'],
    ['braces delimit a reference', 'match: "a.*"\n  name: "m_${1}_total"', 'a.b', 'm_b_total{}'],
    [
      'a reference includes a reference that follows it directly',
      'match: "a.*.*"\n  name: m\n  labels: {x: "$1$2."}',
      'a.b.c',
      'm{x=.}',
    ],
    ['$0 is the whole name', 'match: "a.*"\n  name: m\n  labels: {x: "$0/${0}"}', 'a.b', 'm{x=a.b/a.b}'],
    [
      'a number in the template of a glob may have leading zeros',
      'match: "a.*"\n  name: m\n  labels: {x: "${01}"}',
      'a.b',
      'm{x=b}',
    ],
    [
      'a number in another notation is not a reference to a group',
      'match: "a.*"\n  name: m\n  labels: {x: "$0x1$1e0"}',
      'a.b',
      'm{x=}',
    ],
    [
      'a reference to a missing group of a regular expression is empty',
      'match: "a.(b)(c)?"\n  match_type: regex\n  name: "m$1_x"\n  labels: {x: "$2$3${1}$9"}',
      'a.b',
      'm{x=b}',
    ],
    [
      'adjacent references of a regular expression are expanded separately',
      'match: "(a).(b)"\n  match_type: regex\n  name: m\n  labels: {x: "$1$2${1}c$1c"}',
      'a.b',
      'm{x=abac}',
    ],
    [
      'named groups are expanded',
      'match: "(?P<one>a).(?P<two>b)"\n  match_type: regex\n  name: m\n  labels: {x: "$two-${one}-$three"}',
      'a.b',
      'm{x=b-a-}',
    ],
    [
      '$$ and incomplete references of a regular expression',
      'match: "(a)"\n  match_type: regex\n  name: m\n  labels: {x: "$$1 ${1 $-$01."}',
      'a',
      'm{x=$1 ${1 $-.}',
    ],
    [
      'a regular expression matches across dots',
      'match: "^a\\\\.(.*)\\\\.c$"\n  match_type: regex\n  name: "m_$1"',
      'a.b.b.c',
      'm_b.b{}',
    ],
    [
      'a regular expression is not anchored',
      'match: "b(.)"\n  match_type: regex\n  name: m\n  labels: {x: "$1"}',
      'a.bc.d',
      'm{x=c}',
    ],
    ['action drop drops a statistic with a name', 'match: "a.*"\n  action: drop\n  name: dropped', 'a.b', 'dropped'],
    ['action drop requires no name', 'match: "a.*"\n  action: drop', 'a.b', 'dropped'],
    [
      'a statistic of another type does not match',
      'match: "a.*"\n  match_metric_type: gauge\n  name: m',
      'a.b',
      undefined,
    ],
    ['a statistic of the same type matches', 'match: "a.*"\n  match_metric_type: counter\n  name: m', 'a.b', 'm{}'],
    [
      'strings that YAML reads as another type stay as written',
      'match: "a.*"\n  name: n\n  labels: {yes: 010}',
      'a.b',
      'n{yes=010}',
    ],
    ['a label name may have one letter', 'match: "a.*"\n  name: m\n  labels: {x: "$1"}', 'a.b', 'm{x=b}'],
  ])('%s', (_, mapping, name, metric) => {
    expect(mappedTo(mapperOf(`mappings:\n- ${mapping}\n`), name)).toBe(metric);
  });
});

describe('readMappingFile', () => {
  it('keeps the order of the mappings, globs before regular expressions', () => {
    const mapper = mapperOf(`
mappings:
- {match: 'a\\..*', match_type: regex, name: regex}
- {match: 'a.*.c', name: first}
- {match: 'a.b.*', name: second}
- {match: '*.*.*', name: third}
`);
    expect(['a.b.c', 'a.b.x', 'x.y.z', 'a.b.c.d', 'q'].map((name) => mappedTo(mapper, name))).toEqual([
      'first{}',
      'second{}',
      'third{}',
      'regex{}',
      undefined,
    ]);
  });

  it('prefers the most specific glob with glob_disable_ordering', () => {
    const mapper = mapperOf(`
defaults: {glob_disable_ordering: true}
mappings:
- {match: '*.*.*', name: third}
- {match: 'a.*.c', name: second}
- {match: 'a.b.*', name: first}
`);
    expect(['a.b.c', 'a.x.c', 'x.y.z'].map((name) => mappedTo(mapper, name))).toEqual([
      'first{}',
      'second{}',
      'third{}',
    ]);
  });

  it('reads the observer options of timers in the present and the older form', () => {
    const mapper = mapperOf(
      `
defaults:
  observer_type: histogram
  histogram_options: {buckets: [1, 2]}
  match_type: regex
mappings:
- {match: '^usual$', name: a}
- {match: '^own$', name: b, histogram_options: {buckets: [3]}}
- {match: '^old$', name: c, timer_type: histogram, buckets: [4, .inf]}
- {match: '^s$', name: d, observer_type: summary, summary_options: {quantiles: [{quantile: 0.25, error: 0.1}], max_age: 1m30s}}
- {match: '^olds$', name: e, timer_type: summary, quantiles: [{quantile: 0.75, error: 0.1}]}
- {match: '^glob.*', match_type: glob, name: f}
`.replace('^glob.*', 'glob.*'),
    );
    function observer(name: string) {
      return mapper.map(name, 'observer')?.mapping.observer;
    }
    expect(observer('usual')).toEqual({ kind: 'histogram', buckets: [1, 2] });
    expect(observer('own')).toEqual({ kind: 'histogram', buckets: [3] });
    expect(observer('old')).toEqual({ kind: 'histogram', buckets: [4] });
    expect(observer('s')).toEqual({ kind: 'summary', quantiles: [0.25], maxAge: 90_000 });
    expect(observer('olds')).toEqual({ kind: 'summary', quantiles: [0.75], maxAge: 600_000 });
    expect(observer('glob.x')).toEqual({ kind: 'histogram', buckets: [1, 2] });
    expect(mapper.unmapped).toEqual({ kind: 'histogram', buckets: [1, 2] });
  });

  it('maps nothing for an empty file, and timers to summaries of 0.5, 0.9 and 0.99', () => {
    const mapper = mapperOf('');
    expect(mapper.map('a', 'counter')).toBeUndefined();
    expect(mapper.unmapped).toEqual({
      kind: 'summary',
      quantiles: [0.5, 0.9, 0.99],
      maxAge: 600_000,
    });
  });

  it.each([
    ['match: "a.*"\n  name: "m_$1_total"', ['$1_total']],
    ['match: "a.*"\n  name: "m_${1}"\n  labels: {x: "$0 $1 $2 ${name}"}', ['$2', '${name}']],
    ['match: "a.*.*"\n  name: m\n  labels: {x: "$1$2"}', ['$1$2']],
    ['match: "a.*"\n  action: drop\n  name: "m_$1_total"', []],
    ['match: "(?P<first>a)(b)?"\n  match_type: regex\n  name: "m_${2}$1"\n  labels: {x: "$first $0 $$3"}', []],
    [
      'match: "(?P<first>a)"\n  match_type: regex\n  name: "m$2"\n  labels: {x: "$firsts ${01}"}',
      ['$2', '$firsts', '${01}'],
    ],
  ])('warns about undefined references in %j', (mapping, references) => {
    const { warnings } = readMappingFile(`mappings:\n- ${mapping}\n`);
    expect(warnings.map((warning) => /has no group for (\S+), which/.exec(warning)?.[1])).toEqual(references);
  });

  it('warns that ttl has no effect', () => {
    const file = readMappingFile('mappings:\n- {match: a.b, name: m, ttl: 5m}\n');
    expect(file.warnings).toEqual(['ttl has no effect: statistics are kept for the lifetime of the process.']);
    expect(readMappingFile('mappings: []').warnings).toEqual([]);
  });

  it.each([
    ['[', /^line 1: /],
    ['mapping: []', 'line 1: unknown key mapping; known keys: defaults, mappings'],
    ['mappings: 3', 'line 1: mappings must be a list'],
    ['mappings:\n- name: m', 'line 2: a mapping requires match'],
    ['mappings:\n- match: a.b', 'line 2: the mapping for a.b requires name'],
    ['mappings:\n- match: a.b\n  name: 5m', 'line 3: 5m is not a valid metric name'],
    ['mappings:\n- match: a.*b\n  name: m', /^line 2: a\.\*b is not a valid glob/],
    ['mappings:\n- match: a..b\n  name: m', /^line 2: a\.\.b is not a valid glob/],
    [
      'mappings:\n- match: "(?=a)"\n  match_type: regex\n  name: m',
      /^line 2: \(\?=a\) is not a valid regular expression/,
    ],
    ['mappings:\n- match: a\n  name: m\n  labels: {"5": x}', 'line 4: 5 is not a valid label name'],
    [
      'mappings:\n- match: a\n  name: m\n  labels: {quantile: x}',
      'line 4: the label quantile is reserved: every summary has one',
    ],
    [
      'mappings:\n- match: a\n  name: m\n  observer_type: histogram\n  labels: {le: x}',
      'line 5: the label le is reserved: every histogram has one',
    ],
    ['mappings:\n- match: a\n  name: m\n  match_type: exact', 'line 4: match_type must be one of glob, regex'],
    ['mappings:\n- match: a\n  name: m\n  action: keep', 'line 4: action must be one of map, drop'],
    [
      'mappings:\n- match: a\n  name: m\n  match_metric_type: set',
      'line 4: match_metric_type must be one of counter, gauge, observer, timer',
    ],
    ['mappings:\n- match: a\n  name: m\n  scale: much', 'line 4: scale must be a number'],
    ['mappings:\n- match: a\n  name: m\n  buckets: [2, 1]', 'line 4: each bucket must be larger than the previous one'],
    ['mappings:\n- match: a\n  name: m\n  quantiles: [{quantile: 2}]', 'line 4: 2 is not between 0 and 1'],
    [
      'mappings:\n- match: a\n  name: m\n  summary_options: {max_age: soon}',
      'line 4: max_age must be a duration such as 10m',
    ],
    ['mappings:\n- match: a\n  name: m\n  honor_labels: perhaps', 'line 4: honor_labels must be true or false'],
    ['mappings:\n- match: [a]\n  name: m', 'line 2: match must be a scalar value'],
    ['mappings:\n- just text', 'line 2: each item of mappings must be a map'],
    ['mappings:\n- match: a\n  name: m\n  colour: red', /^line 4: unknown key colour; known keys: /],
  ])('rejects %j', (text, message) => {
    expect(() => readMappingFile(text)).toThrow(MappingFileError);
    expect(() => readMappingFile(text)).toThrow(
      typeof message === 'string' ? expect.objectContaining({ message }) : message,
    );
  });
});
