import { EvenSamples } from '../../src/sinks/statistics/push-outputs';
import { Statistics } from '../../src/statistics/statistics';
import type { Channel } from '../../src/workers/channel';
import { MergedStatistics, StatisticsReporter } from '../../src/workers/statistics';
import fc from '../support/data/properties';
import { until } from '../support/waiting/until';
import { channelPair } from '../support/workers/channel-pair';

const MIB = 1024 * 1024;

describe('the merged statistics of workers', () => {
  /** In milliseconds: longer than any test. */
  const NO_DEADLINE = 600_000;
  const TIMER = 'ratelimit_server.ShouldRateLimit.response_time';

  type Step = (statistics: Statistics) => void;

  // Some are escaped; two of them to the same name.
  const key = fc.constantFrom('d.a', 'd.10.0.0.1', 'd.x:y', 'd.x|y', 'd.é', 'd.\n', `d.${'long'.repeat(100)}`);
  const duration = fc.double({ min: 0, max: 20_000, noNaN: true });

  /** What a worker counts; undefined: the primary collects. */
  const step: fc.Arbitrary<Step | undefined> = fc.oneof(
    fc.tuple(fc.boolean(), key, fc.nat(100)).map(([isRuntime, name, hits]): Step => (statistics) => {
      statistics.counter('c.__code=x').add(hits);
      statistics.runtimeRule(`${name}.none`, 'other').domainNotFound += 1;
      const rule = isRuntime ? statistics.runtimeRule(name, 'd.rest') : statistics.rule(name);
      rule.totalHits += hits;
    }),
    fc.tuple(duration, fc.constantFrom(1, 600, 2_000)).map(([milliseconds, times]): Step => (statistics) => {
      for (let time = 0; time < times; time += 1) statistics.timer(TIMER).record(milliseconds);
    }),
    fc.constant(undefined),
  );

  /** All values that are not 0, without those about the registry itself. */
  function valuesOf(statistics: Statistics): Readonly<Record<string, number>> {
    const own = /ratelimit\.(statistics|workers)\./;
    return Object.fromEntries([...statistics.entries()].filter(([name, value]) => value !== 0 && !own.test(name)));
  }

  const opened: Channel[] = [];
  afterEach(() => opened.splice(0).forEach((channel) => channel.close()));

  /** A registry with the statistics of several workers in it. */
  function instanceOf(workers: readonly Statistics[], maxKeys: number, chunkBytes = MIB) {
    const statistics = new Statistics(maxKeys);
    const merged = new MergedStatistics(statistics);
    function add(worker: Statistics) {
      const pair = channelPair(chunkBytes);
      merged.add(pair.primary);
      opened.push(pair.worker);
      return { reporter: new StatisticsReporter(worker, pair.worker), end: () => pair.worker.close() };
    }
    const ends = workers.map(add);
    return { statistics, merged, ends, collect: () => merged.collect(NO_DEADLINE) };
  }

  it('are those of a single registry, with every duration, however the work is split and the bytes are cut', async () => {
    const steps = fc.array(fc.tuple(fc.nat(2), step), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 10, max: 5000 }), async (taken, size) => {
        const single = new Statistics(1000);
        const workers = Array.from({ length: 3 }, () => new Statistics(1000));
        const { statistics, collect } = instanceOf(workers, 1000, size);
        const samples = [single, statistics].map((registry) => {
          const kept = new EvenSamples(100_000);
          registry.timer(TIMER).addRecorder(kept);
          return kept;
        });
        for (const [worker, count] of taken) {
          if (count === undefined) await collect();
          for (const registry of [single, workers[worker]!]) count?.(registry);
        }
        await collect();
        expect(valuesOf(statistics)).toEqual(valuesOf(single));
        for (const registry of [single, statistics]) registry.timer(TIMER).flush();
        const [ofSingle, ofInstance] = samples.map((kept) => [...kept.take().values].sort((one, other) => one - other));
        expect(ofInstance).toEqual(ofSingle);
      }),
      { numRuns: 25 },
    );
  });

  it('keep the counts of a worker that has ended, drop its gauges, and show the size of the largest windows', async () => {
    // The counts of a local cache are a counter of its worker.
    const names = ['connections', 'ratelimit.localcache.lookupCount', 'ratelimit.pipeline.window_size', 'calls'];
    const workers = [
      [5, 100, 7, 3],
      [6, 101, 8, 4],
    ].map((values) => {
      const own = new Statistics(10);
      names.slice(0, 3).forEach((name, index) => own.gauge(name, () => values[index]!));
      own.counter('calls').add(values[3]!);
      return own;
    });
    const { statistics, ends, collect } = instanceOf(workers, 10);
    await collect();
    expect(names.map((name) => valuesOf(statistics)[name])).toEqual([11, 201, 8, 7]);
    ends[1]?.end();
    await collect();
    expect(names.map((name) => valuesOf(statistics)[name])).toEqual([5, 201, 7, 7]);
  });

  it('keep gauges of one name apart by their tags, and show whether any worker holds back calls for a server', async () => {
    const workers = [
      [0, 1],
      [0, 0],
    ].map(([a = 0, b = 0]) => {
      const own = new Statistics(10);
      own.gauge('ratelimit.store.breaker_open', () => a, { server: 'a' });
      own.gauge('ratelimit.store.breaker_open', () => b, { server: 'b' });
      return own;
    });
    const { statistics, collect } = instanceOf(workers, 10);
    await collect();
    const names = ['a', 'b'].map((server) => `ratelimit.store.breaker_open.__server=${server}`);
    expect(names.map((name) => statistics.readGauge(name))).toEqual([0, 1]);
    expect(new Map(workers[0]!.entries()).get(names[1]!)).toBe(1);
  });

  it('have at most the maximum number of runtime keys, and every hit', async () => {
    const workers = [0, 1, 2].map(() => new Statistics(50));
    const { statistics, collect } = instanceOf(workers, 50);
    for (let round = 0; round < 10; round += 1) {
      for (const [index, worker] of workers.entries()) {
        for (let value = 0; value < 30; value += 1) {
          worker.runtimeRule(`d.user_${index % 2}_${round * 10 + value}`, 'd.user').totalHits += 1;
        }
      }
      await collect();
    }
    const values = new Map(statistics.entries());
    const hits = [...values].filter(([name]) => name.endsWith('total_hits'));
    expect(values.get('ratelimit.statistics.runtime_keys')).toBe(50);
    expect(hits.filter(([name]) => /user_\d/.test(name))).toHaveLength(50);
    expect(hits.reduce((sum, [, value]) => sum + value, 0)).toBe(900);
  });

  it('have rules with keys of any length, and more of them than may wait for the channel at once', async () => {
    const worker = new Statistics(70);
    const { statistics, collect, ends } = instanceOf([worker], 70);
    for (let number = 0; number < 70; number += 1) worker.rule(`d.${number}.${'k'.repeat(MIB)}`).totalHits += 2;
    worker.runtimeRule('d.é', 'é'.repeat(MIB)).totalHits += 3;
    await ends[0]?.reporter.report();
    await collect();
    // The names themselves would make the message of a failure unreadable.
    const values = valuesOf(statistics);
    const isSame = Object.entries(valuesOf(worker)).every(([name, value]) => values[name] === value);
    expect([isSame, statistics.rules.length]).toEqual([true, 71]);
  });

  it('agree with each other for each rule after every message, so also when a worker ends between two', async () => {
    const worker = new Statistics(10);
    const statistics = new Statistics(10);
    const pair = channelPair();
    opened.push(pair.worker);
    new MergedStatistics(statistics).add(pair.primary);
    const messages: boolean[] = [];
    pair.primary.notifications('statistics').subscribe(() => {
      messages.push(statistics.rules.every(({ totalHits, withinLimit }) => totalHits === withinLimit));
    });
    const reporter = new StatisticsReporter(worker, pair.worker);
    for (let number = 0; number < 5; number += 1) {
      const rule = worker.rule(`d.${number}.${'k'.repeat(70_000)}`);
      rule.totalHits += 2;
      rule.withinLimit += 2;
    }
    await reporter.report();
    await until('the report', () => statistics.rules.length === 5);
    expect(messages.length).toBeGreaterThan(3);
    expect(messages).not.toContain(false);
  });

  it('do not wait for a worker that does not answer', async () => {
    const worker = new Statistics(10);
    const { statistics, merged } = instanceOf([worker], 10);
    merged.add(channelPair().primary);
    worker.counter('calls').add(1);
    await merged.collect();
    await until('the other has reported', () => 'calls' in valuesOf(statistics));
    expect(valuesOf(statistics)['calls']).toBe(1);
  });

  it('lack the durations that a worker records while the primary does not read; they are counted', async () => {
    const worker = new Statistics(10);
    const { statistics, collect } = instanceOf([worker], 10);
    const dropped = worker.counter('ratelimit.workers.dropped_durations');
    worker.timer(TIMER);
    // The channel writes, and the primary reads, only after this callback.
    let recorded = 0;
    for (; dropped.value === 0; recorded += 1) worker.timer(TIMER).record(12.5);
    await collect();
    worker.timer(TIMER).record(12.5);
    await collect();
    const arrived = new Map(statistics.entries());
    expect(arrived.get(`${TIMER}.count`)).toBe(recorded + 1 - dropped.value);
    expect(arrived.get('ratelimit.workers.dropped_durations')).toBe(dropped.value);
  });
});
