import { seedOf } from '../support/data/seeded-random';
import { runFleet } from './lease-bounds';

/** With each kind of counter. */
const CALLS = 3_000_000;
/** A busy machine plays 3,000 calls a second. */
const HANGS = 1_800_000;

describe('in nine million calls, never more than the limit passes over all instances', () => {
  it.each([
    ['fixed windows', undefined],
    ['a sliding window', 'sliding_window'],
    ['a token bucket', 'token_bucket'],
  ] as const)(
    'with %s',
    (_, algorithm) => {
      let [made, atOnce, granted] = [0, 0, 0];
      for (let seed = seedOf('leases') >>> 0; made < CALLS; seed += 1) {
        const { excess, ...result } = runFleet({ seed, algorithm });
        expect([seed, excess.slice(0, 3)]).toEqual([seed, []]);
        made += result.calls;
        atOnce += result.atOnce;
        granted += result.granted;
      }
      // Otherwise there was nothing to be wrong.
      expect([atOnce > made / 5, granted > made / 5]).toEqual([true, true]);
    },
    HANGS,
  );
});
