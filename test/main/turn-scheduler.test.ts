import { setImmediate as nextTurn } from 'node:timers/promises';
import { turnClock, turnScheduler } from '../../src/main/turn-scheduler';

describe('turnScheduler', () => {
  it.each([0, 0.9])(
    'runs work with a delay of %f ms at the end of the current turn, after everything that was ready',
    async (delay) => {
      const seen: string[] = [];
      await new Promise<void>((resolve) => {
        turnScheduler.schedule(() => {
          seen.push('work');
          resolve();
        }, delay);
        seen.push('code');
        process.nextTick(() => seen.push('tick'));
        void Promise.resolve().then(() => seen.push('microtask'));
        // Of the next turn.
        setImmediate(() => seen.push('immediate'));
      });
      expect(seen.at(-1)).toBe('work');
      expect(seen.toSorted()).toEqual(['code', 'microtask', 'tick', 'work']);
    },
  );

  it.each([0, 0.5, 2])('does not run work after unsubscribing, with a delay of %f ms', async (delay) => {
    const ran: string[] = [];
    turnScheduler.schedule(() => ran.push('cancelled'), delay).unsubscribe();
    await new Promise<void>((resolve) => turnScheduler.schedule(() => resolve(), delay + 1));
    expect(ran).toEqual([]);
  });
});

it('turnClock reads the clock once per callback of the event loop', async () => {
  let reads = 0;
  const now = turnClock(() => (reads += 1));
  expect([now(), now(), now()]).toEqual([1, 1, 1]);
  await nextTurn();
  expect([now(), now(), reads]).toEqual([2, 2, 2]);
});
