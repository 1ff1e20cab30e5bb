import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../support/processes/free-ports';
import { type DescriptorSketch, RateLimitClient } from '../../support/clients/grpc-client';
import { PrometheusProcess } from '../../support/processes/prometheus-process';
import { RuleFolder } from '../../support/data/rule-folder';
import { WeirProcess } from '../../support/processes/weir-process';

const ALERTS = join(__dirname, '../../../examples/observability/weir-alerts.yaml');
const RULES = `
domain: shop
descriptors:
  - { key: user, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1000000 } }
  - { key: any, rate_limit: { unit: day, requests_per_unit: 10 } }
`;
const MAPPING = String.raw`
mappings:
  - match: '^ratelimit\.service\.rate_limit\.([^.]+)\.user_(.+)\.([a-z_]+)$'
    match_type: regex
    name: rule_$3
    labels: { domain: $1, user: $2 }
  - match: ratelimit_server.*.total_requests
    name: calls
    labels: { method: $1 }
  - match: ratelimit_server.*.response_time
    name: decision_seconds
    observer_type: histogram
    histogram_options: { buckets: [0.0001, 0.001, 0.01, 0.1, 1, 10] }
    scale: 0.001
    labels: { method: $1 }
`;
/** Values that callers send, and the labels that result from them. */
const USERS: readonly (readonly [sent: string, label: string])[] = [
  ['plain', 'plain'],
  ['say "hi"', 'say "hi"'],
  [String.raw`back\slash\n`, String.raw`back\slash\n`],
  ['line\nfeed', 'line_feed'],
  ['éßж水', 'éßж水'],
  ['a,b="c"', 'a,b="c"'],
  ['{le="1"} 5 # x', '{le="1"} 5 # x'],
  ['c:d|e', 'c_d_e'],
  ['10.0.0.1', '10_0_0_1'],
];
const ODD = 'say "hi" \\ to\nall: é';
const KEYS_IN_MEMORY = 20;
const CALLERS = 4;

function user(value: string): DescriptorSketch {
  return {
    entries: [{ key: 'user', value }],
    limit: undefined,
    hitsAddend: undefined,
    isNegativeHits: false,
  };
}

let folder: RuleFolder;
let mapping: string;
let prometheus: PrometheusProcess;
let weir: WeirProcess;
/** The number of requests per user, in the order of {@link USERS}. */
const requested = USERS.map(() => 0);

