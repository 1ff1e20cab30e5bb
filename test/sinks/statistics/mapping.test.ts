import { builtInMapping } from '../../../src/sinks/statistics/built-in-mapping';
import { Mapper, type StatisticType } from '../../../src/sinks/statistics/mapping';
import { readMappingFile } from '../../../src/sinks/statistics/mapping-file';
import { compileRe2 } from '../../../src/text/re2';

/** What the mapper maps a name to: `metric{label=value,…}`, `dropped`, or undefined. */
function mappedTo(mapper: Mapper, name: string, type: StatisticType = 'counter'): string | undefined {
  const mapped = mapper.map(name, type);
  if (mapped === undefined) return undefined;
  if (mapped.mapping.isDropped) return 'dropped';
  const labels = Object.entries(mapped.labels).map(([label, value]) => `${label}=${value}`);
  return `${mapped.name}{${labels.join(',')}}`;
}

function mapperOf(text: string) {
  return new Mapper(readMappingFile(text));
}

/** A file with one mapping, as YAML in one line. */
function one(mapping: string): string {
  return `mappings:\n- {${mapping}}\n`;
}

/** A mapping with a regular expression. */
function regex(pattern: string, rest: string): string {
  return `match: '${pattern}', match_type: regex, ${rest}`;
}

describe('a mapping of a mapping file', () => {
  // The rules of the statsd exporter's documentation, one per row; the exporter itself maps these names in the same
  // way.
  it.each<[title: string, mapping: string, name: string, metric: string | undefined]>([
    ['a star matches no dots', 'match: a.*.c, name: m', 'a.b.b.c', undefined],
    ['a glob matches the whole name', 'match: a.*, name: m', 'x.a.b', undefined],
    ['a star matches dashes and spaces', 'match: a.*, name: m, labels: {job: $1}', 'a.x-y z', 'm{job=x-y z}'],
    ['a dot of a glob matches only a dot', 'match: a.b, name: m', 'axb', undefined],
    ['groups are expanded in the name', 'match: a.*.*, name: "m_${2}_${1}s"', 'a.b.c', 'm_c_bs{}'],
    ['a missing group is empty', 'match: a.*, name: m$2, labels: {x: "$9-${1}"}', 'a.b', 'm{x=-b}'],
    ['a reference is as long as possible', 'match: a.*, name: m_$1_total', 'a.b', 'm_{}'],
    ['a reference includes an adjacent one', 'match: a.*.*, name: m, labels: {x: $1$2.}', 'a.b.c', 'm{x=.}'],
    ['$0 is the whole name', 'match: a.*, name: m, labels: {x: "$0/${0}"}', 'a.b', 'm{x=a.b/a.b}'],
    ['other notations of numbers are no groups', 'match: a.*, name: m, labels: {x: $0x1$1e0}', 'a.b', 'm{x=}'],
    ['named groups are expanded', regex('(?P<p>a).(?P<q>b)', 'name: m, labels: {x: "$q-${p}-$r"}'), 'a.b', 'm{x=b-a-}'],
    ['incomplete references stay', regex('(a)', 'name: m, labels: {x: "$$1 ${1 $-$01."}'), 'a', 'm{x=$1 ${1 $-.}'],
    ['a pattern matches anywhere, across dots', regex('(b.*)c(x)?', 'name: "m_${1}$2"'), 'a.b.b.c.d', 'm_b.b.{}'],
    ['drop drops a statistic with a name', 'match: a.*, action: drop, name: dropped', 'a.b', 'dropped'],
    ['another type does not match', 'match: a.*, match_metric_type: gauge, name: m', 'a.b', undefined],
    ['the same type matches', 'match: a.*, match_metric_type: counter, name: m', 'a.b', 'm{}'],
    ['values of other types of YAML stay', 'match: a.*, name: n, labels: {yes: 010}', 'a.b', 'n{yes=010}'],
  ])('%s', (_, mapping, name, metric) => {
    expect(mappedTo(mapperOf(one(mapping)), name)).toBe(metric);
  });

  it.each([
    ['in the order of the file, globs first', '', ['first{}', 'second{}', 'third{}', 'regex{}', undefined]],
    [
      'by the most specific one',
      'defaults: {glob_disable_ordering: true}',
      ['second{}', 'second{}', 'third{}', 'regex{}', undefined],
    ],
  ])('is chosen among globs %s', (_, defaults, metrics) => {
    const mapper = mapperOf(`${defaults}
mappings:
- {match: 'a\\..*', match_type: regex, name: regex}
- {match: 'a.*.c', name: first}
- {match: 'a.b.*', name: second}
- {match: '*.*.*', name: third}
`);
    expect(['a.b.c', 'a.b.x', 'x.y.z', 'a.b.c.d', 'q'].map((name) => mappedTo(mapper, name))).toEqual(metrics);
  });

  it('has observer options of timers in the present and the older form, or those of the defaults', () => {
    const mapper = mapperOf(`
defaults: {observer_type: histogram, histogram_options: {buckets: [1, 2]}, match_type: regex}
mappings:
- {match: '^usual$', name: a}
- {match: '^own$', name: b, histogram_options: {buckets: [3]}}
- {match: '^old$', name: c, timer_type: histogram, buckets: [4, .inf]}
- {match: '^s$', name: d, observer_type: summary, summary_options: {quantiles: [{quantile: 0.25, error: 0.1}], max_age: 1m30s}}
- {match: '^olds$', name: e, timer_type: summary, quantiles: [{quantile: 0.75, error: 0.1}]}
- {match: 'glob.*', match_type: glob, name: f}
`);
    const usual = { kind: 'histogram', buckets: [1, 2] };
    expect(
      ['usual', 'own', 'old', 's', 'olds', 'glob.x'].map((name) => mapper.map(name, 'observer')?.mapping.observer),
    ).toMatchObject([
      usual,
      { kind: 'histogram', buckets: [3] },
      { kind: 'histogram', buckets: [4] },
      { kind: 'summary', quantiles: [0.25], maxAge: 90_000 },
      { kind: 'summary', quantiles: [0.75], maxAge: 600_000 },
      usual,
    ]);
    expect(mapper.unmapped).toMatchObject(usual);
    expect(mapperOf('').map('a', 'counter')).toBeUndefined();
    expect(mapperOf('').unmapped).toMatchObject({ kind: 'summary', quantiles: [0.5, 0.9, 0.99], maxAge: 600_000 });
  });

  it.each([
    ['match: a.*, name: m_$1_total', ['$1_total']],
    ['match: a.*, name: "m_${1}", labels: {x: "$0 $1 $2 ${name}"}', ['$2', '${name}']],
    ['match: a.*, action: drop, name: m_$1_total', []],
    [regex('(?P<first>a)(b)?', 'name: "m_${2}$1", labels: {x: "$first $0 $$3"}'), []],
    [regex('(?P<first>a)', 'name: m$2, labels: {x: "$firsts ${01}"}'), ['$2', '$firsts', '${01}']],
  ])('causes a warning for undefined references: %s', (mapping, references) => {
    const { warnings } = readMappingFile(one(mapping));
    expect(warnings.map((warning) => /has no group for (\S+), which/.exec(warning)?.[1])).toEqual(references);
  });

  it('causes a warning for ttl, which has no effect', () => {
    const warning = 'ttl has no effect: statistics are kept for the lifetime of the process.';
    expect(readMappingFile(one('match: a.b, name: m, ttl: 5m')).warnings).toEqual([warning]);
    expect(readMappingFile('mappings: []').warnings).toEqual([]);
  });
});

