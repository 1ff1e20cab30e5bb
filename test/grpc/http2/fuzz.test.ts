import { expectHarmless, expectHarmlessOverSockets } from './fuzz';

jest.setTimeout(24 * 3_600_000);

/** The long suite runs more, and `bench/conformance/fuzz.mjs` as many as it is told. */
const CONNECTIONS = Number(process.env['WEIR_FUZZ_SEQUENCES'] ?? 2_000);
const SEED = process.env['WEIR_SEED'] ?? 'fuzz';

describe(`random and damaged frames with seed ${SEED}`, () => {
  it(`cause no internal error, no hang and no leak on ${CONNECTIONS} connections`, () => {
    expectHarmless(CONNECTIONS, SEED);
  });

  it('do not affect another client, over sockets', () =>
    expectHarmlessOverSockets(Math.min(CONNECTIONS / 100, 1_000), SEED));
});
