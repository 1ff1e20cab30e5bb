import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { freePorts } from '../../support/processes/free-ports';
import { PrometheusProcess } from '../../support/processes/prometheus-process';
import { promtool, promtoolRules } from './promtool';
import { groupingsOf, selectorsOf } from './promql';
import { ExportingServices } from './exporting-services';

const EXAMPLES = join(__dirname, '../../../examples/observability');
const ALERTS = join(EXAMPLES, 'weir-alerts.yaml');

interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}
interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}
interface Alerts {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
}

interface RuleGroups {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly name: string;
      readonly health: string;
      readonly state: string;
      readonly lastError?: string;
    }[];
  }[];
}

let services: ExportingServices;
let prometheus: PrometheusProcess;
let exported: readonly Series[];
let dashboard: Dashboard;
let alerts: Alerts['groups'][number]['rules'];

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

/** Replaces the variables of an expression as Grafana does. */
function filledIn(expr: string) {
  return expr.replaceAll('$__rate_interval', '1m').replaceAll(/"\$(?:job|instance|domain)"/g, '".*"');
}

function expressionsOf({ panels }: Dashboard) {
  return panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr: filledIn(expr) })));
}

/** Some of the choices of each variable. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  job: ['weir'],
  instance: [expect.stringMatching(/^127\.0\.0\.1:\d+$/) as string],
  domain: ['shop'],
};

/** The selectors of an expression that match no exported series. */
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
  const ports = await freePorts(2);
  const targets = ports.map((port) => `127.0.0.1:${port}`);
  // Prometheus takes some seconds to start scraping.
  prometheus = await PrometheusProcess.start({ targets, rules: [ALERTS] });
  services = await ExportingServices.start(ports);
  await services.work();
  await prometheus.scraped(1);
  await services.work();
  await services.fail();
  await prometheus.scraped(2);
  exported = seriesOf(await services.pages());
  dashboard = JSON.parse(await readFile(join(EXAMPLES, 'weir-dashboard.json'), 'utf8')) as Dashboard;
  alerts = (parse(await readFile(ALERTS, 'utf8')) as Alerts).groups.flatMap(({ rules }) => rules);
});
afterAll(async () => {
  await services[Symbol.asyncDispose]();
  await prometheus[Symbol.asyncDispose]();
});

