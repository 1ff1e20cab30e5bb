import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { ImportableDashboard } from './dashboard-model';

const EXAMPLES = join(__dirname, '../../../examples/observability');
const ALERTS = join(EXAMPLES, 'weir-alerts.yaml');
/** The schema version of Grafana 10.3; Grafana migrates older dashboards from there. */
const SCHEMA_VERSION = 39;
const COLUMNS = 24;

const text = readFileSync(join(EXAMPLES, 'weir-dashboard.json'), 'utf8');
const dashboard = JSON.parse(text) as ImportableDashboard;

/** Runs a program on a file, and returns what it prints. */
function printedBy(program: string, args: readonly string[], files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-examples-'));
  try {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    const { error, stdout, stderr } = spawnSync(program, [...args, ...Object.keys(files)], {
      cwd: folder,
      encoding: 'utf8',
    });
    if (error !== undefined) throw error;
    return stdout + stderr;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('the example dashboard', () => {
  it("conforms to Grafana's types, and would not with other members, kinds and choices", () => {
    const faults = [
      ['"type": "stat"', '"type": "status"'],
      ['"placement": "bottom"', '"placement": "below"'],
      ['"drawStyle": "line"', '"drawingStyle": "line"'],
      ['"w": 8', '"w": "8"'],
      ['"schemaVersion"', '"schemaNumber"'],
      ['"type": "query"', '"type": "ask"'],
    ] as const;
    const variants = [text, ...faults.map(([from, to]) => text.replace(from, to))];
    expect(new Set(variants).size).toBe(variants.length);
    const type = `import('${join(__dirname, 'dashboard-model')}').ImportableDashboard`;
    const files = variants.map((json, index) => [`${index}.ts`, `export const dashboard: ${type} = ${json};`] as const);
    const options = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--types',
      '',
      '--target',
      'es2022',
      '--module',
      'node20',
    ];
    const compiler = join(__dirname, '../../../node_modules/typescript/bin/tsc');
    const errors = printedBy(process.execPath, [compiler, ...options], Object.fromEntries(files));
    const broken = new Set(Array.from(errors.matchAll(/^(\d)\.ts.*error TS/gm), ([, index]) => Number(index)));
    expect(broken).toEqual(new Set(faults.map((_, index) => index + 1)));
    expect(errors.match(/^\S.*error TS/gm)?.filter((line) => !/^[1-6]\.ts/.test(line))).toEqual([]);
  });

  it('has a schema version that Grafana reads, and no id or data source of the instance that it was created on', () => {
    expect(dashboard).toMatchObject({
      schemaVersion: SCHEMA_VERSION,
      id: null,
      uid: expect.stringMatching(/^[\w-]{1,40}$/),
    });
    expect(dashboard.templating.list[0]).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' });
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
      known.add(variable.name ?? '');
    }
    expect(new Set(used(dashboard.panels))).toEqual(known);
  });

  it('has unique panel ids and query letters, and legends of labels that the query groups by', () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    for (const panel of dashboard.panels) {
      if (panel.type === 'row') continue;
      const letters = panel.targets.map(({ refId }) => refId);
      expect(letters).toEqual(['A', 'B', 'C', 'D', 'E', 'F'].slice(0, Math.max(1, letters.length)));
      for (const { expr, legendFormat } of panel.targets) {
        if (!/\b(?:sum|topk|histogram_quantile)\b/.test(expr)) continue;
        const grouped = Array.from(expr.matchAll(/\bby \(([^)]*)\)/g), ([, labels = '']) => labels.split(', ')).flat();
        const named = Array.from(legendFormat.matchAll(/\{\{(\w+)\}\}/g), ([, label]) => label);
        expect([panel.title, grouped]).toEqual([panel.title, expect.arrayContaining(named)]);
      }
    }
  });

  it('covers the grid with panels without gaps or overlaps', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...dashboard.panels.map(({ gridPos: { x, w } }) => x + w))).toBe(COLUMNS);
    expect(cells.length).toBe(COLUMNS * Math.max(...dashboard.panels.map(({ gridPos: { y, h } }) => y + h)));
  });
});

/** Instances of the alerts' series. */
const A = 'job="weir",instance="a"';
const B = A.replace('"a"', '"b"');
const C = A.replace('"a"', '"c"');
const [BUSY, QUIET] = ['job="weir",instance="a",domain="busy"', 'job="weir",instance="a",domain="quiet"'];

/** In the notation of promtool, one value per minute. */
const SERIES: readonly (readonly [series: string, values: string])[] = [
  [`up{${A}}`, '1x9 0x9 1x9'],
  [`ratelimit_config_loaded_at{${A}}`, '1000000000x30'],
  [`certs_expires_at{${A}}`, '2592000x120'],
  [`certs_expires_at{${B}}`, '864000x120'],
  [`certs_expires_at{${C}}`, '0x120'],
  [`ratelimit_config_rejected{${A}}`, '0x4 1x10 0x15'],
  [`ratelimit_memory_evicted_keys{${A}}`, '0x9 7x60'],
  [`ratelimit_workers_ready{${A}}`, '2x9 0x9 2x9'],
  [`ratelimit_workers_restarts{${A}}`, '0x9 0+6x9 54x40'],
  [`ratelimit_workers_restarts{${B}}`, '0x9 1x60'],
  [`ratelimit_service_should_rate_limit_error{${A},err_type="redis_error"}`, '0x4 0+60x10 600x15'],
  [`ratelimit_service_should_rate_limit_error{${A},err_type="service_error"}`, '0+60x30'],
  [`ratelimit_service_rate_limit_over_limit{${BUSY},key1="k",key2="v"}`, '0+90x30'],
  [`ratelimit_service_rate_limit_total_hits{${BUSY},key1="k",key2="v"}`, '0+120x30'],
  [`ratelimit_service_rate_limit_over_limit{${QUIET},key1="k"}`, '0+1x30'],
  [`ratelimit_service_rate_limit_total_hits{${QUIET},key1="k"}`, '0+1x30'],
  [`ratelimit_server_http2_ping_flood{${A}}`, '0+60x40'],
  [`ratelimit_server_http2_rapid_reset{${A}}`, '0+120x40'],
];

