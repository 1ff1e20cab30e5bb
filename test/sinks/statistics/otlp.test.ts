import { resourceFromAttributes } from '@opentelemetry/resources';
import type { DataPoint } from '@opentelemetry/sdk-metrics';
import type { ExportResult } from '../../../src/sinks/otlp/exporters';
import { builtInMapping } from '../../../src/sinks/statistics/built-in-mapping';
import { Mapper, type MappingTable } from '../../../src/sinks/statistics/mapping';
import { readMappingFile } from '../../../src/sinks/statistics/mapping-file';
import { OtlpOutput } from '../../../src/sinks/statistics/otlp-output';
import { ExponentialBuckets, type Temporality, difference } from '../../../src/sinks/statistics/otlp-points';
import { Statistics } from '../../../src/statistics/statistics';
import { RecordedLog } from '../../support/data/recorded-log';

const UNREACHABLE = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
const REJECTED = Object.assign(new Error('bad request'), { code: 400 });

type Point = DataPoint<number | { readonly count: number }>;

/** An output whose requests fail with the error that `failure` returns for the number of the request, if any. */
function outputOf(
  temporality: Temporality,
  failure: (request: number) => Error | undefined = () => undefined,
  table: MappingTable = builtInMapping(false),
) {
  const statistics = new Statistics(100_000);
  const log = new RecordedLog();
  const requests: (readonly Point[])[] = [];
  const output = new OtlpOutput({
    exporter: {
      export({ scopeMetrics }, report) {
        const error = failure(requests.length);
        const metrics = scopeMetrics.flatMap(({ metrics: each }) => each);
        // Without the gauges of a new registry.
        const added = metrics.filter(({ descriptor }) => !descriptor.name.startsWith('ratelimit_statistics'));
        requests.push(added.flatMap(({ dataPoints }): readonly Point[] => dataPoints));
        const result = { code: error === undefined ? 0 : 1, error } as unknown as ExportResult;
        setImmediate(() => report(result));
      },
      shutdown: () => Promise.resolve(),
    },
    resource: resourceFromAttributes({}),
    temporality,
    mapped: { statistics, mapper: new Mapper(table), labels: {}, onConflict: () => undefined },
    log,
  });
  /** Flushes. @returns the values of the points of each request; of a histogram, the number of its durations */
  async function flushed() {
    const before = requests.length;
    await output.flush();
    return requests
      .slice(before)
      .map((points) => points.map(({ value }) => (typeof value === 'number' ? value : value.count)));
  }
  return { statistics, output, requests, flushed, log };
}

describe('statistics over OTLP', () => {
  it('are exported whole in requests of at most 256 points, each series once', async () => {
    const { statistics, flushed, requests } = outputOf('cumulative');
    for (let rule = 0; rule < 1_000; rule += 1) statistics.rule(`shop.user_${rule}`).totalHits = rule + 1;
    const values = await flushed();
    expect(values.flat()).toEqual(Array.from({ length: 1_000 }, (_, rule) => rule + 1));
    expect(Math.max(...values.map(({ length }) => length))).toBe(256);
    expect(requests[0]?.[0]?.attributes).toEqual({ domain: 'shop', key1: 'user_0' });
    // Cumulative ones are exported again; all of them have the start of the process.
    expect((await flushed()).flat()).toHaveLength(1_000);
    expect(new Set(requests.flat().map(({ startTime }) => startTime.join('.'))).size).toBe(1);
  });

  it('are deltas of what was exported last: what has not changed is left out, what failed is exported later', async () => {
    const { statistics, flushed, log } = outputOf('delta', (request) => (request === 1 ? UNREACHABLE : undefined));
    const rule = statistics.rule('shop.user_a');
    const timer = statistics.timer('ratelimit_server.ShouldRateLimit.response_time');
    rule.totalHits = 3;
    timer.record(1);
    expect(await flushed()).toEqual([[1, 3]]);
    rule.totalHits = 5;
    for (const duration of [2, 4]) timer.record(duration);
    expect(await flushed()).toEqual([[2, 2]]);
    rule.totalHits = 9;
    timer.record(8);
    expect(await flushed()).toEqual([[3, 6]]);
    expect(await flushed()).toEqual([[]]);
    expect(log.short).toEqual([
      'warn cannot export statistics over OTLP; will retry',
      'notice resumed exporting statistics over OTLP',
    ]);
  });

  it('are counters since the start and histograms since the last export, if memory is to be saved', async () => {
    const { statistics, flushed } = outputOf('lowmemory');
    statistics.rule('shop.user_a').totalHits = 3;
    const timer = statistics.timer('ratelimit_server.ShouldRateLimit.response_time');
    timer.record(1);
    expect(await flushed()).toEqual([[1, 3]]);
    timer.record(1);
    timer.record(1);
    expect(await flushed()).toEqual([[2, 3]]);
  });

  it.each([
    ['are sent in further requests after one that was rejected', REJECTED, 4],
    ['are not sent further before the next flush while there is no receiver', UNREACHABLE, 1],
  ])('%s', async (_, error, requests) => {
    const { statistics, flushed, log } = outputOf('cumulative', () => error);
    for (let rule = 0; rule < 1_000; rule += 1) statistics.rule(`shop.user_${rule}`).totalHits = 1;
    expect(await flushed()).toHaveLength(requests);
    expect(await flushed()).toHaveLength(requests);
    expect(log.short).toEqual(['warn cannot export statistics over OTLP; will retry']);
  });

  it('are one point where many are mapped to one series, with its labels', async () => {
    const table = readMappingFile('mappings: [{match: "*.*", name: hits, labels: {kind: $1}}]');
    const { statistics, flushed, requests } = outputOf('cumulative', undefined, table);
    for (let index = 0; index < 2_000; index += 1)
      statistics.counter(`${index % 2 === 0 ? 'even' : 'odd'}.${index}`).add((index % 2) + 1);
    expect(await flushed()).toEqual([[1_000, 2_000]]);
    expect(requests[0]?.map(({ attributes }) => attributes)).toEqual([{ kind: 'even' }, { kind: 'odd' }]);
  });

  it('have no point of a gauge without a number', async () => {
    const { statistics, flushed } = outputOf('cumulative');
    statistics.gauge('ratelimit.memory.keys', () => NaN);
    statistics.gauge('ratelimit.memory.bytes', () => 7);
    expect(await flushed()).toEqual([[7]]);
  });
});

