import { builtInMapping } from '../../../src/sinks/statistics/mapping/built-in-mapping';
import { Mapper, type StatisticType } from '../../../src/sinks/statistics/mapping/mapping';
import { MappingFileError, readMappingFile } from '../../../src/sinks/statistics/mapping/mapping-file';

function mapperOf(text: string) {
  return new Mapper(readMappingFile(text));
}

/** What a name becomes: `metric{label=value,…}`, `dropped`, or undefined. */
function mappedTo(mapper: Mapper, name: string, type: StatisticType = 'counter'): string | undefined {
  const mapped = mapper.map(name, type);
  if (mapped === undefined) return undefined;
  if (mapped.mapping.isDropped) return 'dropped';
  const labels = Object.entries(mapped.labels).map(([label, value]) => `${label}=${value}`);
  return `${mapped.name}{${labels.join(',')}}`;
}

describe('the built-in mapping', () => {
  const mapper = new Mapper(builtInMapping(false));
  const rule = 'ratelimit.service.rate_limit';

  it.each(['near_limit', 'over_limit', 'total_hits', 'within_limit', 'shadow_mode'])('maps %s of a rule', (stat) => {
    const metric = `ratelimit_service_rate_limit_${stat}`;
    expect(mappedTo(mapper, `${rule}.d.k.${stat}`)).toBe(`${metric}{domain=d,key1=k}`);
    expect(mappedTo(mapper, `${rule}.d.k.l_v.${stat}`)).toBe(`${metric}{domain=d,key1=k,key2=l_v}`);
    expect(mappedTo(mapper, `${rule}.d.k.l.m.n.${stat}`)).toBe(`${metric}{domain=d,key1=k,key2=l.m.n}`);
  });

  it.each([
    [
      'ratelimit.service.call.should_rate_limit.redis_error',
      'ratelimit_service_should_rate_limit_error{err_type=redis_error}',
    ],
    [
      'ratelimit_server.ShouldRateLimit.total_requests',
      'ratelimit_service_total_requests{grpc_method=ShouldRateLimit}',
    ],
    ['ratelimit.service.config_load_success', 'ratelimit_service_config_load_success{}'],
    ['ratelimit.service.config_load_error', 'ratelimit_service_config_load_error{}'],
    [`${rule}.d.k.over_limit_with_local_cache`, undefined],
    [`${rule}.d.domain_not_found`, undefined],
    ['ratelimit.service.global_shadow_mode', undefined],
  ])('%s becomes %s', (name, metric) => {
    expect(mappedTo(mapper, name)).toBe(metric);
  });

  it('maps response times to seconds in a histogram, or to milliseconds under the same name', () => {
    const name = 'ratelimit_server.Check.response_time';
    const metric = 'ratelimit_service_response_time_seconds{grpc_method=Check}';
    expect(mappedTo(mapper, name, 'observer')).toBe(metric);
    expect(mapper.map(name, 'observer')?.mapping).toMatchObject({
      scale: 0.001,
      observer: {
        kind: 'histogram',
        buckets: [
          0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
        ],
      },
    });
    const legacy = new Mapper(builtInMapping(true));
    expect(mappedTo(legacy, name, 'observer')).toBe(metric);
    expect(legacy.map(name, 'observer')?.mapping).toMatchObject({
      scale: 1,
      observer: { buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000] },
    });
  });
});

