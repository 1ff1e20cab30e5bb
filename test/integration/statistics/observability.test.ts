import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { hello, ping } from '../../grpc/http2/frames';
import { AdsServer, SnapshotCache } from '../../support/ads-server';
import { RateLimitClient } from '../../support/grpc-client';
import { RedisProcess } from '../../support/redis/redis-process';
import { simpleResource } from '../../support/rule-resources';
import { RuleFolder } from '../../support/rule-folder';
import { WeirProcess } from '../../support/weir-process';
import { groupingsOf, selectorsOf } from './promql';

const EXAMPLES = join(__dirname, '../../../examples/observability');
const ALERTS = join(EXAMPLES, 'weir-alerts.yaml');
const SCRAPED = { USE_PULLMETRICS: 'true', PULLMETRICS_ADDR: '127.0.0.1:0' };

interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}
interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}
interface Alerts {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
}

let exported: readonly Series[];
let dashboard: Dashboard;
let alerts: Alerts['groups'][number]['rules'];

/** A service on Redis with rules from files, to which everything happens that moves a statistic of the examples. */
async function countedInRedis(): Promise<readonly Series[]> {
  await using redis = await RedisProcess.start();
  await using folder = await RuleFolder.with({
    'shop.yaml': `
domain: shop
descriptors:
  - { key: k, rate_limit: { unit: day, requests_per_unit: 10 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: one, descriptors: [{ key: two, rate_limit: { unit: day, requests_per_unit: 0 } }] }
`,
  });
  await using weir = await WeirProcess.start({
    env: {
      ...folder.env,
      ...SCRAPED,
      BACKEND_TYPE: 'kvstore',
      KVSTORE_URL: redis.address,
      KVSTORE_PERSECOND: 'true',
      KVSTORE_PERSECOND_URL: redis.address,
      KVSTORE_PIPELINE_WINDOW: '20ms',
      LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
    },
  });
  using client = new RateLimitClient(weir.grpcAddress);
  await client.ask('shop', ['k'], 9);
  await Promise.all([client.ask('shop', ['k'], 1), client.ask('shop', ['k'], 1)]);
  await client.ask('shop', ['shadow', 'one,two']);
  await expect(client.ask('', ['k'])).rejects.toThrow('domain');
  const attacker = connect(weir.ports.grpc, '127.0.0.1');
  await once(attacker, 'connect');
  attacker.on('error', () => undefined).write(Buffer.concat([hello(), ...Array.from({ length: 100 }, () => ping())]));
  await weir.until('the flood to be counted', async () =>
    (await weir.statistics()).has('ratelimit_server.http2.ping_flood'),
  );
  attacker.destroy();
  await folder.write('bad.yaml', 'domain: [');
  await weir.line(/the new rules are refused/);
  await redis.crash();
  await weir.until('a call that the store fails', () =>
    // Of a value that the over limit cache does not know.
    client.ask('shop', ['k=other']).then(
      () => false,
      () => true,
    ),
  );
  await weir.until('the connections to be counted as closed', async () =>
    (await weir.statistics()).has('ratelimit.redis_per_second_pool.cx_local_close'),
  );
  return seriesOf(await scrape(weir));
}

/** A service that counts in memory, with rules from a management server and SHADOW_MODE. */
async function countedInMemory(): Promise<readonly Series[]> {
  const cache = new SnapshotCache();
  cache.publish('1', [simpleResource('shop', 0)]);
  await using server = await AdsServer.start({ cache });
  await using weir = await WeirProcess.start({
    env: {
      ...SCRAPED,
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: server.address,
      SHADOW_MODE: 'true',
    },
  });
  using client = new RateLimitClient(weir.grpcAddress);
  await client.ask('shop', ['key=a']);
  return seriesOf(await scrape(weir));
}

async function scrape(weir: WeirProcess): Promise<string> {
  const port = /port=(\d+)/.exec(await weir.line(/metrics can be scraped/))?.[1];
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
}

function seriesOf(page: string): readonly Series[] {
  return page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = ''] = /^([\w:]+)(?:\{(.*)\})? /.exec(line) ?? [];
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, value]) => [label, value] as const);
      return { name, labels: Object.fromEntries(pairs) };
    });
}

