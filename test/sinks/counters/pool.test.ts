import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { NEVER } from 'rxjs';
import { connect } from '../../../src/sinks/counters/kvstore/connections/connection';
import { Deadline } from '../../../src/sinks/counters/kvstore/connections/deadline';
import { Pool, type PoolOptions } from '../../../src/sinks/counters/kvstore/connections/pool';
import { PoolStatistics } from '../../../src/sinks/counters/kvstore/connections/pool-statistics';
import { Statistics } from '../../../src/statistics/statistics';
import { until } from '../../support/waiting/until';

const ends: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ends.splice(0).toReversed()) end();
});

function poolOf(size: number, open: PoolOptions['connect'], statistics = new Statistics(10)): Pool {
  return new Pool({
    connect: open,
    size,
    opensExtra: false,
    timeout: 0,
    retryDelay: () => 1,
    statistics: new PoolStatistics(statistics, 'redis_pool'),
  });
}

function poolWithoutServer(): Pool {
  return poolOf(1, () => NEVER);
}

it('a connection that has just been cut is not given to the next window', async () => {
  const server = createServer((socket) => socket.on('data', () => socket.write('+PONG\r\n')));
  ends.push(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const target = { kind: 'tcp', host: '127.0.0.1', port, family: 4 } as const;
  const rest = { credentials: undefined, db: 0, tls: undefined, mustBeMaster: false, timeout: 0 };
  const statistics = new Statistics(10);
  const pool = poolOf(2, () => connect({ server: target, ...rest }), statistics);
  ends.push(() => pool.close());
  await until('both are connected', () => new Map(statistics.entries()).get('ratelimit.redis_pool.cx_active') === 2);
  await pool.use(new Deadline(0), async (connection) => connection.destroy());
  await expect(pool.use(new Deadline(0), (connection) => connection.send('PING'))).resolves.toBe('PONG');
});

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
