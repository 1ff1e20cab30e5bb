import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { processMetrics } from '../../../src/sinks/statistics/process-metrics';
import { DOCUMENTED } from './documented-statistics';
import { TemporaryFolder } from '../../support/data/temporary-folder';

const EXAMPLES = join(__dirname, '../../../examples/observability');
const ALERTS = join(EXAMPLES, 'weir-alerts.yaml');
/** The schema version of Grafana 10.3; Grafana migrates older dashboards from there. */
const SCHEMA_VERSION = 39;

interface Dashboard {
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
  readonly panels: readonly {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
    readonly targets?: readonly { readonly refId: string; readonly expr: string; readonly legendFormat: string }[];
  }[];
}
type Texts = Readonly<Record<string, string>>;
type Times = readonly [name: string, of: object, firing: readonly string[], silent: readonly string[], summary: string];
interface Alerts {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string; labels: Texts; annotations: Texts }[];
  }[];
}

const text = readFileSync(join(EXAMPLES, 'weir-dashboard.json'), 'utf8');
const dashboard = JSON.parse(text) as Dashboard;
const targets = dashboard.panels.flatMap((panel) => panel.targets ?? []);
const alerts = (parse(readFileSync(ALERTS, 'utf8')) as Alerts).groups.flatMap(({ rules }) => rules);

/** Replaces the variables of an expression as Grafana does. */
function filledIn(expr: string) {
  return expr.replaceAll('$__rate_interval', '1m').replaceAll(/"\$(?:job|instance|domain)"/g, '".*"');
}

/** Runs promtool on files, and returns what it prints. */
function promtool(args: readonly string[], files: Readonly<Record<string, string>>): string {
  using folder = new TemporaryFolder();
  for (const [name, content] of Object.entries(files)) folder.write(name, content);
  const options = { cwd: folder.base, encoding: 'utf8' } as const;
  const { error, stdout, stderr } = spawnSync('promtool', [...args, ...Object.keys(files)], options);
  if (error !== undefined) throw error;
  return stdout + stderr;
}