describe('the example dashboard', () => {
  it('queries only series that a service exports', () => {
    const unknown = expressionsOf(dashboard).flatMap(({ title, expr }) =>
      unknownTo(exported, expr).map((selector) => `${title}: ${selector}`),
    );
    expect(unknown).toEqual([]);
    expect(expressionsOf(dashboard).length).toBeGreaterThan(40);
  });

  it('fills its variables from series that a service exports', async () => {
    const definitions = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);
    expect(definitions).toHaveLength(3);
    for (const definition of definitions) {
      const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? [];
      expect(unknownTo(exported, filledIn(selector))).toEqual([]);
      const values = await prometheus.api<readonly string[]>(`label/${label}/values`, {
        'match[]': filledIn(selector),
      });
      expect([label, values]).toEqual([label, expect.arrayContaining(CHOICES[label] ?? [''])]);
    }
  });

  it('groups by existing labels, and its legends name only these', () => {
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

  it('has expressions that Prometheus accepts', async () => {
    const rules = expressionsOf(dashboard).map(({ expr }, index) => ({ record: `panel_${index}`, expr }));
    await expect(promtoolRules('check', { groups: [{ name: 'dashboard', rules }] })).resolves.toContain('SUCCESS');
  });

  it('shows data in every panel once every statistic has changed', async () => {
    async function findEmpty(): Promise<readonly string[]> {
      const shown = expressionsOf(dashboard).map(async ({ title, expr }) => {
        // Evaluated half a minute later, since a panel has a step of 15 seconds.
        const samples = await prometheus.query(expr, { inSeconds: 30 });
        return samples.some(({ value }) => Number.isFinite(value)) ? [] : [`${title}: ${expr}`];
      });
      return (await Promise.all(shown)).flat();
    }
    let empty = await findEmpty();
    // On a busy machine a late scrape leaves a gap until the next one.
    for (let scrapes = 0; empty.length > 0 && scrapes < 5; scrapes += 1) {
      await prometheus.scraped(1);
      empty = await findEmpty();
    }
    expect(empty).toEqual([]);
  });

  it('shows the quantiles of decision times', async () => {
    const quantiles = expressionsOf(dashboard).filter(({ expr }) => expr.startsWith('histogram_quantile'));
    expect(quantiles).toHaveLength(4);
    for (const { expr } of quantiles) {
      const value = await prometheus.until(expr, async () => {
        const [sample] = await prometheus.query(expr);
        return Number.isFinite(sample?.value) && sample?.value;
      });
      expect(value).toBeGreaterThan(0);
      expect(value).toBeLessThan(10);
    }
  });

  it('shows the rejections of the gRPC listener by kind', async () => {
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
    await expect(promtoolRules('test', content)).resolves.toContain('SUCCESS');
  });
});

describe('the example alerts', () => {
  it('are valid Prometheus rules', async () => {
    await expect(promtool('check', 'rules', ALERTS)).resolves.toContain(`SUCCESS: ${alerts.length} rules found`);
  });

  it('are evaluated without errors', async () => {
    const { groups } = await prometheus.api<RuleGroups>('rules');
    const evaluated = groups.flatMap(({ rules }) => rules);
    expect(evaluated.map(({ name }) => name)).toEqual(alerts.map(({ alert }) => alert));
    for (const { name, health, lastError } of evaluated) {
      expect([name, health, lastError]).toEqual([name, 'ok', undefined]);
    }
  });

  it('are pending before they fire', async () => {
    let states: Readonly<Record<string, string>> = {};
    const expected = {
      WeirDown: 'inactive',
      WeirWithoutRules: 'inactive',
      WeirOldRules: 'pending',
      WeirXdsDisconnected: 'inactive',
      WeirCertificateExpires: 'inactive',
      WeirCountersGivenUp: 'inactive',
      WeirNoWorkers: 'inactive',
      WeirWorkersDie: 'inactive',
    };
    // On a busy machine a scrape may come too late, and the service be taken for down until the next one.
    await prometheus.until('the alert is pending, and no other', async () => {
      const { groups } = await prometheus.api<RuleGroups>('rules');
      states = Object.fromEntries(
        groups.flatMap(({ rules }) => rules.map(({ name, state }) => [name, state] as const)),
      );
      return Object.entries(expected).every(([name, state]) => states[name] === state);
    });
    expect(states).toMatchObject(expected);
  });

  it('query only series that a service exports', () => {
    expect(alerts.flatMap(({ alert, expr }) => unknownTo(exported, expr).map((each) => `${alert}: ${each}`))).toEqual(
      [],
    );
  });

  it('fire and resolve at the expected times', async () => {
    const weir = { job: 'weir', instance: 'a' };
    interface Expected {
      readonly exp_labels: object;
      readonly exp_annotations: object;
    }
    function alert(name: string, at: string, expected: readonly Expected[]) {
      const runbook = `docs/runbook.md#${name.toLowerCase()}`;
      const exp_alerts = expected.map(({ exp_labels, exp_annotations }) => ({
        exp_labels,
        exp_annotations: { ...exp_annotations, runbook },
      }));
      return { alertname: name, eval_time: at, exp_alerts };
    }
    const content = {
      rule_files: [ALERTS],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: [
            { series: 'up{job="weir",instance="a"}', values: '1x9 0x9 1x9' },
            { series: 'ratelimit_config_loaded_at{job="weir",instance="a"}', values: '1000000000x30' },
            { series: 'certs_expires_at{job="weir",instance="a"}', values: '2592000x120' },
            { series: 'certs_expires_at{job="weir",instance="b"}', values: '864000x120' },
            { series: 'certs_expires_at{job="weir",instance="c"}', values: '0x120' },
            { series: 'ratelimit_config_rejected{job="weir",instance="a"}', values: '0x4 1x10 0x15' },
            { series: 'ratelimit_workers_ready{job="weir",instance="a"}', values: '2x9 0x9 2x9' },
            { series: 'ratelimit_workers_restarts{job="weir",instance="a"}', values: '0x9 0+6x9 54x40' },
            { series: 'ratelimit_workers_restarts{job="weir",instance="b"}', values: '0x9 1x60' },
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
                    'While no instance responds, proxies let calls pass or fail them, depending on their configuration.',
                },
              },
            ]),
            alert('WeirDown', '25m', []),
            alert('WeirOldRules', '8m', []),
            alert('WeirOldRules', '12m', [
              {
                exp_labels: { ...weir, severity: 'warning' },
                exp_annotations: {
                  summary: 'a rejected the newest rules',
                  description:
                    'Rules from 2001-09-09 01:46:40 +0000 UTC are still active. /rlconfig on the debug port and the log say what is wrong with the new ones.',
                },
              },
            ]),
            alert('WeirOldRules', '20m', []),
            alert('WeirWithoutRules', '20m', []),
            alert('WeirCertificateExpires', '30m', []),
            alert('WeirCertificateExpires', '90m', [
              {
                exp_labels: { job: 'weir', instance: 'b', severity: 'warning' },
                exp_annotations: {
                  summary: 'The certificate of b expires at 1970-01-11 00:00:00 +0000 UTC',
                  description: 'Callers will reject it. Replace the files; they are read again when they change.',
                },
              },
            ]),
            alert('WeirStoreErrors', '5m', []),
            alert('WeirStoreErrors', '12m', [
              {
                exp_labels: { ...weir, severity: 'critical' },
                exp_annotations: {
                  summary: 'a cannot count: 1 calls per second fail',
                  description: 'The counter store fails or times out.',
                },
              },
            ]),
            alert('WeirStoreErrors', '25m', []),
            alert('WeirNoWorkers', '9m', []),
            alert('WeirNoWorkers', '12m', [
              {
                exp_labels: { ...weir, severity: 'critical' },
                exp_annotations: {
                  summary: 'No worker of a is ready',
                  description: 'Calls fail. The log says why the workers ended.',
                },
              },
            ]),
            alert('WeirNoWorkers', '25m', []),
            alert('WeirWorkersDie', '9m', []),
            alert('WeirWorkersDie', '15m', [
              {
                exp_labels: { ...weir, severity: 'warning' },
                exp_annotations: {
                  summary: 'Workers of a keep dying',
                  description: 'Each death fails the calls in flight of that worker. The log says why they ended.',
                },
              },
            ]),
            alert('WeirWorkersDie', '50m', []),
            alert('WeirManyOverLimit', '20m', [
              {
                exp_labels: { job: 'weir', domain: 'busy', severity: 'warning' },
                exp_annotations: {
                  summary: '75% of the hits in busy are over the limit',
                  description: 'A caller sends far more than its limit allows, or a limit is far too low.',
                },
              },
            ]),
          ],
        },
      ],
    };
    await expect(promtoolRules('test', content)).resolves.toContain('SUCCESS');
  });
});
