import { spawnSync } from 'node:child_process';
import type { ListedOffender } from '../../../src/limiter/offender';
import { builtInMapping } from '../../../src/sinks/statistics/built-in-mapping';
import { exposition } from '../../../src/sinks/statistics/exposition';
import { Mapper, type MappingTable } from '../../../src/sinks/statistics/mapping';
import { readMappingFile } from '../../../src/sinks/statistics/mapping-file';
import { mergeMetrics, processMetrics } from '../../../src/sinks/statistics/process-metrics';
import { offenderSeries } from '../../../src/sinks/statistics/series';
import { Statistics } from '../../../src/statistics/statistics';
import type { Tags } from '../../../src/statistics/tags';
import { listedOffender } from '../../support/data/offenders';
import { turnsDuring } from '../../support/waiting/turns';

interface Setup {
  readonly table?: MappingTable;
  readonly labels?: Tags;
  readonly reserved?: ReadonlySet<string>;
  readonly now?: () => number;
}

function expositionOf({ table = builtInMapping(false), labels = {}, reserved = new Set(), now = () => 0 }: Setup = {}) {
  const statistics = new Statistics(100_000);
  const conflicts: string[] = [];
  const mapped = {
    statistics,
    mapper: new Mapper(table),
    labels,
    onConflict: (metric: string) => conflicts.push(metric),
  };
  const pieces = exposition(mapped, reserved, now);
  async function page(): Promise<string> {
    let text = '';
    for await (const piece of pieces()) text += piece;
    return text;
  }
  /** The lines of series, without those of a new registry. */
  async function series(): Promise<readonly string[]> {
    return (await page()).split('\n').filter((line) => !/^(#|$|ratelimit_statistics_)/.test(line));
  }
  return { statistics, conflicts, page, series };
}

/**
 * Checks a page with promtool, which parses like Prometheus. Status 0: valid; 3: valid with remarks on style; 1:
 * invalid.
 */
function promtool(page: string) {
  const { status, stderr, error } = spawnSync('promtool', ['check', 'metrics'], { input: page, encoding: 'utf8' });
  if (error !== undefined) throw error;
  return { status, remarks: stderr.split('\n').filter((line) => line !== '') };
}

const RULE = 'ratelimit_service_rate_limit';

describe('the metrics page', () => {
  it('has counters as 0 from the start, and gauges with their tags as labels', async () => {
    const { statistics, series } = expositionOf({ labels: { stage: 'prod' } });
    const errors = statistics.counter('ratelimit.service.config_load_error');
    statistics.gauge('ratelimit.build_info', () => 1, { version: '1.2.3', node: '20.20.0' });
    const gauge = 'ratelimit_build_info{node="20.20.0",stage="prod",version="1.2.3"} 1';
    expect(await series()).toEqual(['ratelimit_service_config_load_error{stage="prod"} 0', gauge]);
    errors.add(3e21);
    const large = '3000000000000000000000';
    expect(await series()).toEqual([`ratelimit_service_config_load_error{stage="prod"} ${large}`, gauge]);
  });

  it('has the statistics of rules that have changed, labelled with domain and keys', async () => {
    const { statistics, series } = expositionOf();
    const one = statistics.rule('shop.user_a');
    one.totalHits = 3;
    one.overLimit = 1;
    statistics.rule('shop.user.path_x').totalHits = 2;
    const others = [
      `${RULE}_total_hits{domain="shop",key1="user",key2="path_x"} 2`,
      `${RULE}_over_limit{domain="shop",key1="user_a"} 1`,
    ];
    expect(await series()).toEqual([`${RULE}_total_hits{domain="shop",key1="user_a"} 3`, ...others]);
    one.totalHits += 4;
    one.withinLimit = 5;
    others.push(`${RULE}_within_limit{domain="shop",key1="user_a"} 5`);
    expect(await series()).toEqual([`${RULE}_total_hits{domain="shop",key1="user_a"} 7`, ...others]);
  });

  it('has the window of one of several limits as a label, and keys that are called like a window as keys', async () => {
    const limits = [
      ['shop.user.second', 'second'],
      ['shop.user.5minute', '5minute'],
      ['shop.user.path_x.1.2.3.day', 'day'],
      ['shop.team.second', undefined],
    ] as const;
    const { statistics, series } = expositionOf();
    const mapped = expositionOf({
      table: readMappingFile('mappings: [{ match: "*.*.*.*.user.*.total_hits", name: m }]'),
    });
    for (const registry of [statistics, mapped.statistics]) {
      for (const [key, window] of limits) registry.rule(key, window).totalHits = 2;
      registry.runtimeRule('shop.user.second', 'shop.user.second', 'second').totalNegativeHits = 1;
    }
    expect(await series()).toEqual([
      `${RULE}_total_hits{domain="shop",key1="user",window="second"} 2`,
      `${RULE}_total_hits{domain="shop",key1="user",window="5minute"} 2`,
      `${RULE}_total_hits{domain="shop",key1="user",key2="path_x",key3="1.2.3",window="day"} 2`,
      `${RULE}_total_hits{domain="shop",key1="team",key2="second"} 2`,
      `${RULE}_shop_user_total_negative_hits{window="second"} 1`,
    ]);
    expect((await mapped.series()).slice(0, 2)).toEqual(['m 4', `${RULE}_shop_user_second_total_negative_hits 1`]);
  });

  it('has an unmapped statistic under its own name', async () => {
    const { statistics, series } = expositionOf();
    statistics.counter('ratelimit.service.global_shadow_mode').add(1);
    statistics.gauge('9.of-them', () => 0.5);
    statistics.rule('sh-op.k').overLimitWithLocalCache = 2;
    expect(await series()).toEqual([
      'ratelimit_service_global_shadow_mode 1',
      `${RULE}_sh_op_k_over_limit_with_local_cache 2`,
      '_9_of_them 0.5',
    ]);
  });

  it('has response times as a cumulative histogram in seconds', async () => {
    const { statistics, series } = expositionOf();
    const timer = statistics.timer('ratelimit_server.ShouldRateLimit.response_time');
    for (const milliseconds of [0.04, 0.05, 0.2, 700, 20_000]) timer.record(milliseconds);
    const method = 'grpc_method="ShouldRateLimit"';
    const name = 'ratelimit_service_response_time_seconds';
    const lines = await series();
    expect(lines).toHaveLength(20);
    const buckets = { '0.00005': 2, '0.00025': 3, '0.5': 3, '1': 4, '10': 4, '+Inf': 5 };
    const written = Object.entries(buckets).map(([le, count]) => `${name}_bucket{${method},le="${le}"} ${count}`);
    expect(lines).toEqual(expect.arrayContaining([...written, `${name}_count{${method}} 5`]));
    expect(Number(lines.find((line) => line.startsWith(`${name}_sum{`))?.split(' ')[1])).toBeCloseTo(20.70029, 9);
  });

  it('has unmapped timers as summaries in milliseconds', async () => {
    const { statistics, series } = expositionOf({ table: readMappingFile('') });
    const timer = statistics.timer('a.time');
    const empty = ['0.5', '0.9', '0.99'].map((quantile) => `a_time{quantile="${quantile}"} NaN`);
    expect(await series()).toEqual([...empty, 'a_time_sum 0', 'a_time_count 0']);
    for (let value = 1; value <= 100; value += 1) timer.record(value);
    const [median, ...others] = await series();
    expect(Number(median?.split(' ')[1])).toBeCloseTo(50, -0.5);
    expect(others.slice(-2)).toEqual(['a_time_sum 5050', 'a_time_count 100']);
  });

  it('has quantiles of recent samples only, but all of them in sum and count', async () => {
    let now = 0;
    const defaults = 'observer_type: summary, summary_options: {max_age: 1s, quantiles: [{quantile: 1}]}';
    const { statistics, series } = expositionOf({ table: readMappingFile(`defaults: {${defaults}}`), now: () => now });
    const timer = statistics.timer('t');
    const greatest: number[] = [];
    for (const [at, values] of [
      [0, [100, 100]],
      [900, [1]],
      [1_100, []],
      [100_000, []],
    ] as const) {
      now = at;
      for (const value of values) timer.record(value);
      const [quantile = '', ...others] = await series();
      greatest.push(Math.round(Number(quantile.split(' ')[1])));
      if (at > 0) expect(others).toEqual(['t_sum 201', 't_count 3']);
    }
    expect(greatest).toEqual([100, 100, 1, NaN]);
  });

  it('has EXTRA_TAGS and tags as labels, which those of the mapping override unless honor_labels is set', async () => {
    const table = readMappingFile(`
mappings:
- {match: a.own, name: m, labels: {stage: mine, code: mine}}
- {match: a.honours, name: n, labels: {stage: mine, code: mine}, honor_labels: true}
`);
    const { statistics, series } = expositionOf({ table, labels: { stage: 'prod.1', 'a-z': 'x' } });
    for (const name of ['none', 'own', 'honours']) statistics.counter(`a.${name}.__code=success`).add(1);
    statistics.counter('a.none.__code=error').add(2);
    expect(await series()).toEqual([
      'a_none{a_z="x",code="success",stage="prod.1"} 1',
      'a_none{a_z="x",code="error",stage="prod.1"} 2',
      'm{a_z="x",code="mine",stage="mine"} 1',
      'n{a_z="x",code="success",stage="prod.1"} 1',
    ]);
  });

  it('has label values escaped, so that a caller cannot imitate other labels', async () => {
    const { statistics, page, series } = expositionOf();
    const written = [
      ['1,b="2', String.raw`1,b=\"2`],
      ['1",b="2', String.raw`1\",b=\"2`],
      ['back\\slash', String.raw`back\\slash`],
      ['ünï \ud800', 'ünï \ud800'],
    ] as const;
    for (const [value] of written) statistics.rule(`d.k_${value}`).totalHits = 1;
    expect(await series()).toEqual(written.map(([, text]) => `${RULE}_total_hits{domain="d",key1="k_${text}"} 1`));
    expect(promtool(await page()).status).toBe(3);
  });

  it('has the sum of statistics that are mapped to one series, each with its scale', async () => {
    const table = readMappingFile(`
mappings:
- {match: a.b, name: m, scale: 0.5}
- {match: a.c, name: m, scale: 10}
- {match: a.d, name: m}
- {match: e.*, name: n}
`);
    const { statistics, series } = expositionOf({ table });
    for (const name of ['a.b', 'a.c', 'a.d']) statistics.counter(name).add(2);
    statistics.timer('x.y-z').record(1);
    statistics.timer('x.y_z').record(2);
    // With work per statistic that grows with their number, this takes minutes.
    for (let index = 0; index < 100_000; index += 1) statistics.counter(`e.${index}`).add(2);
    const lines = (await series()).filter((line) => /^(?:m|n|x_y_z_count) /.test(line));
    expect(lines).toEqual(['x_y_z_count 2', 'm 23', 'n 200000']);
  });

  it('is mapped and written in turns of the event loop, of which none takes long', async () => {
    function turnsOf(milliseconds: number): Promise<number> {
      let now = 0;
      const { statistics, page } = expositionOf({ now: () => (now += milliseconds) });
      for (let rule = 0; rule < 10_000; rule += 1) statistics.rule(`shop.user_${rule}`).totalHits = 1;
      return turnsDuring(page());
    }
    // Twenty pieces of text; with a slow clock, one for every two times that it is read.
    expect(await turnsOf(0)).toBeLessThan(100);
    expect(await turnsOf(1)).toBeGreaterThan(400);
  });

  it('omits statistics whose mapped name is empty, and those that the mapping drops', async () => {
    const table = readMappingFile(`
mappings:
- {match: "^a(b)?", match_type: regex, name: "$1", labels: {x: y}}
- {match: "d.*", action: drop}
`);
    const { statistics, series, page } = expositionOf({ table });
    statistics.counter('ab').add(2);
    for (const name of ['a', 'd.b']) statistics.counter(name).add(1);
    for (const name of ['a.time', 'd.time']) statistics.timer(name).record(1);
    expect(await series()).toEqual(['b{x="y"} 2']);
    expect(promtool(await page()).status).not.toBe(1);
  });

  it('omits metrics that conflict with another one, and reports each once', async () => {
    const { statistics, conflicts, series } = expositionOf({ reserved: new Set(['process_x']) });
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

  it('is one that Prometheus can parse when it is full, with each series once and each family contiguous', async () => {
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

    for (const names of [text.match(/^[^#\s]\S*/gm), text.match(/^# TYPE \S+/gm)]) {
      expect(new Set(names).size).toBe(names?.length);
    }
    expect(text).toMatch(/process_cpu_seconds_total\{stage="prod"\}[^]*nodejs_eventloop_lag_seconds\{stage="prod"\}/);
  });
});

const KNOWN_REMARKS =
  /counter metrics should have "_total" suffix|non-counter metrics should not have "_total" suffix|no help text|use base unit/;

describe('the metrics of several processes', () => {
  const a = '# HELP a text\n# TYPE a gauge\n';
  const b = '# HELP b text # HELP\n# TYPE b counter\n';
  const c = '# HELP c text\n# TYPE c gauge\n';

  it('are one page, with the series of each metric together', () => {
    const page = `${a}a 1\n\n${b}b{x="1"} 1\nb{x="2"} 2\n`;
    const ofWorker = `${b}b{worker="1"} 3\n\n${c}c{worker="1"} 4\n`;
    const merged = `${a}a 1\n${b}b{x="1"} 1\nb{x="2"} 2\nb{worker="1"} 3\n${c}c{worker="1"} 4\n`;
    expect(mergeMetrics([page, ofWorker])).toBe(merged);
    // Such labels do not end a line.
    const hostile = `${a}a{x="1\r# HELP b text\u2028# HELP b text\u2029# HELP b text"} 1\n`;
    expect(mergeMetrics([hostile])).toBe(hostile);
  });

  it('are a page that Prometheus accepts', async () => {
    const own = await processMetrics({ region: 'eu' }).write();
    const page = mergeMetrics([own, own.replaceAll('region="eu"', 'region="eu",worker="1"')]);
    expect(page.match(/^process_resident_memory_bytes\{.*$/gm)).toHaveLength(2);
    expect(page.match(/^# TYPE process_resident_memory_bytes/gm)).toHaveLength(1);
    // Only with the remarks on pages of prom-client.
    expect(promtool(page)).toEqual(promtool(own));
  });
});

describe('the series of offenders', () => {
  function offender(descriptor: string, limited: number, isShadow = false): ListedOffender {
    return listedOffender({ descriptor, isShadow, limited });
  }
  function samplesOf(offenders: readonly ListedOffender[], extra = {}): readonly string[] {
    const lines = offenderSeries(offenders, extra).trimEnd().split('\n');
    return lines.filter((line) => !line.startsWith('#'));
  }

  it('have the texts as labels, next to the extra ones, which do not replace them', () => {
    const offenders = [offender('user=anna', 7), offender('user=b', 2, true)];
    expect(samplesOf(offenders, { zone: 'a', rule: 'x' })).toEqual([
      'ratelimit_offender_limited{descriptor="user=anna",domain="shop",rule="shop.user",shadow_mode="false",zone="a"} 7',
      'ratelimit_offender_limited{descriptor="user=b",domain="shop",rule="shop.user",shadow_mode="true",zone="a"} 2',
    ]);
  });

  it('escape what a caller sends, are added up where the labels are the same, and have a type when there are none', () => {
    const [sample, ...others] = samplesOf([offender('user=a"} 1\nratelimit_forged{x="\\', 1)]);
    expect(others).toEqual([]);
    expect(sample).toContain(String.raw`descriptor="user=a\"} 1\nratelimit_forged{x=\"\\"`);
    expect(samplesOf([offender('user=x…', 3), offender('user=x…', 2)])).toEqual([expect.stringMatching(/ 5$/)]);
    expect(offenderSeries([], {})).toMatch(
      /^# HELP ratelimit_offender_limited .+\n# TYPE ratelimit_offender_limited gauge\n$/,
    );
  });
});
