import fc from 'fast-check';
import { text } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { Exposition } from '../../../src/sinks/statistics/exposition/exposition';
import { builtInMapping } from '../../../src/sinks/statistics/mapping/built-in-mapping';
import { Mapper } from '../../../src/sinks/statistics/mapping/mapping';
import { EvenSamples } from '../../../src/statistics/even-samples';
import { Statistics } from '../../../src/statistics/statistics';
import { MergedStatistics } from '../../../src/workers/statistics/merged-statistics';
import { StatisticsReporter } from '../../../src/workers/statistics/statistics-reporter';
import { until } from '../../support/waiting/until';
import { channelPair } from '../../support/workers/channel-pair';

const WORKERS = 3;
/** In milliseconds: longer than any test. */
const NO_DEADLINE = 600_000;
const TIMERS = ['ratelimit_server.ShouldRateLimit.response_time', 'other'];

type Step =
  | { readonly kind: 'counter'; readonly name: string; readonly amount: number }
  | { readonly kind: 'rule' | 'runtime'; readonly key: string; readonly hits: number; readonly over: number }
  | { readonly kind: 'runtimeCounter'; readonly key: string }
  | { readonly kind: 'timer'; readonly name: string; readonly milliseconds: number; readonly times: number }
  | { readonly kind: 'collect' };

const hits = fc.nat(100);
// Some are escaped; two of them to the same name.
const key = fc.constantFrom('d.a', 'd.b', 'd.10.0.0.1', 'd.x:y', 'd.x|y', 'd.é', 'd.\n', `d.${'long'.repeat(100)}`);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('counter' as const),
    name: fc.constantFrom('a', 'b', 'c.__code=x'),
    amount: hits,
  }),
  fc.record({ kind: fc.constantFrom('rule' as const, 'runtime' as const), key, hits, over: hits }),
  fc.record({ kind: fc.constant('runtimeCounter' as const), key }),
  fc.record({
    kind: fc.constant('timer' as const),
    name: fc.constantFrom(...TIMERS),
    milliseconds: fc.double({ min: 0, max: 20_000, noNaN: true }),
    times: fc.constantFrom(1, 3, 600, 5_000),
  }),
  fc.record({ kind: fc.constant('collect' as const) }),
);

function apply(statistics: Statistics, taken: Step): void {
  if (taken.kind === 'counter') statistics.counter(taken.name).add(taken.amount);
  else if (taken.kind === 'runtimeCounter') statistics.runtimeCounter(`${taken.key}.none`, 'other.none').add(1);
  else if (taken.kind === 'timer') {
    for (let time = 0; time < taken.times; time += 1) statistics.timer(taken.name).record(taken.milliseconds);
  } else if (taken.kind !== 'collect') {
    const rule = taken.kind === 'rule' ? statistics.rule(taken.key) : statistics.runtimeRule(taken.key, 'd.rest');
    rule.totalHits += taken.hits;
    rule.overLimit += taken.over;
  }
}

/** All values, without those about the registry itself. */
function valuesOf(statistics: Statistics): Map<string, number> {
  const entries = [...statistics.entries()].filter(([name]) => !/ratelimit\.(statistics|workers)\./.test(name));
  return new Map(entries.filter(([, value]) => value !== 0));
}

function exposition(statistics: Statistics): Exposition {
  return new Exposition({
    statistics,
    mapper: new Mapper(builtInMapping(false)),
    labels: { region: 'eu' },
    reserved: new Set(),
    onConflict: (metric) => {
      throw new Error(`conflict ${metric}`);
    },
    now: () => 0,
  });
}

