import { heapAfterCollection } from '../../support/processes/collect-garbage';
import { chaos } from './chaos';

const DURATION = 10_000;
const TIMEOUT = 250;
/** What the event loop of a busy machine may add to a timeout, in milliseconds. */
const TOLERANCE = 5_000;

// In parallel: each deployment spends most of its time waiting.
it('under random faults no hit is applied twice, no count is wrong, no call exceeds the timeout, and memory stays flat', async () => {
  const before = heapAfterCollection();
  const results = await Promise.all([
    chaos('single', DURATION, TIMEOUT),
    chaos('sentinel', DURATION, TIMEOUT),
    chaos('cluster', DURATION, TIMEOUT),
  ]);
  for (const { appliedTwice, lost, wrongCounts, unexpected, succeeded, failed, longestWait } of results) {
    expect({ appliedTwice, lost, wrongCounts, unexpected }).toEqual({
      appliedTwice: [],
      lost: 0,
      wrongCounts: 0,
      unexpected: [],
    });
    expect(succeeded).toBeGreaterThan(100);
    expect(failed).toBeGreaterThan(50);
    expect(longestWait).toBeLessThan(TIMEOUT + TOLERANCE);
  }
  // Most of the growth is what the test itself records of each hit.
  expect(heapAfterCollection() - before).toBeLessThan(32 * 1024 * 1024);
});
