import { TemporaryFolder } from '../../support/data/temporary-folder';
import { CollectorProcess } from '../../support/processes/collector-process';
import { freePorts } from '../../support/processes/free-ports';
import { FaultProxy } from '../../support/servers/fault-proxy';
import { OtlpReceiver } from '../../support/servers/otlp-receiver';
import type { MetricPoint } from '../../support/servers/read-metrics';
import { until } from '../../support/waiting/until';
import { Shop } from '../../e2e/shop';

const RULES = `
domain: shop
descriptors:
  - { key: plain, rate_limit: { unit: day, requests_per_unit: 10 } }
  - key: user
    detailed_metric: true
    descriptors: [{ key: path, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 100 } }]
`;
const TOTAL = 'ratelimit_service_rate_limit_total_hits';
const RESPONSE_TIME = 'ratelimit_service_response_time_seconds';

type Environment = Readonly<Record<string, string>>;

function startShop(env: Environment) {
  return Shop.start({ env: { USE_OTLP_METRICS: 'true', STATS_FLUSH_INTERVAL: '100ms', ...env } }, RULES);
}

/** A series as Prometheus writes it, with sorted labels; a point without labels has no braces. */
function seriesOf({ name, labels }: Pick<MetricPoint, 'name' | 'labels'>): string {
  const texts = Object.entries(labels).map(([label, value]) => {
    return `${label}="${String(value).replaceAll(/["\\]/g, (character) => `\\${character}`)}"`;
  });
  return texts.length === 0 ? name : `${name}{${texts.sort().join(',')}}`;
}

/** Of the last points, the value by series. */
function valuesOf(points: readonly MetricPoint[]): ReadonlyMap<string, number> {
  return new Map(points.map((point) => [seriesOf(point), point.value]));
}

