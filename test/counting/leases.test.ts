import { type Disturbances, runFleet } from './lease-bounds';

const NONE: Disturbances = { kill: 0, stall: 0, reload: 0, negative: 0, clear: 0, override: 0, outside: 0 };
const ALL: Disturbances = {
  ...{ kill: 0.0005, stall: 0.001, reload: 0.001 },
  ...{ negative: 0.005, clear: 0.0005, override: 0.002, outside: 0.002 },
};

describe('never more than the limit passes, over all instances', () => {
  it.each([
    ['fixed windows', undefined],
    ['a sliding window', 'sliding_window'],
    ['a token bucket', 'token_bucket'],
  ] as const)('with %s', (_, algorithm) => {
    let [atOnce, granted] = [0, 0];
    for (let seed = 1; seed <= 8; seed += 1) {
      for (const disturbances of [NONE, ALL]) {
        const result = runFleet({ seed, calls: 4_000, algorithm, disturbances });
        expect([seed, result.excess.slice(0, 3)]).toEqual([seed, []]);
        atOnce += result.atOnce;
        granted += result.granted;
      }
    }
    // Otherwise there was nothing to be wrong.
    expect([atOnce > 4_000, granted > 4_000]).toEqual([true, true]);
  });
});
