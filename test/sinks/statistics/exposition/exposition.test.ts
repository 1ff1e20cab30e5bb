import { spawnSync } from 'node:child_process';
import { builtInMapping } from '../../../../src/sinks/statistics/mapping/built-in-mapping';
import { Exposition } from '../../../../src/sinks/statistics/exposition/exposition';
import { Mapper, type MappingTable } from '../../../../src/sinks/statistics/mapping/mapping';
import { readMappingFile } from '../../../../src/sinks/statistics/mapping/mapping-file';
import { processMetrics } from '../../../../src/sinks/statistics/exposition/process-metrics';
import { RecentQuantiles } from '../../../../src/sinks/statistics/exposition/recent-quantiles';
import { Statistics } from '../../../../src/statistics/statistics';

interface Setup {
  readonly table?: MappingTable;
  readonly labels?: Readonly<Record<string, string>>;
  readonly reserved?: readonly string[];
}

function expositionOf({ table = builtInMapping(false), labels = {}, reserved = [] }: Setup = {}) {
  const statistics = new Statistics(100_000);
  const conflicts: string[] = [];
  const exposition = new Exposition({
    statistics,
    mapper: new Mapper(table),
    labels,
    reserved: new Set(reserved),
    onConflict: (metric) => conflicts.push(metric),
    now: () => 0,
  });
  async function page(): Promise<string> {
    let text = '';
    for await (const chunk of exposition.page()) text += chunk;
    return text;
  }
  /** The lines of series, without those of a new registry. */
  async function series(): Promise<readonly string[]> {
    return (await page()).split('\n').filter((line) => !/^(#|$|ratelimit_statistics_)/.test(line));
  }
  return { statistics, conflicts, page, series };
}

/** Checks a page with promtool, which parses like Prometheus. Status 0: valid; 3: valid with remarks on style; 1: invalid. */
function promtool(page: string) {
  const { status, stderr, error } = spawnSync('promtool', ['check', 'metrics'], { input: page, encoding: 'utf8' });
  if (error !== undefined) throw error;
  return { status, remarks: stderr.split('\n').filter((line) => line !== '') };
}

const RULE = 'ratelimit_service_rate_limit';

describe('Exposition', () => {
  it('exports a counter that is not one of a rule as 0 from the start', async () => {
    const { statistics, series } = expositionOf();
    const errors = statistics.counter('ratelimit.service.config_load_error');
    expect(await series()).toEqual(['ratelimit_service_config_load_error 0']);
    errors.add(2);
    expect(await series()).toEqual(['ratelimit_service_config_load_error 2']);
    errors.add(3e21);
    expect(await series()).toEqual(['ratelimit_service_config_load_error 3000000000000000000000']);
  });

  it('exports the tags of a gauge as labels', async () => {
    const { statistics, series } = expositionOf({ labels: { stage: 'prod' } });
    statistics.gauge('ratelimit.build_info', () => 1, { version: '1.2.3', node: '20.20.0' });
    expect(await series()).toEqual(['ratelimit_build_info{node="20.20.0",stage="prod",version="1.2.3"} 1']);
  });

  it('labels the statistics of rules with domain and keys, and omits those that have not changed', async () => {
    const { statistics, series } = expositionOf();
    const one = statistics.rule('shop.user_a');
    one.totalHits = 3;
    one.overLimit = 1;
    statistics.rule('shop.user.path_x').totalHits = 2;
    expect(await series()).toEqual([
      `${RULE}_total_hits{domain="shop",key1="user_a"} 3`,
      `${RULE}_total_hits{domain="shop",key1="user",key2="path_x"} 2`,
      `${RULE}_over_limit{domain="shop",key1="user_a"} 1`,
    ]);
    one.totalHits += 4;
    one.withinLimit = 5;
    expect(await series()).toEqual([
      `${RULE}_total_hits{domain="shop",key1="user_a"} 7`,
      `${RULE}_total_hits{domain="shop",key1="user",key2="path_x"} 2`,
      `${RULE}_over_limit{domain="shop",key1="user_a"} 1`,
      `${RULE}_within_limit{domain="shop",key1="user_a"} 5`,
    ]);
  });

  it('exports an unmapped statistic under its own name', async () => {
    const { statistics, series } = expositionOf();
    statistics.counter('ratelimit.service.global_shadow_mode').add(1);
    statistics.gauge('9.of-them', () => 0.5);
    statistics.rule('sh-op.k').overLimitWithLocalCache = 2;
    expect(await series()).toEqual([
      'ratelimit_service_global_shadow_mode 1',
      '_9_of_them 0.5',
      `${RULE}_sh_op_k_over_limit_with_local_cache 2`,
    ]);
  });

  it('exports response times as a cumulative histogram in seconds', async () => {
    const { statistics, series } = expositionOf();
    const timer = statistics.timer('ratelimit_server.ShouldRateLimit.response_time');
    for (const milliseconds of [0.04, 0.05, 0.2, 700, 20_000]) timer.record(milliseconds);
    const method = 'grpc_method="ShouldRateLimit"';
    const name = 'ratelimit_service_response_time_seconds';
    const lines = await series();
    expect(lines).toHaveLength(20);
    expect(lines).toEqual(
      expect.arrayContaining([
        `${name}_bucket{${method},le="0.00005"} 2`,
        `${name}_bucket{${method},le="0.0001"} 2`,
        `${name}_bucket{${method},le="0.00025"} 3`,
        `${name}_bucket{${method},le="0.5"} 3`,
        `${name}_bucket{${method},le="1"} 4`,
        `${name}_bucket{${method},le="10"} 4`,
        `${name}_bucket{${method},le="+Inf"} 5`,
        `${name}_count{${method}} 5`,
      ]),
    );
    expect(Number(lines.find((line) => line.startsWith(`${name}_sum{`))?.split(' ')[1])).toBeCloseTo(20.70029, 9);
  });

  it('exports unmapped timers as summaries in milliseconds', async () => {
    const { statistics, series } = expositionOf({ table: readMappingFile('') });
    const timer = statistics.timer('a.time');
    expect(await series()).toEqual([
      ...['0.5', '0.9', '0.99'].map((quantile) => `a_time{quantile="${quantile}"} NaN`),
      'a_time_sum 0',
      'a_time_count 0',
    ]);
    for (let value = 1; value <= 100; value += 1) timer.record(value);
    const [median, ...others] = await series();
    expect(Number(median?.split(' ')[1])).toBeCloseTo(50, -0.5);
    expect(others.slice(-2)).toEqual(['a_time_sum 5050', 'a_time_count 100']);
  });

  it('exports EXTRA_TAGS and tags as labels, which the mapping’s labels override unless honor_labels is set', async () => {
    const table = readMappingFile(`
mappings:
- {match: a.own, name: m, labels: {stage: mine, code: mine}}
- {match: a.honours, name: n, labels: {stage: mine, code: mine}, honor_labels: true}
`);
    const { statistics, series } = expositionOf({ table, labels: { stage: 'prod.1', 'a-z': 'x' } });
    statistics.counter('a.none.__code=success').add(1);
    statistics.counter('a.none.__code=error').add(2);
    statistics.counter('a.own.__code=success').add(1);
    statistics.counter('a.honours.__code=success').add(1);
    const lines = await series();
    expect(lines).toEqual([
      'a_none{a_z="x",code="success",stage="prod.1"} 1',
      'a_none{a_z="x",code="error",stage="prod.1"} 2',
      'm{a_z="x",code="mine",stage="mine"} 1',
      'n{a_z="x",code="success",stage="prod.1"} 1',
    ]);
  });

  it('escapes label values, so that a caller cannot imitate other labels', async () => {
    const { statistics, page, series } = expositionOf();
    const values = ['1,b="2', '1",b="2', 'back\\slash', 'ünï \ud800'];
    for (const value of values) statistics.rule(`d.k_${value}`).totalHits = 1;
    expect(await series()).toEqual([
      `${RULE}_total_hits{domain="d",key1="k_1,b=\\"2"} 1`,
      `${RULE}_total_hits{domain="d",key1="k_1\\",b=\\"2"} 1`,
      `${RULE}_total_hits{domain="d",key1="k_back\\\\slash"} 1`,
      `${RULE}_total_hits{domain="d",key1="k_ünï \ud800"} 1`,
    ]);
    expect(promtool(await page()).status).toBe(3);
  });

  it('scales each statistic by its own mapping, even when several become one series', async () => {
    const table = readMappingFile(
      'mappings:\n- {match: "a.b", name: m, scale: 0.5}\n- {match: "a.c", name: m, scale: 10}\n- {match: "a.d", name: m}\n',
    );
    const { statistics, series } = expositionOf({ table });
    for (const name of ['a.b', 'a.c', 'a.d']) statistics.counter(name).add(2);
    expect(await series()).toEqual(['m 23']);
  });

  it('omits a statistic whose mapped name is empty', async () => {
    const table = readMappingFile('mappings:\n- {match: "^a(b)?", match_type: regex, name: "$1", labels: {x: y}}\n');
    const { statistics, series, page } = expositionOf({ table });
    statistics.counter('a').add(1);
    statistics.counter('ab').add(2);
    statistics.timer('a.time').record(1);
    expect(await series()).toEqual(['b{x="y"} 2']);
    expect(promtool(await page()).status).not.toBe(1);
  });

  it('adds up statistics that are mapped to one series, and scales them', async () => {
    const table = readMappingFile('mappings:\n- {match: "a.*", name: m, scale: 0.5}\n');
    const { statistics, series } = expositionOf({ table });
    statistics.counter('a.b').add(1);
    statistics.counter('a.c').add(2);
    statistics.timer('x.y-z').record(1);
    statistics.timer('x.y_z').record(2);
    const lines = await series();
    expect(lines.filter((line) => line.startsWith('m'))).toEqual(['m 1.5']);
    expect(lines.filter((line) => line.startsWith('x_y_z_count'))).toEqual(['x_y_z_count 2']);
  });

  it('omits metrics that conflict with another one, and reports each once', async () => {
    const { statistics, conflicts, series } = expositionOf({ reserved: ['process_x'] });
    statistics.counter('a.b').add(1);
    statistics.gauge('a_b', () => 9);
    statistics.timer('t');
    statistics.counter('t.count').add(1);
    statistics.counter('process.x').add(1);
    await series();
    const lines = await series();
    expect(lines.filter((line) => !line.startsWith('t'))).toEqual(['a_b 1']);
    expect(lines).toContain('t_count 0');
    expect(conflicts.toSorted()).toEqual(['a_b', 'process_x', 't_count']);
  });

  it('omits statistics that the mapping drops', async () => {
    const table = readMappingFile('mappings:\n- {match: "a.*", action: drop}\n');
    const { statistics, series } = expositionOf({ table });
    statistics.counter('a.b').add(1);
    statistics.timer('a.t').record(1);
    expect(await series()).toEqual([]);
  });

  it('writes a full page that Prometheus can parse, with each series once and each family contiguous', async () => {
    const { statistics, page } = expositionOf({ labels: { stage: 'prod' } });
    statistics.counter('ratelimit.service.config_load_success').add(1);
    statistics.counter('ratelimit.memcache.multiget.__code=success').add(1);
    statistics.timer('ratelimit_server.ShouldRateLimit.response_time').record(1);
    statistics.timer('other.time').record(1);
    for (let rule = 0; rule < 2_000; rule += 1) {
      const each = statistics.rule(`shop.user_${rule}.path`);
      each.totalHits = rule + 1;
      each.totalNegativeHits = rule % 2;
    }
    const text = (await page()) + (await processMetrics({ stage: 'prod' }).write());
    const { status, remarks } = promtool(text);
    // The remarks concern names that existing dashboards use.
    expect(status).toBe(3);
    expect(remarks.filter((remark) => !KNOWN_REMARKS.test(remark))).toEqual([]);

    const names = text.match(/^[^#\s]\S*/gm) ?? [];
    expect(new Set(names).size).toBe(names.length);
    const families = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    expect(new Set(families).size).toBe(families.length);
    expect(text).toContain('process_cpu_seconds_total{stage="prod"}');
    expect(text).toContain('nodejs_eventloop_lag_seconds{stage="prod"}');
  });
});

const KNOWN_REMARKS =
  /counter metrics should have "_total" suffix|non-counter metrics should not have "_total" suffix|no help text|use base unit/;

describe('RecentQuantiles', () => {
  it('discards older samples in steps, but keeps them in count and sum', () => {
    let now = 0;
    const quantiles = new RecentQuantiles(1_000, () => now);
    quantiles.add(Float64Array.of(100, 100), 2);
    now = 900;
    quantiles.add(Float64Array.of(1), 1);
    expect(quantiles.quantiles([0, 1]).map(Math.round)).toEqual([1, 100]);
    now = 1_100;
    expect(quantiles.quantiles([0, 1]).map(Math.round)).toEqual([1, 1]);
    now = 100_000;
    expect(quantiles.quantiles([0.5])).toEqual([NaN]);
    expect([quantiles.count, quantiles.sum]).toEqual([3, 201]);
  });
});
