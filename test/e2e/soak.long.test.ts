import { seededRandom } from '../grpc/http2/seeded-random';
import { CONNECTION_WINDOW, MAX_FRAME_BYTES } from '../support/clients/soak-client';
import { type SoakResult, soak } from '../support/soak';

/** `npm run bench:soak` sends a million. */
const CALLS = 30_000;
const PARTS = 3;
/** What may grow without a leak: compiled code, for example. In 20,000 calls, 1 KiB lost per call is 20 MiB. */
const GROWTH = 10 * 1_024 * 1_024;
const SEED = 'soak';

describe(`${CALLS} calls with seed ${SEED}, of which a tenth are cancelled and some connections are dropped,`, () => {
  let result: SoakResult;
  beforeAll(async () => {
    result = await soak({ calls: CALLS, parts: PARTS, random: seededRandom(SEED) });
  });

  it('are answered, unless they were cancelled, late or on a dropped connection', () => {
    const { sent, answered, cancelled, expired, dropped, connectionsDropped } = result.outcomes;

    expect(sent).toBe(CALLS);
    expect(answered + cancelled + expired + dropped).toBe(CALLS);
    for (const count of [cancelled, expired, dropped, connectionsDropped]) expect(count).toBeGreaterThan(0);
    expect(answered).toBeGreaterThan(CALLS / 2);
    expect(result.rejections).toEqual(new Map());
  });

  it('are counted once if they were answered, and at most once otherwise', () => {
    const { answered, cancelled, expired, dropped } = result.outcomes;

    expect(result.counted).toBeGreaterThanOrEqual(answered);
    // A call that is cancelled before its pipeline window closes is in total_hits, but not in the store.
    expect(result.hits).toBeGreaterThanOrEqual(result.counted);
    expect(result.hits).toBeLessThanOrEqual(answered + cancelled + expired + dropped);
  });

  it('leave no open call, no held byte, and only the connections of the clients', () => {
    expect(result.measurements.map(({ openCalls, heldBytes }) => [openCalls, heldBytes])).toEqual(
      Array.from({ length: PARTS }, () => [0, 0]),
    );
    expect(result.connections).toBe(result.uploads.length);
  });

  it('leave the flow-control windows of each connection as at the start, and a message of 4 MiB passes', () => {
    const restored = [CONNECTION_WINDOW, CONNECTION_WINDOW - MAX_FRAME_BYTES];

    expect(result.uploads.filter(({ status, window }) => status !== '0' || !restored.includes(window))).toEqual([]);
    expect(result.uploads.length).toBeGreaterThan(1);
  });

  it('leave the memory that the service uses as it was after the first of them', () => {
    const [first, ...others] = result.measurements.map(({ heap }) => heap);

    expect(Math.max(...others) - first!).toBeLessThan(GROWTH);
  });
});
