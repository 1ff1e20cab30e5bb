import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { chaos } from './chaos';

const DURATION = 10_000;
const TIMEOUT = 250;
/** What the event loop of a busy machine may add to a timeout. */
const A_LITTLE = 1000;

// Side by side: each spends most of its time waiting.
it('in chaos no hit is applied twice, no good answer is wrong, nobody waits long, and memory stays flat', async () => {
  const before = collected();
  const results = await Promise.all([
    chaos('single', DURATION, TIMEOUT),
    chaos('sentinel', DURATION, TIMEOUT),
    chaos('cluster', DURATION, TIMEOUT),
  ]);
  for (const { appliedTwice, lost, wrongCounts, unexpected, good, failed, longestWait } of results) {
    expect({ appliedTwice, lost, wrongCounts, unexpected }).toEqual({
      appliedTwice: [],
      lost: 0,
      wrongCounts: 0,
      unexpected: [],
    });
    expect(good).toBeGreaterThan(1000);
    expect(failed).toBeGreaterThan(50);
    expect(longestWait).toBeLessThan(TIMEOUT + A_LITTLE);
  }
  // What the tests themselves remember of each hit is the most of it.
  expect(collected() - before).toBeLessThan(32 * 1024 * 1024);
}, 60_000);

/** Bytes in use that are not garbage. */
function collected(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}
