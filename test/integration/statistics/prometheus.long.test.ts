import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { freePorts } from '../../support/processes/free-ports';
import { PrometheusProcess } from '../../support/processes/prometheus-process';
import { WeirProcess } from '../../support/processes/weir-process';

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
    ...['plain', String.raw`back\slash\n`, 'éßж水', 'a,b="c"', '{le="1"} 5 # x'].map((text) => [text, text] as const),
    ['line\nfeed', 'line_feed'],
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
        const descriptor = { entries: [{ key: 'user', value }], limit: undefined, hitsAddend: undefined };
        await client.shouldRateLimit('shop', [{ ...descriptor, isNegativeHits: false }]);
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
    for (const metric of ['calls{method="ShouldRateLimit"}', 'process_resident_memory_bytes']) {
      await prometheus.value(metric);
      expect(await prometheus.query(metric)).toMatchObject([{ labels: { job: 'weir', odd: ODD } }]);
    }
    const metadata = await prometheus.api<readonly Readonly<Record<'metric' | 'type', string>>[]>('targets/metadata');
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
