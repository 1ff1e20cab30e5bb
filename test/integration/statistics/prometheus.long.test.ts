import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { freePorts } from '../../support/processes/free-ports';
import { PrometheusProcess } from '../../support/processes/prometheus-process';
import { WeirProcess } from '../../support/processes/weir-process';
import { ExportingServices } from './exporting-services';

const EXAMPLES = join(__dirname, '../../../examples/observability');
const ALERTS = join(EXAMPLES, 'weir-alerts.yaml');

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
}
interface Alerts {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
}
interface RuleGroups {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
}
interface Rule {
  readonly name: string;
  readonly health: string;
  readonly state: string;
  readonly lastError?: string;
}

describe('the examples, with services that export every statistic of them', () => {
  let services: ExportingServices;
  let prometheus: PrometheusProcess;
  let dashboard: Dashboard;
  let alerts: Alerts['groups'][number]['rules'];
  beforeAll(async () => {
    const ports = await freePorts(2);
    // Prometheus takes some seconds to start scraping.
    prometheus = await PrometheusProcess.start({ targets: ports.map((port) => `127.0.0.1:${port}`), rules: [ALERTS] });
    services = await ExportingServices.start(ports);
    await services.work();
    await prometheus.scraped(1);
    await services.work();
    await services.fail();
    await prometheus.scraped(2);
    dashboard = JSON.parse(await readFile(join(EXAMPLES, 'weir-dashboard.json'), 'utf8')) as Dashboard;
    alerts = (parse(await readFile(ALERTS, 'utf8')) as Alerts).groups.flatMap(({ rules }) => rules);
  });
  afterAll(async () => {
    await services[Symbol.asyncDispose]();
    await prometheus[Symbol.asyncDispose]();
  });

  /** Replaces the variables of an expression as Grafana does. */
  function filledIn(expr: string) {
    return expr.replaceAll('$__rate_interval', '1m').replaceAll(/"\$(?:job|instance|domain)"/g, '".*"');
  }

  it('show data in every panel of the dashboard', async () => {
    const shown = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => filledIn(expr)));
    expect(shown.length).toBeGreaterThan(40);
    for (const expr of shown) {
      // On a busy machine a late scrape leaves a gap until the next one.
      await prometheus.until(`data of ${expr}`, async () => {
        // Evaluated half a minute later, since a panel has a step of 15 seconds.
        const samples = await prometheus.query(expr, { inSeconds: 30 });
        return samples.some(({ value }) => Number.isFinite(value));
      });
    }
  });

  it('fill the variables of the dashboard', async () => {
    const choices: Readonly<Record<string, unknown>> = {
      job: 'weir',
      instance: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      domain: 'shop',
    };
    const definitions = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);
    expect(definitions).toHaveLength(3);
    for (const definition of definitions) {
      const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? [];
      const values = await prometheus.api<unknown>(`label/${label}/values`, { 'match[]': filledIn(selector) });
      expect([label, values]).toEqual([label, expect.arrayContaining([choices[label]])]);
    }
  });

  it('have alerts on series that a service exports, which are evaluated without errors', async () => {
    const page = await services.pages();
    for (const { alert, expr } of alerts) {
      const used = [...(expr.match(/\b(?:ratelimit|certs)_\w+/g) ?? []), ...(expr.match(/\b(?!job)\w+="\w+"/g) ?? [])];
      expect([alert, used.filter((each) => !page.includes(each))]).toEqual([alert, []]);
    }
    const { groups } = await prometheus.api<RuleGroups>('rules');
    expect(groups.flatMap(({ rules }) => rules)).toMatchObject(
      alerts.map(({ alert }) => ({ name: alert, health: 'ok' })),
    );
  });

  it('have an alert that is pending before it fires, while others are inactive', async () => {
    const inactive = ['Down', 'WithoutRules', 'XdsDisconnected', 'CertificateExpires', 'CountersGivenUp', 'WorkersDie'];
    // On a busy machine a scrape may come too late, and the service be taken for down until the next one.
    await prometheus.until('the alert is pending, and no other', async () => {
      const { groups } = await prometheus.api<RuleGroups>('rules');
      const states = new Map(groups.flatMap(({ rules }) => rules.map(({ name, state }) => [name, state] as const)));
      return (
        states.get('WeirOldRules') === 'pending' && inactive.every((name) => states.get(`Weir${name}`) === 'inactive')
      );
    });
  });
});

