import { NEVER } from 'rxjs';
import { Deadline } from '../../../src/sinks/counters/kvstore/connections/deadline';
import { Pool } from '../../../src/sinks/counters/kvstore/connections/pool';
import { PoolStatistics } from '../../../src/sinks/counters/kvstore/connections/pool-statistics';
import { Statistics } from '../../../src/statistics/statistics';

function poolWithoutServer(): Pool {
  return new Pool({
    connect: () => NEVER,
    size: 1,
    opensExtra: false,
    timeout: 0,
    retryDelay: () => 1,
    statistics: new PoolStatistics(new Statistics(10), 'redis_pool'),
  });
}

describe('a pool that drains', () => {
  it('closes at once without a window in flight', () => {
    const pool = poolWithoutServer();
    const states: string[] = [];
    pool.connected$.subscribe({ complete: () => states.push('closed') });
    pool.drain();
    expect(states).toEqual(['closed']);
  });

  it('closes when its last window has failed to get a connection', async () => {
    const pool = poolWithoutServer();
    const states: string[] = [];
    pool.connected$.subscribe({ complete: () => states.push('closed') });
    const deadline = new Deadline(5);
    const window = pool.use(deadline, () => Promise.resolve('used'));
    pool.drain();
    expect(states).toEqual([]);
    await expect(window).rejects.toMatchObject({ code: 'store_timeout' });
    expect(states).toEqual(['closed']);
    deadline.end();
  });
});