describe('a mapping file', () => {
  it.each([
    ['[', 'Flow sequence must end with a ] at line 1, column 2'],
    ['a: 1', 'unknown key a'],
    ['mapping: []', 'unknown key mapping; known keys: defaults, mappings'],
    ['mappings: 3', 'mappings must be a list'],
    ['mappings:\n- just text', 'mappings[0]: it must be a map'],
    ['mappings: [{match: a.b, name: m}, {name: n}]', 'mappings[1]: a mapping requires match'],
    [one('name: m'), 'a mapping requires match'],
    [one('match: a.b'), 'the mapping for a.b requires name'],
    [one('match: a.b, name: 5m'), '5m is not a valid metric name'],
    [one('match: a.*b, name: m'), 'a.*b is not a valid glob'],
    [one(regex('(?=a)', 'name: m')), '(?=a) is not a valid regular expression'],
    [one('match: a, name: m, labels: {"5": x}'), 'mappings[0].labels: 5 is not a valid label name'],
    [one('match: a, name: m, labels: {quantile: x}'), 'the label quantile is reserved: every summary has one'],
    [one('match: a, name: m, observer_type: histogram, labels: {le: x}'), 'le is reserved: every histogram has one'],
    [one('match: a, name: m, match_type: exact'), 'match_type must be one of glob, regex'],
    [one('match: a, name: m, scale: much'), 'scale must be a number'],
    [one('match: a, name: m, buckets: [1, 1]'), 'each bucket must be larger than the previous one'],
    [one('match: a, name: m, buckets: [much]'), 'buckets must be a list of numbers'],
    [one('match: a, name: m, quantiles: [{quantile: 2}]'), 'mappings[0].quantiles[0]: 2 is not between 0 and 1'],
    [one('match: a, name: m, summary_options: {max_age: soon}'), 'max_age must be a duration such as 10m'],
    [one('match: a, name: m, summary_options: {max_age: -1s}'), 'max_age must be a duration such as 10m'],
    [one('match: a, name: m, honor_labels: perhaps'), 'honor_labels must be true or false'],
    [one('match: [a], name: m'), 'match must be a scalar value'],
  ])('is rejected: %j', (text, message) => {
    expect(() => readMappingFile(text)).toThrow(message);
  });
});