describe('Prometheus scraping a service under load', () => {
  const RULES =
    'domain: shop\ndescriptors: [{ key: user, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1000000 } }]';
  const MAPPING = String.raw`
mappings:
  - match: '^ratelimit\.service\.rate_limit\.([^.]+)\.user_(.+)\.([a-z_]+)$'
    match_type: regex
    name: rule_$3
    labels: { domain: $1, user: $2 }
  - { match: ratelimit_server.*.total_requests, name: calls, labels: { method: $1 } }
  - match: ratelimit_server.*.response_time
    name: decision_seconds
    observer_type: histogram
    histogram_options: { buckets: [0.0001, 0.001, 0.01, 0.1, 1, 10] }
    scale: 0.001
    labels: { method: $1 }
`;
  /** Values that callers send, and the labels that result from them. */
  const USERS = new Map([
    ['plain', 'plain'],
    ['say "hi"', 'say "hi"'],
    [String.raw`back\slash\n`, String.raw`back\slash\n`],
    ['line\nfeed', 'line_feed'],
    ['éßж水', 'éßж水'],
    ['a,b="c"', 'a,b="c"'],
    ['{le="1"} 5 # x', '{le="1"} 5 # x'],
    ['c:d|e', 'c_d_e'],
    ['10.0.0.1', '10_0_0_1'],
  ]);
  const ODD = 'say "hi" \\ to\nall: é';

  let folder: RuleFolder;
  let prometheus: PrometheusProcess;
  let weir: WeirProcess;
  /** The number of requests by label. */
  const requested = new Map<string, number>();
  let calls = 0;

  /** Sends requests for each user in turn, four at a time, until `isOver` returns true. */
  async function load(isOver: () => boolean): Promise<void> {
    using client = new RateLimitClient(weir.grpcAddress);
    const users = [...USERS];
    async function caller(): Promise<void> {
      while (!isOver()) {
        const [value, label] = users[calls % users.length]!;
        calls += 1;
        requested.set(label, (requested.get(label) ?? 0) + 1);
        const entries = [{ key: 'user', value }];
        const descriptor = { entries, limit: undefined, hitsAddend: undefined, isNegativeHits: false };
        await client.shouldRateLimit('shop', [descriptor]);
      }
    }
    await Promise.all(Array.from({ length: 4 }, caller));
  }

  beforeAll(async () => {
    folder = await RuleFolder.with({ 'shop.yaml': RULES });
    const mapping = join(folder.root, 'mapping.yaml');
    await writeFile(mapping, MAPPING);
    const [port] = await freePorts(1);
    const address = `127.0.0.1:${port}`;
    prometheus = await PrometheusProcess.start({ targets: [address] });
    weir = await WeirProcess.start({
      env: {
        ...folder.env,
        USE_PULLMETRICS: 'true',
        PULLMETRICS_ADDR: address,
        PULLMETRICS_MAPPER_YAML: mapping,
        EXTRA_TAGS: `odd:${ODD}`,
      },
    });
    let isOver = false;
    const loaded = load(() => isOver);
    try {
      await prometheus.scraped(4);
    } finally {
      isOver = true;
      await loaded;
    }
  });
  afterAll(async () => {
    await weir[Symbol.asyncDispose]();
    await prometheus[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  it('counts every call once, by its descriptor value', async () => {
    const counted = await prometheus.until('everything to be scraped', async () => {
      const samples = await prometheus.query('rule_total_hits');
      return samples.reduce((all, { value }) => all + value, 0) === calls && samples;
    });
    expect(new Map(counted.map(({ labels, value }) => [labels['user'], value]))).toEqual(requested);
    for (const metric of ['calls{', 'decision_seconds_count{', 'decision_seconds_bucket{le="+Inf",']) {
      expect([metric, await prometheus.value(`${metric}method="ShouldRateLimit"}`)]).toEqual([metric, calls]);
    }
    // Nothing is pushed unless this is set, too.
    expect(weir.output).not.toContain('cannot send statistics');
  });

  it('sees counters increase and never reset', async () => {
    expect(await prometheus.query('increase(rule_total_hits[1h]) > 0')).toHaveLength(USERS.size);
    for (const counter of ['rule_total_hits', 'calls', 'decision_seconds_bucket', 'decision_seconds_sum']) {
      const resets = await prometheus.query(`resets(${counter}[1h])`);
      expect([counter, new Set(resets.map(({ value }) => value))]).toEqual([counter, new Set([0])]);
    }
  });

  it('reads the labels that were set, and the type of each metric', async () => {
    for (const [metric, labels] of [
      ['calls{method="ShouldRateLimit"}', { __name__: 'calls', job: 'weir', method: 'ShouldRateLimit', odd: ODD }],
      ['process_resident_memory_bytes', { job: 'weir', odd: ODD }],
    ] as const) {
      await prometheus.value(metric);
      expect(await prometheus.query(metric)).toMatchObject([{ labels }]);
    }
    const metadata =
      await prometheus.api<readonly { readonly metric: string; readonly type: string }[]>('targets/metadata');
    expect(Object.fromEntries(metadata.map(({ metric, type }) => [metric, type]))).toMatchObject({
      rule_total_hits: 'counter',
      calls: 'counter',
      decision_seconds: 'histogram',
      ratelimit_memory_keys: 'gauge',
    });
  });

  it('scrapes every series once', async () => {
    const surplus =
      'scrape_samples_scraped - on (instance) count by (instance) ({job="weir",__name__!~"up|scrape_.*|ALERTS.*"})';
    expect(await prometheus.value(surplus)).toBe(0);
    for (const reason of ['sample_duplicate_timestamp', 'sample_out_of_order', 'sample_out_of_bounds']) {
      expect([reason, await prometheus.own(`prometheus_target_scrapes_${reason}_total`)]).toEqual([reason, 0]);
    }
  });
});
