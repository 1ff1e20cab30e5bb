import { QUICK } from '../../bench/leases/cases';
import { simulateAll } from '../../bench/leases/report';
import { type Mode, type Setting, simulateScale } from '../../bench/scale/fleet';
import { Zipf } from '../../bench/scale/zipf';

/** The least share of a limit that passes by the end of its window, when there are enough calls. */
const GOALS: Readonly<Record<string, number>> = {
  '20 uneven instances, 1,000 per second': 0.985,
  '20 uneven instances, 10,000 per 10 s': 0.995,
};

describe('leases of a fleet', () => {
  it.each(simulateAll(QUICK))('let nearly all of the limit of $title pass in its window', ({ title, results }) => {
    const [below, ...above] = results;
    expect(below!.passed).toBe(1);
    for (const { passed, trips } of above) {
      expect([passed >= GOALS[title]!, passed <= 1, trips < 0.5]).toEqual([true, true, true]);
    }
  });
});

/** A small fleet, with keys that are called more often than their limits allow. */
function small(mode: Mode, changes: Partial<Setting> = {}): Setting {
  const fleet = { trips: [2, 30, 80], instances: 2, keys: 5_000, exponent: 1.1, callsPerSecond: 30_000 };
  const limit = { requestsPerUnit: 500, windowSeconds: 1, nodes: 4, isPerRegion: false, home: 1 / 3 };
  return { mode, seconds: 1, warmUp: 1, ...fleet, ...limit, ...changes };
}

describe('the simulation of many regions', () => {
  it('shows that leases save commands, most of them on the hottest node, and let nearly as many calls pass', () => {
    const [exact, cached, leases] = (['exact', 'cached', 'leases'] as const).map((mode) => simulateScale(small(mode)));
    // 5 standard deviations of the number of calls.
    for (const { calls } of [exact!, cached!, leases!]) expect(Math.abs(calls - 30_000)).toBeLessThan(900);
    expect([exact!.atOnce, exact!.passed, exact!.deniedEarly]).toEqual([0, 1, 0]);
    expect([cached!.atOnce > 0.2, cached!.passed]).toEqual([true, 1]);
    expect([leases!.atOnce > 0.2, leases!.passed > 0.9, leases!.deniedEarly < 0.01]).toEqual([true, true, true]);
    expect(leases!.commands).toBeLessThan(exact!.commands);
    expect(leases!.hottestNode).toBeLessThan(exact!.hottestNode);
    expect([leases!.leases > 1, leases!.mostLeases >= leases!.leases]).toEqual([true, true]);
  });

  it('lets less pass where each region has a part of the limit, and most calls on a key come from one region', () => {
    const [even, home] = [1 / 3, 0.9].map((share) => simulateScale(small('exact', { isPerRegion: true, home: share })));
    expect(even!.passed).toBeGreaterThan(0.95);
    expect(home!.passed).toBeLessThan(0.9);
    expect(home!.deniedEarly).toBeGreaterThan(even!.deniedEarly);
  });

  it('draws keys in proportion to their ranks', () => {
    const [size, draws] = [100, 200_000];
    const zipf = new Zipf(size, 1.1);
    const drawn = new Float64Array(size);
    for (let step = 0; step < draws; step += 1) drawn[zipf.draw((step + 0.5) / draws)]! += 1 / draws;
    const weights = Array.from({ length: size }, (_, rank) => (rank + 1) ** -1.1);
    const sum = weights.reduce((one, other) => one + other);
    for (const [rank, weight] of weights.entries()) expect(drawn[rank]).toBeCloseTo(weight / sum, 3);
  });
});
