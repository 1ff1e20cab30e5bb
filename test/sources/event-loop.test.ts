import { setImmediate as nextTurn } from 'node:timers/promises';
import { turnClock, turnScheduler } from '../../src/sources/event-loop-turns';

describe('turnScheduler', () => {
  it('runs work without a delay at the end of the current turn, after everything that was ready', async () => {
    const seen: string[] = [];
    await new Promise<void>((resolve) => {
      turnScheduler.schedule(() => {
        seen.push('work');
        resolve();
      });
      seen.push('code');
      process.nextTick(() => seen.push('tick'));
      void Promise.resolve().then(() => seen.push('microtask'));
    });
    expect(seen.at(-1)).toBe('work');
    expect(seen.toSorted()).toEqual(['code', 'microtask', 'tick', 'work']);
  });

  it('runs work with a delay below a millisecond at the end of the turn in which the delay has elapsed', async () => {
    const readings = [100, 100.3, 100.7, 100.9];
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => readings.shift() ?? NaN);
    let turns = 0;
    function count(): void {
      turns += 1;
      if (readings.length > 0) setImmediate(count);
    }
    setImmediate(count);
    await new Promise<void>((resolve) => turnScheduler.schedule(() => resolve(), 0.9));
    clock.mockRestore();
    expect([turns, readings]).toEqual([3, []]);
  });

  it.each([0, 0.5, 2])('does not run work after unsubscribing, with a delay of %f ms', async (delay) => {
    const ran: string[] = [];
    turnScheduler.schedule(() => ran.push('cancelled'), delay).unsubscribe();
    await new Promise<void>((resolve) => turnScheduler.schedule(() => resolve(), delay + 1));
    expect(ran).toEqual([]);
  });
});

describe('turnClock', () => {
  it('reads the clock once per callback of the event loop', async () => {
    let reads = 0;
    const now = turnClock(() => (reads += 1));
    expect([now(), now(), now()]).toEqual([1, 1, 1]);
    await nextTurn();
    expect([now(), now(), reads]).toEqual([2, 2, 2]);
  });
});