/** The statistics of a page: those of the process are not exported; of a timer, the number of its durations. */
function statisticsOn(page: string): Map<string, number> {
  const lines = page.split('\n').filter((line) => /^(?!#|process_|nodejs_)./.test(line));
  return new Map(
    lines
      .filter((line) => !/_bucket\{|quantile="|_sum[{ ]/.test(line))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))] as const)
      .map(([series, value]) => [series.replace(/(?<=_seconds|_ms|_time)_count(?=\{|$)/, ''), value]),
  );
}

describe.each(['http/protobuf', 'http/json', 'grpc'])(
  'statistics that a real collector receives over %s',
  (protocol) => {
    it('have the names, labels and values of the page for Prometheus', async () => {
      await using collector = await CollectorProcess.start();
      const [metricsPort] = await freePorts(1);
      await using shop = await startShop({
        USE_PULLMETRICS: 'true',
        PULLMETRICS_ADDR: `127.0.0.1:${metricsPort}`,
        EXTRA_TAGS: 'stage:te"st\\n',
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url(protocol === 'grpc' ? 'grpc' : 'http'),
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_RESOURCE_ATTRIBUTES: 'zone=a',
        TRACING_SERVICE_NAME: 'limits',
      });
      for (const hits of [3, 9]) await shop.client.shouldRateLimit('shop', ['plain'], hits);
      await shop.client.shouldRateLimit('shop', ['user=a\\b"c,path=x\u2028\u00e9']);
      const scraped = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      // Two exports later, everything that the page has was exported.
      const before = collector.metrics.length;
      await collector.until('more was exported', () => {
        return collector.metrics.slice(before).filter(({ name }) => name === 'ratelimit_build_info').length > 2;
      });
      const [page, exported] = [statisticsOn(scraped), valuesOf(collector.metrics)];
      if (protocol === 'http/json') {
        // Rotel 0.0.8 reads no exponential histograms in JSON.
        for (const series of page.keys()) if (series.startsWith(RESPONSE_TIME)) page.delete(series);
      }
      expect(Object.fromEntries(exported)).toEqual(Object.fromEntries(page));
      const [point] = collector.metrics.filter(({ name }) => name === TOTAL);
      expect(point).toMatchObject({
        resource: { 'service.name': 'limits', 'service.instance.id': expect.any(String), zone: 'a' },
        help: 'All hits.',
        unit: '',
        kind: 'counter',
        temporality: 'cumulative',
        isMonotonic: true,
      });
      const kinds = new Map(collector.metrics.map(({ name, kind }) => [name, kind]));
      expect(kinds.get('ratelimit_build_info')).toBe('gauge');
      expect(kinds.get(RESPONSE_TIME)).toBe(protocol === 'http/json' ? undefined : 'exponential histogram');
    });
  },
);

describe('an OTLP receiver', () => {
  it('receives deltas that add up to the counters, without a gap, also after it has rejected some', async () => {
    await using receiver = await OtlpReceiver.http();
    await using shop = await startShop({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'delta',
    });
    function points(metric: string) {
      return receiver.metrics.filter(({ name, labels }) => name === metric && labels['grpc_method'] !== 'Check');
    }
    async function exported(hits: number) {
      await shop.weir.until(`${hits} hits are exported`, () => {
        return points(TOTAL).reduce((sum, { value }) => sum + value, 0) === hits;
      });
    }
    await shop.client.shouldRateLimit('shop', ['plain'], 2);
    await exported(2);
    receiver.status = 400;
    await shop.client.shouldRateLimit('shop', ['plain'], 3);
    await shop.weir.line(/cannot export statistics over OTLP; will retry/);
    await shop.client.shouldRateLimit('shop', ['plain'], 4);
    receiver.status = 200;
    await exported(9);
    await shop.weir.line(/resumed exporting statistics over OTLP/);
    await shop.client.shouldRateLimit('shop', ['plain']);
    // What has changed last is exported when the service ends.
    await shop.drain();
    const counts = points(TOTAL);
    expect(counts.map(({ value }) => value)).toEqual([2, 7, 1]);
    expect(counts.map(({ temporality }) => temporality)).toEqual(['delta', 'delta', 'delta']);
    expect(counts.slice(1).map(({ start }) => start)).toEqual(counts.slice(0, -1).map(({ end }) => end));
    const times = points(RESPONSE_TIME);
    expect(times.reduce((sum, { value }) => sum + value, 0)).toBe(4);
    for (const { value, histogram } of times) {
      expect(histogram?.buckets.reduce((sum, count) => sum + count, 0)).toBe(value);
    }
    expect(shop.weir.output.match(/exporting statistics|export statistics/g)).toHaveLength(2);
  });

  it('receives counters since the start, but deltas of histograms, where memory is to be saved', async () => {
    await using receiver = await OtlpReceiver.http();
    await using shop = await startShop({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'LowMemory',
    });
    await shop.client.shouldRateLimit('shop', ['plain']);
    await shop.drain();
    const temporalities = new Map(receiver.metrics.map(({ name, temporality }) => [name, temporality]));
    expect([temporalities.get(TOTAL), temporalities.get(RESPONSE_TIME)]).toEqual(['cumulative', 'delta']);
  });

  it('receives the headers of a file, those for metrics before those for all signals', async () => {
    using folder = new TemporaryFolder();
    await using receiver = await OtlpReceiver.http();
    await using shop = await startShop({
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${receiver.url}/v1/metrics`,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-key=of%20all,x-other=2',
      OTEL_EXPORTER_OTLP_METRICS_HEADERS_FILE: folder.write('headers', 'x-key=of%20metrics,x-own=1\n'),
    });
    await shop.weir.until('statistics are exported', () => receiver.metrics.length > 0);
    expect(receiver.headers).toMatchObject({ 'x-key': 'of metrics', 'x-own': '1', 'x-other': '2' });
    expect(shop.weir.output).not.toContain('of metrics');
  });

  it('that hangs delays no call, and the end of the service only for the time of a last flush', async () => {
    await using receiver = await OtlpReceiver.http();
    await using proxy = await FaultProxy.start(() => ({ port: receiver.port }));
    proxy.fault = 'black hole';
    await using shop = await startShop({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://${proxy.address}` });
    await until('an export is in flight', () => proxy.accepted > 0);
    for (let call = 0; call < 20; call += 1) await shop.client.shouldRateLimit('shop', ['plain']);
    await shop.drain();
    expect(receiver.metrics).toEqual([]);
  });
});