describe('the built-in mapping', () => {
  const mapper = new Mapper(builtInMapping(false));
  const rule = 'ratelimit.service.rate_limit';

  it.each(['near_limit', 'over_limit', 'total_hits', 'within_limit', 'shadow_mode', 'asks', 'asks_denied'])(
    'maps %s of a rule',
    (stat) => {
      const metric = `ratelimit_service_rate_limit_${stat}`;
      expect(mappedTo(mapper, `${rule}.d.k.${stat}`)).toBe(`${metric}{domain=d,key1=k}`);
      for (const [keys, labels] of [
        ['l_v', 'key2=l_v'],
        ['l_v\u2028w', 'key2=l_v\u2028w'],
        ['l.m_1', 'key2=l,key3=m_1'],
        ['l_v\u2029.m.n.5minute', 'key2=l_v\u2029,key3=m.n.5minute'],
      ]) {
        expect(mappedTo(mapper, `${rule}.d.k.${keys}.${stat}`)).toBe(`${metric}{domain=d,key1=k,${labels}}`);
      }
    },
  );

  it('gives each rule a series of its own, wherever its values have dots', () => {
    const parts = ['', 'a', 'b_', '.', '..'];
    const paths = parts.flatMap((first) =>
      parts.flatMap((then) => [`k_${first}`, `k_${first}.l_${then}`, `k.l_${first}.m_${then}`]),
    );
    const names = [...new Set(paths)].map((path) => mappedTo(mapper, `${rule}.d.${path}.total_hits`) ?? path);
    expect(new Set(names).size).toBe(names.length);
    // Prometheus reads an empty label as an absent one.
    expect(names.filter((name) => /key[13]=[,}]/.test(name))).toEqual([]);
  });

  const errors = 'ratelimit_service_should_rate_limit_error{err_type=redis_error}';
  const requests = 'ratelimit_service_total_requests{grpc_method=ShouldRateLimit}';
  it.each([
    ['ratelimit.service.call.should_rate_limit.redis_error', errors],
    ['ratelimit_server.ShouldRateLimit.total_requests', requests],
    ['ratelimit.service.config_load_error', 'ratelimit_service_config_load_error{}'],
    [`${rule}.d.k.over_limit_with_local_cache`, undefined],
    [`${rule}.d.domain_not_found`, undefined],
  ])('maps %s to %s', (name, metric) => {
    expect(mappedTo(mapper, name)).toBe(metric);
  });

  it('maps response times to a histogram in seconds or milliseconds, under the same name', () => {
    const name = 'ratelimit_server.Check.response_time';
    const bounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];
    for (const [isMilliseconds, scale] of [
      [true, 1],
      [false, 0.001],
    ] as const) {
      const timers = new Mapper(builtInMapping(isMilliseconds));
      const buckets = bounds.map((bound) => expect.closeTo(bound * scale, 9));
      expect(mappedTo(timers, name, 'observer')).toBe('ratelimit_service_response_time_seconds{grpc_method=Check}');
      expect(timers.map(name, 'observer')?.mapping).toMatchObject({ scale, observer: { kind: 'histogram', buckets } });
    }
  });
});

// The syntax itself is that of the library re2js.
describe('a regular expression of RE2', () => {
  it.each([
    ['a.c', 'xabcx', 'abc'],
    ['(?is)a.B', 'A\nb', 'A\nb'],
    [String.raw`\Aab\z`, 'ab', 'ab'],
    [String.raw`[^[:digit:]_]+\p{Greek}`, '12aβ_3', 'aβ'],
    ['(?U)a+', 'aaa', 'a'],
    ['axb', 'a.b', undefined],
  ])('%j finds in %j: %j', (source, text, found) => {
    expect(compileRe2(source).exec(text)?.[0]).toBe(found);
  });

  it('keeps named groups, and gives undefined for a group that does not participate', () => {
    expect(compileRe2('(?P<n>a)').exec('a')?.groups).toEqual({ n: 'a' });
    expect(compileRe2('(a)').exec('a')?.groups).toBeUndefined();
    const match = compileRe2('(a)|(?P<n>b)').exec('a');
    expect([[...match!], match?.groups]).toEqual([['a', 'a', undefined], { n: undefined }]);
  });

  it('matches in linear time where backtracking takes exponential time', () => {
    // Backtracking doubles its work with each letter: it would not end within the lifetime of the test.
    expect(compileRe2('(a+)+b$').exec(`${'a'.repeat(100)}c`)).toBeNull();
  });

  it.each([
    ['(?=a)', 'invalid or unsupported Perl syntax: (?='],
    [String.raw`(a)\1`, String.raw`invalid escape sequence: \1`],
    ['a\\', 'trailing backslash at end of expression'],
    ['a{1001}', 'invalid repeat count: {1001}'],
  ])('is rejected: %j', (source, message) => {
    expect(() => compileRe2(source)).toThrow(new Error(message));
  });
});
