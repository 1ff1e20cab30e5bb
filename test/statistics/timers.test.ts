import { EvenSamples } from '../../src/statistics/even-samples';
import { Histogram } from '../../src/statistics/histogram';
import { QuantileSketch } from '../../src/statistics/quantile-sketch';
import { Statistics } from '../../src/statistics/statistics';
import { type SampleRecorder, Timer } from '../../src/statistics/timer';

function recorded(values: Iterable<number>, recorder: SampleRecorder): void {
  const timer = new Timer('t');
  timer.addRecorder(recorder);
  for (const value of values) timer.record(value);
  timer.flush();
}

function* upTo(count: number): Iterable<number> {
  for (let value = 0; value < count; value += 1) yield value;
}

describe('a timer', () => {
  it('passes every sample once, in order, to each recorder, regardless of the batch size', () => {
    const seen: number[] = [];
    recorded(upTo(1300), { add: (values, count) => seen.push(...values.subarray(0, count)) });
    expect(seen).toEqual([...upTo(1300)]);
  });

  it('passes only later samples to a recorder that is added later', () => {
    const timer = new Timer('t');
    timer.record(1);
    const seen: number[] = [];
    timer.addRecorder({ add: (values, count) => seen.push(...values.subarray(0, count)) });
    timer.record(2);
    timer.flush();
    expect(seen).toEqual([2]);
  });

  it('is reported to listeners whether it was created before or after them', () => {
    const statistics = new Statistics(0);
    statistics.timer('a');
    const names: string[] = [];
    statistics.onTimer(({ name }) => names.push(name));
    statistics.timer('b');
    statistics.timer('a');
    expect(names).toEqual(['a', 'b']);
  });

  it('has its count and quantiles among the statistics once there is a sample', () => {
    const statistics = new Statistics(0);
    const timer = statistics.timer('ratelimit_server.X.response_time');
    function shown() {
      return Object.fromEntries([...statistics.entries()].filter(([name]) => name.startsWith('ratelimit_server.')));
    }
    expect(shown()).toEqual({});
    for (let value = 1; value <= 100; value += 1) timer.record(value);
    expect(shown()).toEqual({
      'ratelimit_server.X.response_time.count': 100,
      'ratelimit_server.X.response_time.p50_ms': expect.closeTo(50, -0.5),
      'ratelimit_server.X.response_time.p99_ms': expect.closeTo(99, -0.5),
      'ratelimit_server.X.response_time.max_ms': 100,
    });
  });
});

describe('even samples', () => {
  it.each([
    [3, 8, [0, 1, 2], 1],
    [8, 8, [0, 1, 2, 3, 4, 5, 6, 7], 1],
    [9, 8, [0, 2, 4, 6, 8], 0.5],
    [17, 8, [0, 4, 8, 12, 16], 0.25],
    [32, 8, [0, 4, 8, 12, 16, 20, 24, 28], 0.25],
  ])('of %i with room for %i are evenly distributed, with their rate', (count, limit, values, rate) => {
    const samples = new EvenSamples(limit);
    recorded(upTo(count), samples);
    expect(samples.take()).toEqual({ values, rate });
  });

  it('keep their stride across batches, and represent the number of recorded samples', () => {
    const samples = new EvenSamples(100);
    recorded(upTo(100_000), samples);
    const { values, rate } = samples.take();
    const stride = 1 / rate;
    expect(values).toEqual(values.map((_, index) => index * stride));
    expect(Math.abs(values.length / rate - 100_000)).toBeLessThan(stride);
  });

  it('start again after they were taken', () => {
    const samples = new EvenSamples(2);
    recorded(upTo(100), samples);
    samples.take();
    recorded([7], samples);
    expect(samples.take()).toEqual({ values: [7], rate: 1 });
  });
});

describe('a histogram', () => {
  it('counts a sample equal to a bound in its bucket, and one above all bounds in the last bucket', () => {
    const histogram = new Histogram([1, 2, 5], 1);
    recorded([0, 1, 1.5, 2, 5.1, 100], histogram);
    expect([...histogram.counts]).toEqual([2, 2, 0, 2]);
    expect([histogram.count, histogram.sum]).toEqual([6, 109.6]);
  });

  it('scales samples before they are compared and added', () => {
    const histogram = new Histogram([0.001, 0.002], 0.001);
    recorded([1, 2, 3], histogram);
    expect([...histogram.counts]).toEqual([1, 1, 1]);
    expect(histogram.sum).toBeCloseTo(0.006, 12);
  });
});

describe('a quantile sketch', () => {
  it.each([0.0002, 0.05, 1, 250, 60_000])('is accurate to 1 %% around %d ms', (middle) => {
    const sketch = new QuantileSketch();
    const values = [...upTo(1001)].map((value) => middle * (0.5 + value / 1000));
    recorded(values, sketch);
    for (const share of [0, 0.1, 0.5, 0.9, 0.99, 1]) {
      const exact = values[Math.max(0, Math.ceil(share * values.length) - 1)] as number;
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
