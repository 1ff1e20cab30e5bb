import { turnScheduler } from '../../src/sources/turn-scheduler';

/** Runs the present turn and the next ones until the work has run; says what had happened before it. */
function order(schedule: (done: () => void) => void): Promise<readonly string[]> {
  const seen: string[] = [];
  return new Promise((resolve) => {
    schedule(() => {
      seen.push('work');
      resolve(seen);
    });
    seen.push('code');
    process.nextTick(() => seen.push('tick'));
    void Promise.resolve().then(() => seen.push('microtask'));
  });
}

describe('the scheduler of turns', () => {
  it('runs work without delay at the end of the present turn, after everything that was ready', async () => {
    const seen = await order((done) => turnScheduler.schedule(done));
    expect(seen).toEqual(['code', 'tick', 'microtask', 'work']);
  });

  it.each([0.15, 0.9])('runs work after %f ms at the end of a turn, never before', async (delay) => {
    const started = performance.now();
    await new Promise<void>((resolve) => turnScheduler.schedule(() => resolve(), delay));
    expect(performance.now() - started).toBeGreaterThanOrEqual(delay);
  });

  it('lets input through while it waits below a millisecond', async () => {
    let turns = 0;
    let waits = true;
    const count = (): void => {
      turns += 1;
      if (waits) setImmediate(count);
    };
    setImmediate(count);
    await new Promise<void>((resolve) => turnScheduler.schedule(() => resolve(), 0.9));
    waits = false;
    expect(turns).toBeGreaterThan(1);
  });

  it.each([0, 0.5, 2])('runs nothing that was unsubscribed from, delay %f', async (delay) => {
    const ran: string[] = [];
    turnScheduler.schedule(() => ran.push('cancelled'), delay).unsubscribe();
    await new Promise<void>((resolve) => turnScheduler.schedule(() => resolve(), delay + 1));
    expect(ran).toEqual([]);
  });

  it('hands work its state, and lets it schedule itself again', async () => {
    const states = await new Promise<readonly number[]>((resolve) => {
      const seen: number[] = [];
      turnScheduler.schedule(
        function again(state = 0) {
          seen.push(state);
          if (state < 3) this.schedule(state + 1);
          else resolve(seen);
        },
        0,
        1,
      );
    });
    expect(states).toEqual([1, 2, 3]);
  });

  it('tells the time of the wall clock', () => {
    expect(Math.abs(turnScheduler.now() - Date.now())).toBeLessThan(1000);
  });
});
