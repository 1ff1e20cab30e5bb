import { EvenSamples } from '../../src/sinks/statistics/push-outputs';
import { Cursor } from '../../src/statistics/cursor';
import { escapeStatisticsKey } from '../../src/statistics/escape';
import { QuantileSketch } from '../../src/statistics/quantile-sketch';
import { RULE_STATS } from '../../src/statistics/rule-statistics';
import { Statistics } from '../../src/statistics/statistics';
import { type SampleRecorder, Timer } from '../../src/statistics/timer';
import fc from '../support/data/properties';

const RULE = 'ratelimit.service.rate_limit.';

/** The values of statistics, by names below `ratelimit.`: those of rules, or of the registry itself. */
function valuesOf(statistics: Statistics, ...names: readonly string[]) {
  const values = new Map(statistics.entries());
  return names.map((name) => values.get(name.startsWith('ratelimit.') ? name : RULE + name));
}
function hit(statistics: Statistics, key: string, rollUp = 'd.k'): void {
  statistics.runtimeRule(key, rollUp).totalHits += 1;
}

it.each([
  ['shop.k_a:b|c', 'shop.k_a_b_c'],
  ['shop.ip_10.0.0.1.x_1.2.3.4', 'shop.ip_10_0_0_1.x_1_2_3_4'],
  ['shop.ip_1:2.3.4.5', 'shop.ip_1_2_3_4_5'],
  ['shop.v_1234.5.6.7', 'shop.v_1234_5_6_7'],
  ['shop.k_line\nfeed\u0000\u007f', 'shop.k_line_feed__'],
  ['shop.k_ünï cødé', 'shop.k_ünï cødé'],
])('the statistics key %j is escaped as %j', (key, escaped) => {
  expect(escapeStatisticsKey(key)).toBe(escaped);
});

describe('the statistics registry', () => {
  const SIZES = ['ratelimit.statistics.runtime_keys', 'ratelimit.statistics.rolled_up'];

  it('returns the same counter for the same name, also for two runtime keys that escape to it', () => {
    const statistics = new Statistics(10);
    statistics.counter('ratelimit.a').add(1);
    statistics.counter('ratelimit.a').add(2);
    hit(statistics, 'd.k_a:b');
    hit(statistics, 'd.k_a|b');
    expect(valuesOf(statistics, 'ratelimit.a', 'd.k_a_b.total_hits')).toEqual([3, 2]);
  });

  it('limits the number of runtime keys of rules and unknown domains together, keeps existing ones, counts every hit', () => {
    const statistics = new Statistics(1000);
    const unknown = 'other.domain_not_found';
    statistics.runtimeRule('x', 'other').domainNotFound += 1;
    for (let value = 0; value < 10_000; value += 1) hit(statistics, `d.k_${value}`);
    statistics.runtimeRule('y', 'other').domainNotFound += 1;
    hit(statistics, 'd.k_1');
    const names = ['d.k_1.total_hits', 'd.k_999.total_hits', 'd.k.total_hits', 'x.domain_not_found', unknown];
    expect(valuesOf(statistics, ...names, ...SIZES)).toEqual([2, undefined, 9001, 1, 1, 1000, 9002]);
    expect(statistics.rules.reduce((sum, { totalHits }) => sum + totalHits, 0)).toBe(10_001);
    expect([...statistics.rolledUp('d.k')]).toHaveLength(1000);
  });

  it('limits the length of a runtime key, and the mean length of all, to limit memory', () => {
    const statistics = new Statistics(100);
    hit(statistics, 'd.k_'.padEnd(1024, 'x'));
    hit(statistics, 'd.k_'.padEnd(1025, 'x'));
    statistics.runtimeRule('x'.repeat(1_000_000), 'other').domainNotFound += 1;
    expect(valuesOf(statistics, 'd.k.total_hits', 'other.domain_not_found', ...SIZES)).toEqual([1, 1, 1, 2]);
    for (let value = 0; value < 100; value += 1) hit(statistics, `d.k_${value}`.padEnd(1024, 'x'));
    expect(valuesOf(statistics, ...SIZES)).toEqual([25, 78]);
  });
});

