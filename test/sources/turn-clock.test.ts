import { setImmediate as nextTurn } from 'node:timers/promises';
import { turnClock } from '../../src/sources/event-loop-turns';

describe('turnClock', () => {
  it('reads the clock once per callback of the event loop', async () => {
    let reads = 0;
    const now = turnClock(() => (reads += 1));
    expect([now(), now(), now()]).toEqual([1, 1, 1]);
    await nextTurn();
    expect([now(), now()]).toEqual([2, 2]);
    expect(reads).toBe(2);
  });

  it('reads the clock of the process by default', async () => {
    const now = turnClock();
    const first = now();
    expect(Math.abs(performance.now() - first)).toBeLessThan(1_000);
    await new Promise((resolve) => setTimeout(resolve, 2));
    expect(now()).toBeGreaterThan(first);
  });
});