/** The lines of a page, without those that are 0 and those about the registry itself, sorted; sums are rounded. */
async function linesOf(page: Exposition): Promise<readonly string[]> {
  const lines = (await text(Readable.from(page.page()))).split('\n');
  return lines
    .filter((line) => !/ 0$|^ratelimit_(statistics|workers)_|^#/.test(line))
    .map((line) =>
      /_sum/.test(line) ? line.replace(/ (.*)$/, (_, sum: string) => ` ${Number(sum).toPrecision(10)}`) : line,
    )
    .sort();
}

/** A registry with the statistics of several workers in it. */
function instanceOf(workers: readonly Statistics[], maxKeys: number, cut?: (bytes: Buffer) => readonly Buffer[]) {
  const statistics = new Statistics(maxKeys);
  const merged = new MergedStatistics(statistics);
  const close = workers.map((worker) => {
    const pair = channelPair(cut === undefined ? {} : { cut });
    merged.add(pair.primary);
    const reporter = new StatisticsReporter(worker, pair.worker);
    return { reporter, end: () => pair.worker.close() };
  });
  return { statistics, merged, ends: close };
}

describe('the merged statistics of workers', () => {
  it('are those of a single registry, on every page, however the work is split and the bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(WORKERS - 1), step), { maxLength: 60 }),
        fc.integer({ min: 1, max: 5000 }),
        async (steps, size) => {
          const single = new Statistics(1000);
          const workers = Array.from({ length: WORKERS }, () => new Statistics(1000));
          const { statistics, merged, ends } = instanceOf(workers, 1000, (bytes) => pieces(bytes, size));
          const pages = [exposition(single), exposition(statistics)];
          const samples = [single, statistics].map((registry) => {
            const kept = new EvenSamples(100_000);
            registry.timer(TIMERS[0] as string).addRecorder(kept);
            return kept;
          });
          for (const [worker, taken] of steps) {
            apply(single, taken);
            apply(workers[worker] as Statistics, taken);
            if (taken.kind === 'collect') await merged.collect(NO_DEADLINE);
          }
          await merged.collect(NO_DEADLINE);
          expect(valuesOf(statistics)).toEqual(valuesOf(single));
          const [expected, actual] = await Promise.all(pages.map(linesOf));
          expect(actual).toEqual(expected);
          for (const registry of [single, statistics]) registry.timer(TIMERS[0] as string).flush();
          const [ofSingle, ofInstance] = samples.map((kept) =>
            [...kept.take().values].sort((one, other) => one - other),
          );
          expect(ofInstance).toEqual(ofSingle);
          for (const { end } of ends) end();
        },
      ),
      { numRuns: 60 },
    );
  });

  it('keep what a worker that has ended had counted, count none of it twice, and drop its gauges', async () => {
    const workers = [new Statistics(10), new Statistics(10)] as const;
    for (const [index, worker] of workers.entries()) {
      worker.gauge('connections', () => 5 + index);
      worker.gauge('ratelimit.localcache.lookupCount', () => 100 + index);
      worker.gauge('ratelimit.pipeline.window_size', () => 7 + index);
      worker.gauge('ratelimit.build_info', () => 1);
      worker.counter('calls').add(3);
      worker.rule('d.k').totalHits += 4;
    }
    const { statistics, merged, ends } = instanceOf(workers, 10);
    statistics.gauge('ratelimit.build_info', () => 1);
    await merged.collect(NO_DEADLINE);
    expect(valuesOf(statistics)).toEqual(
      new Map([
        ['calls', 6],
        ['connections', 11],
        ['ratelimit.build_info', 1],
        ['ratelimit.localcache.lookupCount', 201],
        ['ratelimit.pipeline.window_size', 8],
        ['ratelimit.service.rate_limit.d.k.total_hits', 8],
      ]),
    );
    ends[1]?.end();
    const replacement = new Statistics(10);
    replacement.gauge('connections', () => 1);
    replacement.gauge('ratelimit.localcache.lookupCount', () => 10);
    replacement.counter('calls').add(1);
    const pair = channelPair();
    merged.add(pair.primary);
    const reporter = new StatisticsReporter(replacement, pair.worker);
    await reporter.report();
    await merged.collect(NO_DEADLINE);
    expect(valuesOf(statistics)).toEqual(
      new Map([
        ['calls', 7],
        ['connections', 6],
        ['ratelimit.build_info', 1],
        ['ratelimit.localcache.lookupCount', 211],
        ['ratelimit.pipeline.window_size', 7],
        ['ratelimit.service.rate_limit.d.k.total_hits', 8],
      ]),
    );
    pair.worker.close();
    ends[0]?.end();
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
    expect(values.get('ratelimit.statistics.runtime_keys')).toBe(50);
    expect(values.get('ratelimit.statistics.rolled_up')).toBeGreaterThan(0);
    const names = [...values.keys()].filter((name) => /user_\d|domain_\d/.test(name));
    expect(names).toHaveLength(50);
    function hitsOf(pattern: RegExp): number {
      return [...values].reduce((sum, [name, value]) => (pattern.test(name) ? sum + value : sum), 0);
    }
    expect(hitsOf(/total_hits$/)).toBe(900);
    expect(hitsOf(/domain_not_found$/)).toBe(900);
    expect(values.get('ratelimit.service.rate_limit.other.domain_not_found')).toBeGreaterThan(0);
    for (const { end } of ends) end();
  });

  // Each key is also the roll-up of another one.
  it.each([
    ['one longer than a frame, in bytes of UTF-8', 1, 'é'.repeat(1024 * 1024)],
    ['one longer than several frames', 1, 'k'.repeat(3 * 1024 * 1024)],
    ['more long ones than may wait for the channel at once', 80, 'k'.repeat(1024 * 1024)],
  ])('have rules with keys of any length: %s', async (_, count, longKey) => {
    const worker = new Statistics(count);
    const { statistics, merged, ends } = instanceOf([worker], count, (bytes) => pieces(bytes, 64 * 1024));
    for (let number = 0; number < count; number += 1) {
      worker.rule(`d.${number}.${longKey}`).totalHits += 2;
      worker.runtimeRule(`d.${number}`, longKey).totalHits += 3;
    }
    await ends[0]?.reporter.report();
    await merged.collect(NO_DEADLINE);
    // The names themselves would make the message of a failure unreadable.
    const values = valuesOf(statistics);
    const isSame = [...valuesOf(worker)].every(([name, value]) => values.get(name) === value);
    expect([isSame, statistics.rules.length]).toEqual([true, 2 * count]);
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
    await until('the others have reported', () => valuesOf(statistics).get('calls') === 4);
    const withoutDeadline = merged.collect(NO_DEADLINE);
    stalled.worker.close();
    await withoutDeadline;
    expect(valuesOf(statistics).get('calls')).toBe(4);
    for (const { end } of ends) end();
  });
});

function pieces(bytes: Buffer, size: number): readonly Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size));
  return parts;
}