/** What promtool says, failing with it when it is not content. */
function promtool(...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('promtool', args, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(`${error.message}\n${stdout}${stderr}`)),
    );
  });
}

/** Writes what it is given as YAML and lets promtool judge it. */
async function judge(command: 'check' | 'test', content: unknown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'weir-promtool-'));
  try {
    const file = join(folder, 'rules.yaml');
    await writeFile(file, stringify(content));
    return await promtool(command, 'rules', file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What Grafana makes of an expression before Prometheus sees it. */
const filledIn = (expr: string) =>
  expr.replaceAll('$__rate_interval', '1m').replaceAll(/"\$(?:job|instance|domain)"/g, '".*"');

const expressionsOf = ({ panels }: Dashboard) =>
  panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr: filledIn(expr) })));

/** The selectors of an expression that no series of ours fits. */
function unknownTo(series: readonly Series[], expr: string): readonly string[] {
  return selectorsOf(expr)
    .filter(({ name }) => !name.test('up'))
    .filter(
      ({ name, labels }) =>
        !series.some(
          (each) =>
            name.test(each.name) && Object.entries(labels).every(([label, value]) => each.labels[label] === value),
        ),
    )
    .map(({ name, labels }) => `${name.source} ${JSON.stringify(labels)}`);
}

beforeAll(async () => {
  const both = await Promise.all([countedInRedis(), countedInMemory()]);
  exported = both.flat();
  dashboard = JSON.parse(await readFile(join(EXAMPLES, 'weir-dashboard.json'), 'utf8')) as Dashboard;
  alerts = (parse(await readFile(ALERTS, 'utf8')) as Alerts).groups.flatMap(({ rules }) => rules);
});

describe('the dashboard', () => {
  it('asks only for series that a service exports', () => {
    const unknown = expressionsOf(dashboard).flatMap(({ title, expr }) =>
      unknownTo(exported, expr).map((selector) => `${title}: ${selector}`),
    );
    expect(unknown).toEqual([]);
    expect(expressionsOf(dashboard).length).toBeGreaterThan(40);
  });

  it('fills its variables from series that a service exports', () => {
    const definitions = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);
    expect(definitions).toHaveLength(3);
    for (const definition of definitions) {
      const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? [];
      expect(unknownTo(exported, filledIn(selector))).toEqual([]);
      expect(label === 'domain' ? exported.some(({ labels }) => label in labels) : label).toBeTruthy();
    }
  });

  it('groups by labels, and names in legends what it groups by', () => {
    const labels = new Set([...exported.flatMap((each) => Object.keys(each.labels)), 'job', 'instance', 'kind']);
    for (const { title, targets = [] } of dashboard.panels) {
      for (const { expr, legendFormat } of targets) {
        const grouped = groupingsOf(expr);
        const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label as string);
        expect([title, grouped.filter((label) => !labels.has(label))]).toEqual([title, []]);
        if (/\b(?:sum|topk|histogram_quantile)\b/.test(expr)) {
          expect([title, named.filter((label) => !grouped.includes(label))]).toEqual([title, []]);
        }
      }
    }
  });

  it('has expressions that Prometheus understands', async () => {
    const rules = expressionsOf(dashboard).map(({ expr }, index) => ({ record: `panel_${index}`, expr }));
    await expect(judge('check', { groups: [{ name: 'dashboard', rules }] })).resolves.toContain('SUCCESS');
  });

  it('counts what the gRPC listener refuses by kind', async () => {
    const expr = expressionsOf(dashboard).find((each) => each.expr.includes('http2'))?.expr ?? '';
    const content = {
      evaluation_interval: '15s',
      tests: [
        {
          interval: '15s',
          input_series: [
            { series: 'ratelimit_server_http2_ping_flood{job="weir",instance="a"}', values: '0+15x40' },
            { series: 'ratelimit_server_http2_rapid_reset{job="weir",instance="a"}', values: '0+30x40' },
          ],
          promql_expr_test: [
            {
              expr,
              eval_time: '10m',
              exp_samples: [
                { labels: '{kind="ping_flood"}', value: 1 },
                { labels: '{kind="rapid_reset"}', value: 2 },
              ],
            },
          ],
        },
      ],
    };
    await expect(judge('test', content)).resolves.toContain('SUCCESS');
  });

  it('has panels that do not overlap, each with an id of its own', () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });
});