describe('the example dashboard', () => {
  it('has a schema and panels that Grafana reads, and no id or data source of the instance that it was created on', () => {
    expect(dashboard).toMatchObject({
      schemaVersion: SCHEMA_VERSION,
      id: null,
      uid: expect.stringMatching(/^[\w-]{1,40}$/),
    });
    expect(dashboard.templating.list[0]).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' });
    const kinds = dashboard.panels.map(({ type, targets: of = [] }) => (of.length > 0 ? type : `empty ${type}`));
    expect(new Set(kinds)).toEqual(new Set(['empty row', 'timeseries', 'stat']));
    const uids = Array.from(text.matchAll(/"uid": "([^"]*)"/g), ([, uid]) => uid);
    expect(new Set(uids)).toEqual(new Set(['weir', '${datasource}']));
  });

  it('defines every variable that it uses, after those that it depends on', () => {
    const known = new Set<string>();
    function used(of: unknown) {
      return Array.from(JSON.stringify(of).matchAll(/\$\{?(?!__)([a-z]\w*)/g), ([, name]) => name as string);
    }
    for (const variable of dashboard.templating.list) {
      expect([variable.name, used(variable).filter((name) => !known.has(name))]).toEqual([variable.name, []]);
      known.add(variable.name);
    }
    expect(new Set(used(dashboard.panels))).toEqual(known);
  });
});

describe('the queries of the examples', () => {
  const expressions = targets.map(({ expr }) => filledIn(expr));

  it('are accepted by Prometheus', () => {
    const rules = expressions.map((expr, index) => ({ record: `panel_${index}`, expr }));
    expect(rules.length).toBeGreaterThan(40);
    const files = { 'dashboard.yaml': stringify({ groups: [{ name: 'dashboard', rules }] }) };
    expect(promtool(['check', 'rules'], files)).toContain(`SUCCESS: ${rules.length} rules found`);
  });

  // That a service exports these metrics is tested in every-statistic.long.test.ts.
  it('are about metrics and labels of docs/statistics.md, or metrics of the process', async () => {
    const ofProcess = await processMetrics({}).write();
    const variables = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);
    for (const expr of [...expressions, ...variables, ...alerts.map((alert) => alert.expr)]) {
      const names = expr.replaceAll(/\(?\.\+\)?/g, 'any').match(/\b(?:ratelimit|certs|process|nodejs)_\w+/g) ?? [];
      if (!expr.startsWith('up{')) expect([expr, names]).not.toEqual([expr, []]);
      const known = new Set(['job', 'instance', 'le', 'kind', '__name__']);
      for (const name of names) {
        const found = DOCUMENTED.find(({ metric }) => metric.test(name.replace(/_bucket$/, '')));
        if (found === undefined) expect(ofProcess).toContain(`# TYPE ${name} `);
        for (const label of found?.labels ?? []) known.add(label);
      }
      const used = [...expr.matchAll(/(\w+)\s*(?:=~|=)\s*"|\bby \(([\w, ]*)\)|, (\w+)\)$/g)].flatMap(([, ...labels]) =>
        labels.flatMap((label: string | undefined) => label?.split(', ') ?? []),
      );
      expect([expr, used.filter((label) => !known.has(label))]).toEqual([expr, []]);
    }
  });
});

/** Instances of the alerts' series. */
const A = 'job="weir",instance="a"';
const B = A.replace('"a"', '"b"');
const C = A.replace('"a"', '"c"');
const [BUSY, QUIET] = ['job="weir",instance="a",domain="busy"', 'job="weir",instance="a",domain="quiet"'];

/** Servers of a store, one of which changes its condition. */
const [ONE, OTHER] = ['store="main",server="one:6379"', 'store="main",server="other:6379"'];
const CONDITIONS = ['unknown', 'answering', 'slow', 'silent', 'failing', 'away'];

/** In the notation of promtool, one value per minute. */
const SERIES: readonly (readonly [series: string, values: string])[] = [
  [`up{${A}}`, '1x9 0x9 1x9'],
  [`ratelimit_config_loaded_at{${A}}`, '1000000000x30'],
  [`ratelimit_config_loaded_at{${B}}`, '0x11 1000000000x20'],
  [`ratelimit_xds_connected{${A}}`, '1x4 0x10 1x15'],
  [`ratelimit_service_response_time_seconds_bucket{${A},grpc_method="ShouldRateLimit",le="0.05"}`, '0x30'],
  [`ratelimit_service_response_time_seconds_bucket{${A},grpc_method="ShouldRateLimit",le="0.1"}`, '0+60x30'],
  [`ratelimit_service_response_time_seconds_bucket{${A},grpc_method="ShouldRateLimit",le="+Inf"}`, '0+60x30'],
  [`ratelimit_statistics_rolled_up{${A}}`, '0x9 5x60'],
  [`certs_expires_at{${A}}`, '2592000x120'],
  [`certs_expires_at{${B}}`, '864000x120'],
  [`certs_expires_at{${C}}`, '0x120'],
  [`ratelimit_config_rejected{${A}}`, '0x4 1x10 0x15'],
  [`ratelimit_memory_evicted_keys{${A}}`, '0x9 7x60'],
  [`ratelimit_redis_pool_evicted_keys{${A}}`, '0x9 7x60'],
  [`ratelimit_redis_per_second_pool_evicted_keys{${A}}`, '0x50 7x30'],
  [`ratelimit_lease_granted{${A}}`, '0+600x60'],
  [`ratelimit_lease_unused{${A}}`, '0x9 0+60x20 1200x30'],
  [`ratelimit_lease_granted{${B}}`, '0+30x60'],
  [`ratelimit_lease_unused{${B}}`, '0+30x60'],
  [`ratelimit_lease_granted{${C}}`, '0+600x60'],
  [`ratelimit_lease_unused{${C}}`, '0+24x60'],
  [`ratelimit_workers_ready{${A}}`, '2x9 0x9 2x9'],
  [`ratelimit_workers_restarts{${A}}`, '0x9 0+6x9 54x40'],
  [`ratelimit_workers_restarts{${B}}`, '0x9 1x60'],
  ...CONDITIONS.map((each) => [`ratelimit_store_condition{${A},${ONE},condition="${each}"}`, '0x40'] as const),
  [`ratelimit_store_condition{${A},${OTHER},condition="answering"}`, '1x9 0x9 1x20'],
  [`ratelimit_store_condition{${A},${OTHER},condition="silent"}`, '0x9 1x3 0x25'],
  [`ratelimit_store_condition{${A},${OTHER},condition="away"}`, '0x13 1x2 0x22'],
  [`ratelimit_store_condition{${A},${OTHER},condition="failing"}`, '0x16 2x2 0x19'],
  [`ratelimit_store_breaker_open{${B},server="m:11211"}`, '0x24 1x5 0x10'],
  [`ratelimit_service_total_requests{${A},grpc_method="ShouldRateLimit"}`, '0+600x40'],
  [`ratelimit_service_should_rate_limit_error{${A},err_type="redis_error"}`, '0x4 0+60x10 600x15'],
  [`ratelimit_service_should_rate_limit_error{${A},err_type="service_error"}`, '0+60x30'],
  // A rule with two limits, each of which counts all of its hits.
  [`ratelimit_service_rate_limit_over_limit{${BUSY},key1="k",key2="v",window="second"}`, '0+90x30'],
  [`ratelimit_service_rate_limit_total_hits{${BUSY},key1="k",key2="v",window="second"}`, '0+120x30'],
  [`ratelimit_service_rate_limit_over_limit{${BUSY},key1="k",key2="v",window="day"}`, '0x30'],
  [`ratelimit_service_rate_limit_total_hits{${BUSY},key1="k",key2="v",window="day"}`, '0+120x30'],
  [`ratelimit_service_rate_limit_over_limit{${QUIET},key1="k"}`, '0+1x30'],
  [`ratelimit_service_rate_limit_total_hits{${QUIET},key1="k"}`, '0+1x30'],
  // Reported until after an hour, and again half an hour before the end.
  [`ratelimit_service_rate_limit_asks{${QUIET},key1="used"}`, '0+120x160'],
  [`ratelimit_service_rate_limit_total_hits{${QUIET},key1="used"}`, '0+1x60 60x60 61+1x40'],
  [`ratelimit_server_http2_ping_flood{${A}}`, '0+60x40'],
  [`ratelimit_server_http2_rapid_reset{${A}}`, '0+120x40'],
];

/** Values of half an hour, one each 15 s, in which something happens after ten minutes. */
const UNCHANGED = 'x119';
function once(before: string, then: string): string {
  return `${before}x39 ${then}`;
}

type Metrics = Readonly<Record<string, string>>;
const GRPC = 'grpc_method="ShouldRateLimit"';
const RESPONSE = 'ratelimit_service_response_time_seconds_bucket';
const [ERRORS, RULE] = ['ratelimit_service_should_rate_limit_error', 'domain="d",key1="k"'];

/** What happens every night, and the series of an instance that it happens to. */
const HARMLESS: Readonly<Record<string, Metrics>> = {
  'a call of a quiet instance fails or is rejected, late or over the limit': {
    [`ratelimit_service_total_requests{${GRPC}}`]: `0+1${UNCHANGED}`,
    [`${ERRORS}{err_type="redis_error"}`]: once('0', '1x79'),
    [`${ERRORS}{err_type="service_error"}`]: once('0', '1x79'),
    [`${RESPONSE}{${GRPC},le="0.05"}`]: once('0+1', '39+1x79'),
    [`${RESPONSE}{${GRPC},le="0.1"}`]: `0+1${UNCHANGED}`,
    [`${RESPONSE}{${GRPC},le="+Inf"}`]: `0+1${UNCHANGED}`,
    [`ratelimit_service_rate_limit_total_hits{${RULE}}`]: `0+1${UNCHANGED}`,
    [`ratelimit_service_rate_limit_over_limit{${RULE}}`]: once('0', '1x79'),
    [`ratelimit_service_rate_limit_asks{${RULE}}`]: `0+1${UNCHANGED}`,
    ratelimit_lease_granted: `0+1${UNCHANGED}`,
    ratelimit_lease_unused: once('0', '1x79'),
  },
  'the process or its container starts again': {
    up: once('1', '0x1 1x77'),
    ratelimit_config_loaded_at: once('1000000000', 'stale _ 0 1000000600x76'),
    ratelimit_config_rejected: once('0', 'stale _ 0x77'),
    ratelimit_xds_connected: once('1', 'stale _ 0 1x76'),
    ratelimit_workers_ready: once('2', 'stale _ 0 2x76'),
    ratelimit_workers_restarts: once('2', 'stale _ 0x77'),
    ratelimit_statistics_rolled_up: once('3', 'stale _ 0x77'),
    ratelimit_memory_evicted_keys: once('7', 'stale _ 0x77'),
    ratelimit_redis_pool_evicted_keys: once('7', 'stale _ 0x77'),
    ratelimit_redis_per_second_pool_evicted_keys: once('7', 'stale _ 0x77'),
    certs_expires_at: once('2592000', 'stale _ 2592000x77'),
    'ratelimit_store_condition{store="main",server="r:6379",condition="away"}': once('0', 'stale _ 1 0x76'),
    'ratelimit_store_breaker_open{store="main",server="r:6379"}': once('0', 'stale _ 0x77'),
    [`ratelimit_service_total_requests{${GRPC}}`]: once('0+150', 'stale _ 0+150x77'),
    [`${ERRORS}{err_type="redis_error"}`]: once('0', 'stale _ 0 20x76'),
    [`${ERRORS}{err_type="service_error"}`]: once('0', 'stale _ 0 20x76'),
    [`${RESPONSE}{${GRPC},le="0.05"}`]: once('0+150', 'stale _ 0 100+150x76'),
    [`${RESPONSE}{${GRPC},le="0.1"}`]: once('0+150', 'stale _ 0+150x77'),
    [`${RESPONSE}{${GRPC},le="+Inf"}`]: once('0+150', 'stale _ 0+150x77'),
    [`ratelimit_service_rate_limit_total_hits{${RULE}}`]: once('0+150', 'stale _ 0+150x77'),
    [`ratelimit_service_rate_limit_over_limit{${RULE}}`]: once('0+20', 'stale _ 0+20x77'),
    ratelimit_lease_granted: once('0+150', 'stale _ 0+150x77'),
    ratelimit_lease_unused: once('0+1', 'stale _ 0 30+1x76'),
  },
  'a master of the store fails over, the xDS server restarts, a scrape is lost or a worker is replaced, within a second':
    {
      up: once('1', '0 1x78'),
      ratelimit_xds_connected: once('1', '0 1x78'),
      ratelimit_workers_ready: once('2', '1 2x78'),
      ratelimit_workers_restarts: once('0', '1x79'),
      'ratelimit_store_condition{store="main",server="r:6379",condition="silent"}': once('0', '1 0x78'),
      'ratelimit_store_condition{store="main",server="r:6379",condition="away"}': once('0', '0 1 0x77'),
      'ratelimit_store_breaker_open{store="main",server="r:6379"}': once('0', '1x1 0x77'),
      [`ratelimit_service_total_requests{${GRPC}}`]: `0+150${UNCHANGED}`,
      [`${ERRORS}{err_type="redis_error"}`]: once('0', '10x79'),
      [`${RESPONSE}{${GRPC},le="0.05"}`]: once('0+150', '5990+150x79'),
      [`${RESPONSE}{${GRPC},le="0.1"}`]: `0+150${UNCHANGED}`,
      [`${RESPONSE}{${GRPC},le="+Inf"}`]: `0+150${UNCHANGED}`,
      [`ratelimit_service_rate_limit_total_hits{${RULE}}`]: `0+150${UNCHANGED}`,
      [`ratelimit_service_rate_limit_over_limit{${RULE}}`]: once('0', '150x79'),
      ratelimit_lease_granted: `0+150${UNCHANGED}`,
      ratelimit_lease_unused: once('0', '20x79'),
    },
};

describe('the example alerts', () => {
  const [a, b] = [{ instance: 'a' }, { instance: 'b' }];
  const expiry = 'The certificate of b expires at 1970-01-11 00:00:00 +0000 UTC';
  const slow = 'One in a hundred decisions of a takes longer than 99.5ms';
  const other = { ...a, store: 'main', server: 'other:6379' };
  function away(server: string) {
    return `The store ${server} does not answer`;
  }

  const UNREPORTED = 'Nothing that used in quiet limits is reported';

  const TIMES: readonly Times[] = [
    ['WeirDown', a, ['12m'], ['9m', '25m'], 'a of weir cannot be scraped'],
    ['WeirOldRules', a, ['12m'], ['8m', '20m'], 'a rejected the newest rules'],
    ['WeirWithoutRules', b, ['9m'], ['4m', '20m'], 'b has had no rules since it started'],
    ['WeirXdsDisconnected', a, ['12m'], ['4m', '20m'], 'a has no stream to its management server'],
    ['WeirSlowDecisions', a, ['20m'], ['5m'], slow],
    ['WeirStatisticsRolledUp', a, ['16m'], ['9m', '40m'], 'a merges some statistics'],
    ['WeirCertificateExpires', b, ['90m'], ['30m'], expiry],
    ['WeirStoreErrors', a, ['12m'], ['5m', '25m'], 'a cannot count: 10% of the calls fail'],
    ['WeirRejectedCalls', a, ['10m'], ['1m'], 'a rejects 10% of its calls'],
    ['WeirStoreAway', other, ['11m', '14m', '17m'], ['9m', '10m', '20m'], away('other:6379 of a')],
    ['WeirStoreAway', { ...b, server: 'm:11211' }, ['27m'], ['24m', '35m'], away('m:11211 of b')],
    ['WeirCountersGivenUp', a, ['12m'], ['9m', '40m'], 'a evicts counters for lack of room'],
    ['WeirStoreEvicts', a, ['12m', '55m'], ['9m', '40m'], 'The store of a evicts keys for lack of memory'],
    ['WeirLeasesUnused', a, ['30m'], ['9m', '50m'], 'a does not use 10% of the hits that it leases'],
    ['WeirNoWorkers', a, ['12m'], ['9m', '25m'], 'No worker of a is ready'],
    ['WeirWorkersDie', a, ['15m'], ['9m', '50m'], 'Workers of a keep dying'],
    ['WeirUsageUnreported', { domain: 'quiet', key1: 'used' }, ['110m'], ['90m', '130m'], UNREPORTED],
    ['WeirManyOverLimit', { domain: 'busy' }, ['20m'], ['9m'], '75% of the hits in busy are over the limit'],
  ];

  it('fire and resolve at the expected times', () => {
    const alert_rule_test = TIMES.flatMap(([alertname, of, firing, silent, summary]) => {
      const { labels, annotations } = alerts.find(({ alert }) => alert === alertname)!;
      const description = annotations['description']?.replace(/\{\{.*\}\}/s, '2001-09-09 01:46:40 +0000 UTC');
      const exp_alerts = [
        { exp_labels: { job: 'weir', ...labels, ...of }, exp_annotations: { ...annotations, summary, description } },
      ];
      return [
        ...firing.map((eval_time) => ({ alertname, eval_time, exp_alerts })),
        ...silent.map((eval_time) => ({ alertname, eval_time, exp_alerts: [] as typeof exp_alerts })),
      ];
    });
    expectSuccess({ alert_rule_test });
  });

  it('are those whose times are tested, next to a panel that shows the rejections of the gRPC listener by kind', () => {
    expect(new Set(TIMES.map(([name]) => name))).toEqual(new Set(alerts.map(({ alert }) => alert)));
    const expr = filledIn(targets.find((each) => each.expr.includes('http2'))?.expr ?? '');
    const exp_samples = [
      { labels: '{kind="ping_flood"}', value: 1 },
      { labels: '{kind="rapid_reset"}', value: 2 },
    ];
    expectSuccess({ promql_expr_test: [{ expr, eval_time: '20m', exp_samples }] });
  });

  it('are played with all of their metrics where nothing needs action', () => {
    const played = Object.values(HARMLESS).flatMap((metrics) => Object.keys(metrics));
    const names = new Set(played.map((series) => series.replace(/\{.*/, '')));
    const used = alerts.flatMap(({ expr }) => expr.match(/\b(?:ratelimit|certs)_\w+|^up\b/gm) ?? []);
    expect(names).toEqual(new Set(used));
  });

  it.each(Object.entries(HARMLESS))('do not fire when %s', (_, metrics) => {
    const input_series = Object.entries(metrics).map(([series, values]) => {
      const [name, labels = ''] = series.split(/[{}]/);
      return { series: `${name}{${[A, labels].filter(Boolean).join()}}`, values };
    });
    const times = Array.from({ length: 120 }, (__, index) => `${index * 15}s`);
    const alert_rule_test = alerts.flatMap(({ alert: alertname }) =>
      times.map((eval_time) => ({ alertname, eval_time, exp_alerts: [] })),
    );
    expectSuccess({ input_series, alert_rule_test }, '15s');
  });

  /** Runs a test of promtool on the alerts and series. */
  function expectSuccess(test: object, interval = '1m'): void {
    const input_series = SERIES.map(([series, values]) => ({ series, values }));
    const content = {
      rule_files: [ALERTS],
      evaluation_interval: interval,
      tests: [{ interval, input_series, ...test }],
    };
    expect(promtool(['test', 'rules'], { 'tests.yaml': stringify(content) })).toContain('SUCCESS');
  }
});
