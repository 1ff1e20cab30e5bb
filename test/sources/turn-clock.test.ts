import { setImmediate as nextTurn } from 'node:timers/promises';
import { turnClock } from '../../src/sources/turn-clock';

describe('a clock of turns', () => {
  it('is read once in a callback, and anew in the next one', async () => {
    let reads = 0;
    const now = turnClock(() => (reads += 1));
    expect([now(), now(), now()]).toEqual([1, 1, 1]);
    await nextTurn();
    expect([now(), now()]).toEqual([2, 2]);
    expect(reads).toBe(2);
  });

  it('goes on by itself', async () => {
    const now = turnClock();
    const first = now();
    while (now() === first) await nextTurn();
    expect(now()).toBeGreaterThan(first);
  });
});