describe('the alerts', () => {
  it('are rules that Prometheus accepts', async () => {
    await expect(promtool('check', 'rules', ALERTS)).resolves.toContain(`SUCCESS: ${alerts.length} rules found`);
  });

  it('ask only for series that a service exports', () => {
    expect(alerts.flatMap(({ alert, expr }) => unknownTo(exported, expr).map((each) => `${alert}: ${each}`))).toEqual(
      [],
    );
  });

  it('come when they should, and go again', async () => {
    const weir = { job: 'weir', instance: 'a' };
    const alert = (name: string, at: string, exp_alerts: readonly object[]) => ({
      alertname: name,
      eval_time: at,
      exp_alerts,
    });
    const content = {
      rule_files: [ALERTS],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: [
            { series: 'up{job="weir",instance="a"}', values: '1x9 0x9 1x9' },
            { series: 'ratelimit_config_loaded_at{job="weir",instance="a"}', values: '1000000000x30' },
            { series: 'ratelimit_config_rejected{job="weir",instance="a"}', values: '0x4 1x10 0x15' },
            {
              series: 'ratelimit_service_should_rate_limit_error{job="weir",instance="a",err_type="redis_error"}',
              values: '0x4 0+60x10 600x15',
            },
            {
              series: 'ratelimit_service_should_rate_limit_error{job="weir",instance="a",err_type="service_error"}',
              values: '0+60x30',
            },
            {
              series:
                'ratelimit_service_rate_limit_over_limit{job="weir",instance="a",domain="busy",key1="k",key2="v"}',
              values: '0+90x30',
            },
            {
              series:
                'ratelimit_service_rate_limit_total_hits{job="weir",instance="a",domain="busy",key1="k",key2="v"}',
              values: '0+120x30',
            },
            {
              series: 'ratelimit_service_rate_limit_over_limit{job="weir",instance="a",domain="quiet",key1="k"}',
              values: '0+1x30',
            },
            {
              series: 'ratelimit_service_rate_limit_total_hits{job="weir",instance="a",domain="quiet",key1="k"}',
              values: '0+1x30',
            },
          ],
          alert_rule_test: [
            alert('WeirDown', '9m', []),
            alert('WeirDown', '12m', [
              {
                exp_labels: { ...weir, severity: 'critical' },
                exp_annotations: {
                  summary: 'a of weir cannot be scraped',
                  description:
                    'While no instance answers, proxies let calls pass or fail them, as they are configured to.',
                },
              },
            ]),
            alert('WeirDown', '25m', []),
            alert('WeirOldRules', '8m', []),
            alert('WeirOldRules', '12m', [
              {
                exp_labels: { ...weir, severity: 'warning' },
                exp_annotations: {
                  summary: 'a refuses the newest rules',
                  description:
                    'Rules from 2001-09-09 01:46:40 +0000 UTC are in force. /rlconfig on the debug port, and the log, say what is wrong with the new ones.',
                },
              },
            ]),
            alert('WeirOldRules', '20m', []),
            alert('WeirWithoutRules', '20m', []),
            alert('WeirStoreErrors', '5m', []),
            alert('WeirStoreErrors', '12m', [
              {
                exp_labels: { ...weir, severity: 'critical' },
                exp_annotations: {
                  summary: 'a cannot count: 1 calls a second fail',
                  description: 'The counter store fails these calls or answers too late.',
                },
              },
            ]),
            alert('WeirStoreErrors', '25m', []),
            alert('WeirManyOverLimit', '20m', [
              {
                exp_labels: { job: 'weir', domain: 'busy', severity: 'warning' },
                exp_annotations: {
                  summary: '75% of the hits in busy are over the limit',
                  description: 'Somebody sends far more than is allowed, or a limit is far too low.',
                },
              },
            ]),
          ],
        },
      ],
    };
    await expect(judge('test', content)).resolves.toContain('SUCCESS');
  });
});