/** Sends requests for each user in turn, several at a time, until `isOver` returns true. */
async function load(isOver: () => boolean): Promise<void> {
  using client = new RateLimitClient(weir.grpcAddress);
  let next = 0;
  async function caller(): Promise<void> {
    while (!isOver()) {
      const index = next % USERS.length;
      next += 1;
      requested[index] = (requested[index] ?? 0) + 1;
      await client.shouldRateLimit('shop', [user((USERS[index] as (typeof USERS)[number])[0])]);
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

beforeAll(async () => {
  folder = await RuleFolder.with({ 'shop.yaml': RULES });
  mapping = await mkdtemp(join(tmpdir(), 'weir-mapping-'));
  await writeFile(join(mapping, 'mapping.yaml'), MAPPING);
  const [port] = await freePorts(1);
  // Prometheus takes some seconds to start scraping.
  prometheus = await PrometheusProcess.start({ targets: [`127.0.0.1:${port}`], rules: [ALERTS] });
  weir = await WeirProcess.start({
    env: {
      ...folder.env,
      USE_PULLMETRICS: 'true',
      PULLMETRICS_ADDR: `127.0.0.1:${port}`,
      PULLMETRICS_MAPPER_YAML: join(mapping, 'mapping.yaml'),
      EXTRA_TAGS: `odd:${ODD}`,
      MEMORY_MAX_KEYS: String(KEYS_IN_MEMORY),
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
  await rm(mapping, { recursive: true, force: true });
});

describe('Prometheus scraping a service under load', () => {
  it('reports the target as up, without an error', async () => {
    const target = await prometheus.until('a target that is up', async () => {
      const { activeTargets } = await prometheus.api<{ readonly activeTargets: readonly Target[] }>('targets');
      return activeTargets.find(({ health }) => health === 'up');
    });
    expect(target.lastError).toBe('');
  });

  it('counts every call once, by its descriptor value', async () => {
    const expected = Object.fromEntries(USERS.map(([, label], index) => [label, requested[index]]));
    const counted = await prometheus.until('everything to be scraped', async () => {
      const samples = await prometheus.query('rule_total_hits');
      const sum = samples.reduce((all, { value }) => all + value, 0);
      return sum === requested.reduce((all, one) => all + one, 0) && samples;
    });
    expect(Object.fromEntries(counted.map(({ labels, value }) => [labels['user'], value]))).toEqual(expected);
    const calls = requested.reduce((all, one) => all + one, 0);
    expect(await prometheus.value('calls{method="ShouldRateLimit"}')).toBe(calls);
    expect(await prometheus.value('decision_seconds_count{method="ShouldRateLimit"}')).toBe(calls);
    expect(await prometheus.value('decision_seconds_bucket{method="ShouldRateLimit",le="+Inf"}')).toBe(calls);
  });

  it('sees counters increase and never reset', async () => {
    const grown = await prometheus.query('increase(rule_total_hits[1h]) > 0');
    expect(grown).toHaveLength(USERS.length);
    for (const counter of ['rule_total_hits', 'calls', 'decision_seconds_bucket', 'decision_seconds_sum']) {
      const resets = await prometheus.query(`resets(${counter}[1h])`);
      expect([counter, new Set(resets.map(({ value }) => value))]).toEqual([counter, new Set([0])]);
    }
  });

  it('reads the label values that were set', async () => {
    const calls = await prometheus.until('the calls', async () => {
      const found = await prometheus.query('calls{method="ShouldRateLimit"}');
      return found.length > 0 && found;
    });
    expect(calls.map(({ labels }) => labels)).toEqual([
      { __name__: 'calls', instance: expect.any(String), job: 'weir', method: 'ShouldRateLimit', odd: ODD },
    ]);
    const odd = await prometheus.api<readonly string[]>('label/odd/values');
    expect(odd).toEqual([ODD]);
    const processes = await prometheus.until('the memory', async () => {
      const found = await prometheus.query('process_resident_memory_bytes');
      return found.length > 0 && found;
    });
    expect(processes.map(({ labels }) => labels['odd'])).toEqual([ODD]);
  });

  it('computes the quantiles of decision times', async () => {
    for (const share of [0.5, 0.99]) {
      const seconds = await prometheus.value(
        `histogram_quantile(${share}, sum by (le) (rate(decision_seconds_bucket{method="ShouldRateLimit"}[1h])))`,
      );
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThan(10);
    }
  });

  it('scrapes every series once', async () => {
    const twice =
      'scrape_samples_scraped - on (instance) count by (instance) ({job="weir",__name__!~"up|scrape_.*|ALERTS.*"})';
    // On a busy machine a late scrape leaves a gap until the next one.
    const surplus = await prometheus.until('a scrape', async () => (await prometheus.query(twice))[0]);
    expect(surplus.value).toBe(0);
    for (const reason of ['sample_duplicate_timestamp', 'sample_out_of_order', 'sample_out_of_bounds']) {
      expect([reason, await prometheus.own(`prometheus_target_scrapes_${reason}_total`)]).toEqual([reason, 0]);
    }
  });

  it('learns the type of each metric', async () => {
    const metadata =
      await prometheus.api<readonly { readonly metric: string; readonly type: string }[]>('targets/metadata');
    const types = Object.fromEntries(metadata.map(({ metric, type }) => [metric, type]));
    expect(types).toMatchObject({
      rule_total_hits: 'counter',
      calls: 'counter',
      decision_seconds: 'histogram',
      ratelimit_memory_keys: 'gauge',
    });
  });

  it('raises the alert for evicted counters once there are more keys than the store holds', async () => {
    async function firing(name: string) {
      const { alerts } = await prometheus.api<{ readonly alerts: readonly Alert[] }>('alerts');
      return alerts.filter(({ labels, state }) => labels['alertname'] === name && state === 'firing');
    }
    expect(await firing('WeirCountersGivenUp')).toEqual([]);
    using client = new RateLimitClient(weir.grpcAddress);
    for (let value = 0; value < 2 * KEYS_IN_MEMORY; value += 1) await client.shouldRateLimit('shop', [`any=${value}`]);
    const [alert] = await prometheus.until('the alert', async () => {
      const found = await firing('WeirCountersGivenUp');
      return found.length > 0 && found;
    });
    expect(alert).toMatchObject({
      labels: { alertname: 'WeirCountersGivenUp', job: 'weir', severity: 'warning', odd: ODD },
      annotations: { summary: expect.stringMatching(/^127\.0\.0\.1:\d+ evicts counters for lack of room$/) },
    });
  });
});

interface Target {
  readonly health: string;
  readonly lastError: string;
}

interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: string;
}