it('changes add up to the counters for any sequence of counting, taking and leaving the loop', () => {
  const step = fc.record({ counter: fc.nat(4), amount: fc.nat(100), takes: fc.nat(8) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const statistics = new Statistics(10);
      const cursor = new Cursor(statistics);
      const received = new Map<string, number>();
      function receive(most: number) {
        let left = most;
        for (const batch of cursor.changes(2)) {
          if (left === 0) return;
          left -= 1;
          for (const { name, tags, delta, value } of batch) {
            expect(tags).toEqual(name.startsWith('c') ? { code: 'x' } : {});
            expect(delta === 0 && !(name.startsWith('c') && !received.has(name))).toBe(false);
            received.set(name, (received.get(name) ?? 0) + delta);
            expect(value).toBe(received.get(name));
          }
          cursor.take(batch);
        }
      }
      for (const { counter, amount, takes } of steps) {
        statistics.counter(`c${counter}.__code=x`).add(amount);
        statistics.rule(`d.r${counter}.__a=b`)[RULE_STATS[counter]?.[1] ?? 'totalHits'] += amount;
        receive(takes);
      }
      receive(Infinity);
      const counted = [...statistics.entries()]
        .filter(([name, value]) => (value !== 0 || name.startsWith('c')) && !name.includes('.statistics.'))
        .map(([name, value]) => [name.replace('.__code=x', ''), value] as const);
      expect(new Map(counted)).toEqual(received);
      expect([...cursor.changes(2)].flat()).toEqual([]);
    }),
  );
});

describe('a timer', () => {
  function recorded(values: Iterable<number>, recorder: SampleRecorder): void {
    const timer = new Timer('t');
    timer.addRecorder(recorder);
    for (const value of values) timer.record(value);
    timer.flush();
  }
  function upTo(count: number): readonly number[] {
    return Array.from({ length: count }, (_, index) => index);
  }

  it('passes every later sample once, in order, to each recorder, regardless of the batch size', () => {
    const timer = new Timer('t');
    timer.record(-1);
    const seen: number[] = [];
    timer.addRecorder({ add: (values, count) => seen.push(...values.subarray(0, count)) });
    for (const value of upTo(1300)) timer.record(value);
    timer.flush();
    expect(seen).toEqual(upTo(1300));
  });

  it('has its count and quantiles among the statistics once there is a sample', () => {
    const statistics = new Statistics(0);
    const timer = statistics.timer('t');
    function shown() {
      return Object.fromEntries([...statistics.entries()].filter(([name]) => name.startsWith('t.')));
    }
    expect(shown()).toEqual({});
    for (const value of upTo(101).slice(1)) timer.record(value);
    const [half, most] = [expect.closeTo(50, -0.5), expect.closeTo(99, -0.5)];
    expect(shown()).toEqual({ 't.count': 100, 't.p50_ms': half, 't.p99_ms': most, 't.max_ms': 100 });
  });

  it.each([
    [8, 8, [0, 1, 2, 3, 4, 5, 6, 7], 1],
    [9, 8, [0, 2, 4, 6, 8], 0.5],
    [32, 8, [0, 4, 8, 12, 16, 20, 24, 28], 0.25],
    [5000, 4, [0, 2048, 4096], 1 / 2048],
  ])(
    'of %i samples keeps up to %i that are evenly distributed, with their rate, and starts again',
    (count, limit, values, rate) => {
      const samples = new EvenSamples(limit);
      recorded(upTo(count), samples);
      expect(samples.take()).toEqual({ values, rate });
      recorded([7], samples);
      expect(samples.take()).toEqual({ values: [7], rate: 1 });
    },
  );

  it.each([0.0002, 0.05, 1, 250, 60_000])('has quantiles that are accurate to 1 %% around %d ms', (middle) => {
    const sketch = new QuantileSketch();
    const values = upTo(1001).map((value) => middle * (0.5 + value / 1000));
    recorded(values, sketch);
    for (const share of [0, 0.1, 0.5, 0.9, 0.99, 1]) {
      const exact = values[Math.max(0, Math.ceil(share * values.length) - 1)]!;
      expect(Math.abs(sketch.quantile(share) / exact - 1)).toBeLessThan(0.0079);
    }
  });

  it('has no quantile without samples, and counts samples outside its range', () => {
    const sketch = new QuantileSketch();
    expect(sketch.quantile(0.5)).toBeNaN();
    recorded([0, 1e12], sketch);
    expect([sketch.count, sketch.max]).toEqual([2, 1e12]);
    expect(sketch.quantile(0.5)).toBeLessThan(0.001);
  });
});