describe('a mapping file of the statsd exporter', () => {
  // As the exporter itself maps these: its documentation's rules, one a row.
  it.each<[title: string, mapping: string, name: string, metric: string | undefined]>([
    ['a glob takes what is between two dots', 'match: "a.*.c"\n  name: m\n  labels: {job: "$1"}', 'a.b.c', 'm{job=b}'],
    ['a glob takes no dots', 'match: "a.*.c"\n  name: m', 'a.b.b.c', undefined],
    ['a glob is the whole name', 'match: "a.*"\n  name: m', 'x.a.b', undefined],
    ['a glob takes dashes and blanks', 'match: "a.*"\n  name: m\n  labels: {job: "$1"}', 'a.x-y z', 'm{job=x-y z}'],
    ['a dot of a glob is a dot', 'match: "a.b"\n  name: m', 'axb', undefined],
    ['a name without dots', 'match: "ab"\n  name: m', 'ab', 'm{}'],
    ['groups in the name', 'match: "a.*.*"\n  name: "m_${2}_${1}s"', 'a.b.c', 'm_c_bs{}'],
    ['several groups in a label', 'match: "a.*.*"\n  name: m\n  labels: {x: "$2-$1"}', 'a.b.c', 'm{x=c-b}'],
    ['a label without groups', 'match: "a.*"\n  name: m\n  labels: {job: fixed}', 'a.b', 'm{job=fixed}'],
    ['a group that there is not', 'match: "a.*"\n  name: "m$2"\n  labels: {x: "$9-${1}"}', 'a.b', 'm{x=-b}'],
    ['a reference goes on as long as it can', 'match: "a.*"\n  name: "m_$1_total"', 'a.b', 'm_{}'],
    ['a reference is ended by braces', 'match: "a.*"\n  name: "m_${1}_total"', 'a.b', 'm_b_total{}'],
    ['a reference goes on over the next one', 'match: "a.*.*"\n  name: m\n  labels: {x: "$1$2."}', 'a.b.c', 'm{x=.}'],
    ['the whole name', 'match: "a.*"\n  name: m\n  labels: {x: "$0/${0}"}', 'a.b', 'm{x=a.b/a.b}'],
    ['a number of a glob may begin with 0', 'match: "a.*"\n  name: m\n  labels: {x: "${01}"}', 'a.b', 'm{x=b}'],
    ['a number in another form is none', 'match: "a.*"\n  name: m\n  labels: {x: "$0x1$1e0"}', 'a.b', 'm{x=}'],
    [
      'a group of an expression that there is not',
      'match: "a.(b)(c)?"\n  match_type: regex\n  name: "m$1_x"\n  labels: {x: "$2$3${1}$9"}',
      'a.b',
      'm{x=b}',
    ],
    [
      'references of an expression side by side',
      'match: "(a).(b)"\n  match_type: regex\n  name: m\n  labels: {x: "$1$2${1}c$1c"}',
      'a.b',
      'm{x=abac}',
    ],
    [
      'groups with names',
      'match: "(?P<one>a).(?P<two>b)"\n  match_type: regex\n  name: m\n  labels: {x: "$two-${one}-$three"}',
      'a.b',
      'm{x=b-a-}',
    ],
    [
      'dollars of an expression',
      'match: "(a)"\n  match_type: regex\n  name: m\n  labels: {x: "$$1 ${1 $-$01."}',
      'a',
      'm{x=$1 ${1 $-.}',
    ],
    ['an expression', 'match: "^a\\\\.(.*)\\\\.c$"\n  match_type: regex\n  name: "m_$1"', 'a.b.b.c', 'm_b.b{}'],
    [
      'an expression is not anchored',
      'match: "b(.)"\n  match_type: regex\n  name: m\n  labels: {x: "$1"}',
      'a.bc.d',
      'm{x=c}',
    ],
    ['a dropped name', 'match: "a.*"\n  action: drop\n  name: dropped', 'a.b', 'dropped'],
    ['a dropped name that names no metric', 'match: "a.*"\n  action: drop', 'a.b', 'dropped'],
    ['a type that differs', 'match: "a.*"\n  match_metric_type: gauge\n  name: m', 'a.b', undefined],
    ['a type that fits', 'match: "a.*"\n  match_metric_type: counter\n  name: m', 'a.b', 'm{}'],
    ['texts that YAML takes for something else', 'match: "a.*"\n  name: n\n  labels: {yes: 010}', 'a.b', 'n{yes=010}'],
    ['one-letter labels', 'match: "a.*"\n  name: m\n  labels: {x: "$1"}', 'a.b', 'm{x=b}'],
  ])('%s', (_, mapping, name, metric) => {
    expect(mappedTo(mapperOf(`mappings:\n- ${mapping}\n`), name)).toBe(metric);
  });

  it('tries mappings in order, globs before expressions', () => {
    const mapper = mapperOf(`
mappings:
- {match: 'a\\..*', match_type: regex, name: expression}
- {match: 'a.*.c', name: first}
- {match: 'a.b.*', name: second}
- {match: '*.*.*', name: third}
`);
    expect(['a.b.c', 'a.b.x', 'x.y.z', 'a.b.c.d', 'q'].map((name) => mappedTo(mapper, name))).toEqual([
      'first{}',
      'second{}',
      'third{}',
      'expression{}',
      undefined,
    ]);
  });

  it('prefers the more exact glob when it says that order does not matter', () => {
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

  it('chooses what timers become, in the forms of today and of before', () => {
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
    expect(observer('s')).toEqual({ kind: 'summary', quantiles: [{ share: 0.25 }], maxAge: 90_000 });
    expect(observer('olds')).toEqual({ kind: 'summary', quantiles: [{ share: 0.75 }], maxAge: 600_000 });
    expect(observer('glob.x')).toEqual({ kind: 'histogram', buckets: [1, 2] });
    expect(mapper.unmapped).toEqual({ kind: 'histogram', buckets: [1, 2] });
  });

  it('that is empty maps nothing; timers are summaries of 0.5, 0.9 and 0.99 then', () => {
    const mapper = mapperOf('');
    expect(mapper.map('a', 'counter')).toBeUndefined();
    expect(mapper.unmapped).toEqual({
      kind: 'summary',
      quantiles: [{ share: 0.5 }, { share: 0.9 }, { share: 0.99 }],
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
  ])('tells of references to nothing in %j', (mapping, references) => {
    const { warnings } = readMappingFile(`mappings:\n- ${mapping}\n`);
    expect(warnings.map((warning) => /captures nothing that (\S+) could be/.exec(warning)?.[1])).toEqual(references);
  });

  it('may say ttl, which has no effect and says so', () => {
    const file = readMappingFile('mappings:\n- {match: a.b, name: m, ttl: 5m}\n');
    expect(file.warnings).toEqual(['ttl has no effect: statistics stay for the life of the process.']);
    expect(readMappingFile('mappings: []').warnings).toEqual([]);
  });

  it.each([
    ['[', /^line 1: /],
    ['mapping: []', 'line 1: mapping is not known here; known are defaults, mappings'],
    ['mappings: 3', 'line 1: mappings must be a list'],
    ['mappings:\n- name: m', 'line 2: a mapping needs a match'],
    ['mappings:\n- match: a.b', 'line 2: the mapping of a.b needs a name'],
    ['mappings:\n- match: a.b\n  name: 5m', 'line 3: 5m cannot be the name of a metric'],
    ['mappings:\n- match: a.*b\n  name: m', /^line 2: a\.\*b is no glob/],
    ['mappings:\n- match: a..b\n  name: m', /^line 2: a\.\.b is no glob/],
    ['mappings:\n- match: "(?=a)"\n  match_type: regex\n  name: m', /^line 2: \(\?=a\) is no regular expression/],
    ['mappings:\n- match: a\n  name: m\n  labels: {"5": x}', 'line 4: 5 cannot be the name of a label'],
    [
      'mappings:\n- match: a\n  name: m\n  labels: {quantile: x}',
      'line 4: quantile is a label of every summary already',
    ],
    [
      'mappings:\n- match: a\n  name: m\n  observer_type: histogram\n  labels: {le: x}',
      'line 5: le is a label of every histogram already',
    ],
    ['mappings:\n- match: a\n  name: m\n  match_type: exact', 'line 4: match_type must be one of glob, regex'],
    ['mappings:\n- match: a\n  name: m\n  action: keep', 'line 4: action must be one of map, drop'],
    [
      'mappings:\n- match: a\n  name: m\n  match_metric_type: set',
      'line 4: match_metric_type must be one of counter, gauge, observer, timer',
    ],
    ['mappings:\n- match: a\n  name: m\n  scale: much', 'line 4: scale must be a number'],
    [
      'mappings:\n- match: a\n  name: m\n  buckets: [2, 1]',
      'line 4: each bucket must be larger than the one before it',
    ],
    ['mappings:\n- match: a\n  name: m\n  quantiles: [{quantile: 2}]', 'line 4: 2 is not between 0 and 1'],
    [
      'mappings:\n- match: a\n  name: m\n  summary_options: {max_age: soon}',
      'line 4: max_age must be a duration such as 10m',
    ],
    ['mappings:\n- match: a\n  name: m\n  honor_labels: perhaps', 'line 4: honor_labels must be true or false'],
    ['mappings:\n- match: [a]\n  name: m', 'line 2: match must be a single value'],
    ['mappings:\n- just text', 'line 2: each of mappings must have members'],
    ['mappings:\n- match: a\n  name: m\n  colour: red', /^line 4: colour is not known here; known are /],
  ])('%j is refused', (text, message) => {
    expect(() => readMappingFile(text)).toThrow(MappingFileError);
    expect(() => readMappingFile(text)).toThrow(
      typeof message === 'string' ? expect.objectContaining({ message }) : message,
    );
  });
});