describe('the example alerts', () => {
  interface Alert {
    readonly labels: Readonly<Record<string, string>>;
    readonly summary: string;
    readonly description: string;
  }
  const [critical, warning] = [{ severity: 'critical' }, { severity: 'warning' }];

  it.each<[name: string, alert: Alert | undefined, firing: readonly string[], silent: readonly string[]]>([
    [
      'WeirDown',
      {
        labels: { instance: 'a', ...critical },
        summary: 'a of weir cannot be scraped',
        description:
          'While no instance responds, proxies let calls pass or fail them, depending on their configuration.',
      },
      ['12m'],
      ['9m', '25m'],
    ],
    [
      'WeirOldRules',
      {
        labels: { instance: 'a', ...warning },
        summary: 'a rejected the newest rules',
        description:
          'Rules from 2001-09-09 01:46:40 +0000 UTC are still active. /rlconfig on the debug port and the log say what is wrong with the new ones.',
      },
      ['12m'],
      ['8m', '20m'],
    ],
    ['WeirWithoutRules', undefined, [], ['20m']],
    [
      'WeirCertificateExpires',
      {
        labels: { instance: 'b', ...warning },
        summary: 'The certificate of b expires at 1970-01-11 00:00:00 +0000 UTC',
        description: 'Callers will reject it. Replace the files; they are read again when they change.',
      },
      ['90m'],
      ['30m'],
    ],
    [
      'WeirStoreErrors',
      {
        labels: { instance: 'a', ...critical },
        summary: 'a cannot count: 1 calls per second fail',
        description: 'The counter store fails or times out.',
      },
      ['12m'],
      ['5m', '25m'],
    ],
    [
      'WeirCountersGivenUp',
      {
        labels: { instance: 'a', ...warning },
        summary: 'a evicts counters for lack of room',
        description: 'The evicted counters start again at zero. Raise MEMORY_MAX_KEYS, or count in a shared store.',
      },
      ['12m'],
      ['9m', '40m'],
    ],
    [
      'WeirNoWorkers',
      {
        labels: { instance: 'a', ...critical },
        summary: 'No worker of a is ready',
        description: 'Calls fail. The log says why the workers ended.',
      },
      ['12m'],
      ['9m', '25m'],
    ],
    [
      'WeirWorkersDie',
      {
        labels: { instance: 'a', ...warning },
        summary: 'Workers of a keep dying',
        description: 'Each death fails the calls in flight of that worker. The log says why they ended.',
      },
      ['15m'],
      ['9m', '50m'],
    ],
    [
      'WeirManyOverLimit',
      {
        labels: { domain: 'busy', ...warning },
        summary: '75% of the hits in busy are over the limit',
        description: 'A caller sends far more than its limit allows, or a limit is far too low.',
      },
      ['20m'],
      [],
    ],
  ])('fire and resolve at the expected times: %s', (name, alert, firing, silent) => {
    const exp_alerts = alert && [
      {
        exp_labels: { job: 'weir', ...alert.labels },
        exp_annotations: {
          summary: alert.summary,
          description: alert.description,
          runbook: `docs/runbook.md#${name.toLowerCase()}`,
        },
      },
    ];
    expectSuccess({
      alert_rule_test: [
        ...firing.map((eval_time) => ({ alertname: name, eval_time, exp_alerts })),
        ...silent.map((eval_time) => ({ alertname: name, eval_time, exp_alerts: [] })),
      ],
    });
  });

  it('are next to a panel that shows the rejections of the gRPC listener by kind', () => {
    const targets = dashboard.panels.flatMap((panel) => (panel.type === 'row' ? [] : panel.targets));
    const expr = targets.find((each) => each.expr.includes('http2'))?.expr.replaceAll(/"\$(?:job|instance)"/g, '".*"');
    const exp_samples = [
      { labels: '{kind="ping_flood"}', value: 1 },
      { labels: '{kind="rapid_reset"}', value: 2 },
    ];
    expectSuccess({ promql_expr_test: [{ expr, eval_time: '20m', exp_samples }] });
  });

  /** Runs a test of promtool on the alerts and series. */
  function expectSuccess(test: object): void {
    const input_series = SERIES.map(([series, values]) => ({ series, values }));
    const content = {
      rule_files: [ALERTS],
      evaluation_interval: '1m',
      tests: [{ interval: '1m', input_series, ...test }],
    };
    expect(printedBy('promtool', ['test', 'rules'], { 'tests.yaml': stringify(content) })).toContain('SUCCESS');
  }
});
