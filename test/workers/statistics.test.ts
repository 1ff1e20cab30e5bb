import fc from 'fast-check';
import { NEVER } from 'rxjs';
import { EvenSamples } from '../../src/statistics/even-samples';
import { Statistics } from '../../src/statistics/statistics';
import { DurationSender } from '../../src/workers/statistics/duration-sender';
import { MergedStatistics } from '../../src/workers/statistics/merged-statistics';
import { readValues } from '../../src/workers/statistics/statistics-frames';
import { StatisticsReporter } from '../../src/workers/statistics/statistics-reporter';
import { until } from '../support/waiting/until';
import { channelPair } from '../support/workers/channel-pair';

const WORKERS = 3;
/** In milliseconds: longer than any test. */
const NO_DEADLINE = 600_000;
const TIMER = 'ratelimit_server.ShouldRateLimit.response_time';

type Step = (statistics: Statistics) => void;

const hits = fc.nat(100);
// Some are escaped; two of them to the same name.
const key = fc.constantFrom('d.a', 'd.b', 'd.10.0.0.1', 'd.x:y', 'd.x|y', 'd.é', 'd.\n', `d.${'long'.repeat(100)}`);
const duration = fc.double({ min: 0, max: 20_000, noNaN: true });

/** What a worker counts; undefined: the primary collects. */
const step: fc.Arbitrary<Step | undefined> = fc.oneof(
  fc.tuple(fc.constantFrom('a', 'b', 'c.__code=x'), hits).map(([name, amount]): Step => (statistics) => {
    statistics.counter(name).add(amount);
  }),
  fc.tuple(fc.boolean(), key, hits, hits).map(([isRuntime, name, total, over]): Step => (statistics) => {
    const rule = isRuntime ? statistics.runtimeRule(name, 'd.rest') : statistics.rule(name);
    rule.totalHits += total;
    rule.overLimit += over;
  }),
  key.map(
    (name): Step =>
      (statistics) =>
        statistics.runtimeCounter(`${name}.none`, 'other.none').add(1),
  ),
  fc
    .tuple(fc.constantFrom(TIMER, 'other'), duration, fc.constantFrom(1, 3, 600, 2_000))
    .map(([name, milliseconds, times]): Step => (statistics) => {
      for (let time = 0; time < times; time += 1) statistics.timer(name).record(milliseconds);
    }),
  fc.constant(undefined),
);

/** All values that are not 0, without those about the registry itself. */
function valuesOf(statistics: Statistics): Readonly<Record<string, number>> {
  const own = /ratelimit\.(statistics|workers)\./;
  return Object.fromEntries([...statistics.entries()].filter(([name, value]) => value !== 0 && !own.test(name)));
}

/** A registry with the statistics of several workers in it. */
function instanceOf(workers: readonly Statistics[], maxKeys: number, pieceOf?: number) {
  const statistics = new Statistics(maxKeys);
  const merged = new MergedStatistics(statistics);
  function add(worker: Statistics) {
    const pair = channelPair(pieceOf === undefined ? {} : { cut: (bytes) => inPieces(bytes, pieceOf) });
    merged.add(pair.primary);
    return { reporter: new StatisticsReporter(worker, pair.worker), end: () => pair.worker.close() };
  }
  return { statistics, merged, add, ends: workers.map(add) };
}

function inPieces(bytes: Buffer, size: number): readonly Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

