import { RestartBackoff } from '../../../src/workers/primary/backoff';

describe('the delay before a worker is replaced', () => {
  it('doubles from 100 ms to 10 s while the worker keeps ending', () => {
    const backoff = new RestartBackoff();
    const delays = Array.from({ length: 10 }, () => backoff.delayAfter(59_999));
    expect(delays).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000]);
  });

  it('begins at 100 ms again after the worker has lived for a minute', () => {
    const backoff = new RestartBackoff();
    for (let count = 0; count < 5; count += 1) backoff.delayAfter(0);
    expect([backoff.delayAfter(60_000), backoff.delayAfter(0)]).toEqual([100, 200]);
  });
});
