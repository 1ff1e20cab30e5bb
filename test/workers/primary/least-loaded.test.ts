import { leastLoaded } from '../../../src/workers/primary/least-loaded';

function worker(name: string, grpc: number, http: number, isResponsive = true) {
  return { name, load: { grpc, http }, isResponsive };
}

describe('the worker for a connection', () => {
  it('is the one with the fewest connections of the listener', () => {
    const workers = [worker('a', 2, 0), worker('b', 1, 9), worker('c', 3, 0)];
    expect(leastLoaded(workers, 'grpc')?.name).toBe('b');
  });

  it('is, of several, the one with the fewest connections in all', () => {
    const workers = [worker('a', 1, 5), worker('b', 1, 2), worker('c', 2, 0)];
    expect(leastLoaded(workers, 'grpc')?.name).toBe('b');
  });

  it('is the first of those that are equal', () => {
    expect(leastLoaded([worker('a', 1, 1), worker('b', 1, 1)], 'http')?.name).toBe('a');
  });

  it('is one that does not answer only when no other does', () => {
    const [silent, other] = [worker('silent', 0, 0, false), worker('other silent', 1, 0, false)];
    expect(leastLoaded([silent, worker('a', 2, 0), worker('b', 3, 0), other], 'grpc')?.name).toBe('a');
    expect(leastLoaded([other, silent], 'grpc')?.name).toBe('silent');
  });

  it('does not exist without workers', () => {
    expect(leastLoaded([], 'grpc')).toBeUndefined();
  });

  it.each([2, 3, 4, 7])('spreads connections evenly over %i workers, whatever closes in between', (count) => {
    const workers = Array.from({ length: count }, () => ({ load: { grpc: 0, http: 0 }, isResponsive: true }));
    for (let round = 0; round < 5 * count; round += 1) leastLoaded(workers, 'grpc')!.load.grpc += 1;
    workers[0]!.load.grpc = 0;
    for (let round = 0; round < 5; round += 1) leastLoaded(workers, 'grpc')!.load.grpc += 1;
    expect(workers.map(({ load }) => load.grpc)).toEqual(Array.from({ length: count }, () => 5));
  });
});