describe('an exponential histogram', () => {
  function bucketsOf(scale: number, ...durations: readonly number[]) {
    const buckets = new ExponentialBuckets(scale);
    buckets.add(Float64Array.from(durations), durations.length);
    return buckets.read();
  }

  it.each([1, 0.001])('has each value between the bounds of its bucket, with a factor of %d', (scale) => {
    for (let exponent = -13; exponent < 27; exponent += 0.37) {
      const { scale: size, positive, zeroCount } = bucketsOf(scale, 2 ** exponent);
      const base = 2 ** (2 ** -size);
      const value = 2 ** exponent * scale;
      expect([positive.bucketCounts, zeroCount]).toEqual([[1], 0]);
      expect(value).toBeGreaterThan(base ** positive.offset * (1 - 1e-12));
      expect(value).toBeLessThanOrEqual(base ** (positive.offset + 1) * (1 + 1e-12));
    }
  });

  it('has powers of two as the upper bounds of buckets', () => {
    expect(bucketsOf(1, 1).positive.offset).toBe(-1);
    expect(bucketsOf(1, 4).positive.offset).toBe(15);
    expect(bucketsOf(1, 1, 2 ** 0.0625, 2, 2).positive).toEqual({
      offset: -1,
      bucketCounts: [1, 1, 0, 0, 0, 0, 0, 0, 2],
    });
  });

  it('has the difference to an earlier one in each bucket, also in those below and above all of it', () => {
    const buckets = new ExponentialBuckets(1);
    function recorded(...durations: readonly number[]) {
      buckets.add(Float64Array.from(durations), durations.length);
      return { count: 0, sum: 0, ...buckets.read() };
    }
    const earlier = recorded(0, 2, 2);
    const { positive, zeroCount } = difference(recorded(0, 0, 2, 1.9, 2.1), earlier);
    expect([zeroCount, positive]).toEqual([2, { offset: 7, bucketCounts: [2, 1] }]);
    const { positive: wider } = difference(recorded(1), earlier);
    expect(wider).toEqual({ offset: -1, bucketCounts: [1, 0, 0, 0, 0, 0, 0, 0, 2, 1] });
  });

  it('counts values that are not above 0, and in its outermost buckets those beyond them', () => {
    const { zeroCount, positive } = bucketsOf(1, 0, -1, NaN, 1e-9, Infinity);
    expect([zeroCount, positive.offset, positive.bucketCounts.length]).toEqual([3, -14 * 8, 42 * 8]);
    expect([positive.bucketCounts.at(0), positive.bucketCounts.at(-1)]).toEqual([1, 1]);
    expect(bucketsOf(1).positive).toEqual({ offset: 0, bucketCounts: [] });
  });
});