describe('the merged statistics of workers', () => {
  it('are those of a single registry, with every duration, however the work is split and the bytes are cut', async () => {
    const steps = fc.array(fc.tuple(fc.nat(WORKERS - 1), step), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 10, max: 5000 }), async (taken, size) => {
        const single = new Statistics(1000);
        const workers = Array.from({ length: WORKERS }, () => new Statistics(1000));
        const { statistics, merged, ends } = instanceOf(workers, 1000, size);
        const samples = [single, statistics].map((registry) => {
          const kept = new EvenSamples(100_000);
          registry.timer(TIMER).addRecorder(kept);
          return kept;
        });
        for (const [worker, count] of taken) {
          if (count === undefined) await merged.collect(NO_DEADLINE);
          for (const registry of [single, workers[worker]!]) count?.(registry);
        }
        await merged.collect(NO_DEADLINE);
        expect(valuesOf(statistics)).toEqual(valuesOf(single));
        for (const registry of [single, statistics]) registry.timer(TIMER).flush();
        const [ofSingle, ofInstance] = samples.map((kept) => [...kept.take().values].sort((one, other) => one - other));
        expect(ofInstance).toEqual(ofSingle);
        for (const { end } of ends) end();
      }),
      { numRuns: 25 },
    );
  });

  it('keep what a worker that has ended had counted, count none of it twice, and drop its gauges', async () => {
    const [CONNECTIONS, LOOKUPS, WINDOW] = [
      'connections',
      'ratelimit.localcache.lookupCount',
      'ratelimit.pipeline.window_size',
    ];
    function worker(connections: number, lookUps: number, window: number, calls: number): Statistics {
      const own = new Statistics(10);
      own.gauge(CONNECTIONS, () => connections);
      own.gauge(LOOKUPS, () => lookUps);
      own.gauge(WINDOW, () => window);
      own.gauge('ratelimit.build_info', () => 1);
      own.counter('calls').add(calls);
      own.rule('d.k').totalHits += calls;
      return own;
    }
    const { statistics, merged, add, ends } = instanceOf([worker(5, 100, 7, 3), worker(6, 101, 8, 4)], 10);
    statistics.gauge('ratelimit.build_info', () => 1);
    await merged.collect(NO_DEADLINE);
    const common = { 'ratelimit.build_info': 1, 'ratelimit.service.rate_limit.d.k.total_hits': 7 };
    // The counts of a local cache are a counter of its worker; the size of windows is the largest.
    const before = { calls: 7, [CONNECTIONS]: 11, [LOOKUPS]: 201, [WINDOW]: 8 };
    expect(valuesOf(statistics)).toEqual({ ...common, ...before });
    ends[1]?.end();
    const replacement = add(worker(1, 10, 0, 0));
    await replacement.reporter.report();
    await merged.collect(NO_DEADLINE);
    const after = { calls: 7, [CONNECTIONS]: 6, [LOOKUPS]: 211, [WINDOW]: 7 };
    expect(valuesOf(statistics)).toEqual({ ...common, ...after });
    for (const { end } of [ends[0]!, replacement]) end();
  });

  it('have at most the maximum number of runtime keys, and every hit', async () => {
    const workers = Array.from({ length: WORKERS }, () => new Statistics(50));
    const { statistics, merged, ends } = instanceOf(workers, 50);
    for (let round = 0; round < 10; round += 1) {
      for (const [index, worker] of workers.entries()) {
        for (let value = 0; value < 30; value += 1) {
          worker.runtimeRule(`d.user_${index % 2}_${round * 10 + value}`, 'd.user').totalHits += 1;
          worker.runtimeCounter(`domain_${index}_${value}.domain_not_found`, 'other.domain_not_found').add(1);
        }
      }
      await merged.collect(NO_DEADLINE);
    }
    const values = new Map(statistics.entries());
    const names = [...values.keys()].filter((name) => /user_\d|domain_\d/.test(name));
    expect([values.get('ratelimit.statistics.runtime_keys'), names.length]).toEqual([50, 50]);
    for (const pattern of [/total_hits$/, /domain_not_found$/]) {
      expect([...values].reduce((sum, [name, value]) => (pattern.test(name) ? sum + value : sum), 0)).toBe(900);
    }
    expect(values.get('ratelimit.service.rate_limit.other.domain_not_found')).toBeGreaterThan(0);
    for (const { end } of ends) end();
  });

  it('have rules with keys of any length, and more of them than may wait for the channel at once', async () => {
    const [count, longKey] = [70, 'k'.repeat(1024 * 1024)];
    const worker = new Statistics(count);
    const { statistics, merged, ends } = instanceOf([worker], count);
    for (let number = 0; number < count; number += 1) worker.rule(`d.${number}.${longKey}`).totalHits += 2;
    worker.runtimeRule('d.é', 'é'.repeat(1024 * 1024)).totalHits += 3;
    await ends[0]?.reporter.report();
    await merged.collect(NO_DEADLINE);
    // The names themselves would make the message of a failure unreadable.
    const values = valuesOf(statistics);
    const isSame = Object.entries(valuesOf(worker)).every(([name, value]) => values[name] === value);
    expect([isSame, statistics.rules.length]).toEqual([true, count + 1]);
    for (const { end } of ends) end();
  });

  it('do not wait for a worker that does not answer, and take its last values', async () => {
    const workers = [new Statistics(10), new Statistics(10)] as const;
    const { statistics, merged, ends } = instanceOf(workers, 10);
    for (const worker of workers) worker.counter('calls').add(1);
    await merged.collect(NO_DEADLINE);
    const stalled = channelPair();
    merged.add(stalled.primary);
    for (const worker of workers) worker.counter('calls').add(1);
    // The reports of the others arrive even if they are late, too.
    for (let time = 0; time < 30; time += 1) void merged.collect();
    await merged.collect();
    await until('the others have reported', () => valuesOf(statistics)['calls'] === 4);
    const withoutDeadline = merged.collect(NO_DEADLINE);
    stalled.worker.close();
    await withoutDeadline;
    expect(valuesOf(statistics)['calls']).toBe(4);
    for (const { end } of ends) end();
  });
});

test('durations that the primary does not read are kept up to a number, and then dropped and counted', () => {
  const sent: Buffer[] = [];
  const channel = {
    send: (_: unknown, body: Uint8Array | string) => sent.push(Buffer.from(body as Uint8Array)),
    ...{ frames: () => NEVER, closed$: NEVER, drained$: NEVER, isCongested: true },
  };
  const dropped = new Statistics(0).counter('dropped');
  const sender = new DurationSender(channel, 3, dropped);
  for (let number = 1; number <= 66; number += 1) sender.add(Float64Array.of(number, NaN), 1);
  expect([sent, dropped.value]).toEqual([[], 2]);
  channel.isCongested = false;
  sender.sendHeld();
  expect(sent.flatMap((body) => [...readValues(body)])).toEqual(Array.from({ length: 64 }, (_, index) => index + 1));
});
