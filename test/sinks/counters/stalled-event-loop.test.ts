import { once } from 'node:events';
import { type AddressInfo, type Server, type Socket, createServer } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { filter, firstValueFrom, merge } from 'rxjs';
import { connect } from '../../../src/sinks/counters/kvstore/connections/connection';
import { Deadline } from '../../../src/sinks/counters/kvstore/connections/deadline';
import { Pool } from '../../../src/sinks/counters/kvstore/connections/pool';
import { PoolStatistics } from '../../../src/sinks/counters/kvstore/connections/pool-statistics';
import { Topology } from '../../../src/sinks/counters/kvstore/stores/cluster/topology';
import { Sentinels } from '../../../src/sinks/counters/kvstore/stores/sentinel/sentinels';
import { Statistics } from '../../../src/statistics/statistics';
import { Arrivals } from '../../support/waiting/arrivals';

/** In milliseconds; long enough for a request to arrive on a busy machine. */
const TIMEOUT = 1000;

const pools: Pool[] = [];
afterEach(() => {
  for (const pool of pools.splice(0)) pool.close();
});

/** A server that replies only when the test says so. */
class HeldServer implements AsyncDisposable {
  /** The connections on which a request has arrived. */
  readonly requests = new Arrivals<Socket>('a request');
  readonly sockets: Socket[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((socket) => {
      this.sockets.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', () => this.requests.add(socket));
    });
  }

  static async start(): Promise<HeldServer> {
    const held = new HeldServer();
    held.#server.listen(0, '127.0.0.1');
    await once(held.#server, 'listening');
    return held;
  }

  get address() {
    const { port } = this.#server.address() as AddressInfo;
    return { kind: 'tcp', host: '127.0.0.1', port, family: 4 } as const;
  }

  connect(timeout: number): ReturnType<typeof connect> {
    return connect({
      server: this.address,
      credentials: undefined,
      db: 0,
      tls: undefined,
      mustBeMaster: false,
      timeout,
    });
  }

  /** A pool of one connection, which is connected. */
  async pool(): Promise<Pool> {
    const pool = new Pool({
      connect: () => this.connect(0),
      size: 1,
      opensExtra: false,
      timeout: TIMEOUT,
      retryDelay: () => 1,
      statistics: new PoolStatistics(new Statistics(10), 'redis_pool'),
    });
    pools.push(pool);
    (await this.requests.next()).write('+PONG\r\n');
    await firstValueFrom(pool.connected$.pipe(filter((isConnected) => isConnected)));
    return pool;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** Stands still, after the sockets were read and before the timers run, until the timeout is over. */
async function standStill(arrives?: () => void): Promise<void> {
  await setImmediate();
  arrives?.();
  const end = performance.now() + TIMEOUT + 10;
  while (performance.now() < end);
}

describe('a reply that arrives in time while the event loop stands still', () => {
  it('counts as the reply of its window, and the connection stays open', async () => {
    await using server = await HeldServer.start();
    const pool = await server.pool();
    const deadline = new Deadline(TIMEOUT);
    const window = pool.use(deadline, (connection) => connection.send('GET', 'key'));
    const socket = await server.requests.next();
    await standStill(() => socket.write('+counted\r\n'));
    await expect(window).resolves.toBe('counted');
    deadline.end();
    await setImmediate();
    expect(pool.isConnected).toBe(true);
  });

  it('leaves its connection to no window whose time is over too, and so the connection is not cut', async () => {
    await using server = await HeldServer.start();
    const pool = await server.pool();
    const deadlines = [new Deadline(TIMEOUT), new Deadline(TIMEOUT)] as const;
    const first = pool.use(deadlines[0], (connection) => connection.send('GET', 'key'));
    const send = jest.fn();
    const second = pool.use(deadlines[1], send).catch((error: unknown) => error);
    const socket = await server.requests.next();
    await standStill(() => socket.write('+counted\r\n'));
    await expect(first).resolves.toBe('counted');
    expect(await second).toMatchObject({ code: 'store_timeout' });
    expect(send).not.toHaveBeenCalled();
    for (const deadline of deadlines) deadline.end();
    expect(await pool.use(new Deadline(0), ({ isOpen }) => Promise.resolve(isOpen))).toBe(true);
    expect(server.sockets).toHaveLength(1);
  });

  it('completes a connection attempt', async () => {
    await using server = await HeldServer.start();
    const connected = firstValueFrom(server.connect(TIMEOUT));
    const socket = await server.requests.next();
    await standStill(() => socket.write('+PONG\r\n'));
    await expect(connected).resolves.toBeDefined();
  });

  it('says which server is the master', async () => {
    await using server = await HeldServer.start();
    // A sentinel has twice the timeout.
    const sentinels = new Sentinels({
      masterName: 'main',
      sentinels: [server.address],
      credentials: () => undefined,
      tls: undefined,
      timeout: TIMEOUT / 2,
    });
    const master = sentinels.master();
    (await server.requests.next()).write('+PONG\r\n');
    const socket = await server.requests.next();
    await standStill(() => socket.write('*0\r\n*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n*0\r\n'));
    await expect(master).resolves.toMatchObject({ host: '127.0.0.1', port: 6379 });
  });

  it('says which node of a cluster holds the slots', async () => {
    await using server = await HeldServer.start();
    const topology = new Topology({
      seeds: [server.address],
      connect: () => server.connect(TIMEOUT),
      timeout: TIMEOUT,
      retryDelay: () => 60_000,
    });
    const read = firstValueFrom(merge(topology.masters$, topology.failures$));
    (await server.requests.next()).write('+PONG\r\n');
    const socket = await server.requests.next();
    await standStill(() => socket.write('*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:7000\r\n'));
    expect(await read).toEqual(new Map([['127.0.0.1:7000', expect.anything()]]));
    topology.close();
  });

  it('shows that an idle connection is alive', async () => {
    await using server = await HeldServer.start();
    const intervals = jest.spyOn(globalThis, 'setInterval');
    const pool = await server.pool();
    const checkIdle = intervals.mock.calls[0]?.[0] as () => void;
    intervals.mockRestore();
    checkIdle();
    const socket = await server.requests.next();
    await standStill(() => socket.write('+PONG\r\n'));
    // The first of these reads the reply, the other one follows what the timer does.
    await setImmediate();
    await setImmediate();
    expect(await pool.use(new Deadline(0), ({ isOpen }) => Promise.resolve(isOpen))).toBe(true);
  });
});

describe('without a reply, when the event loop has stood still', () => {
  it('a window fails and its connection is cut', async () => {
    await using server = await HeldServer.start();
    const pool = await server.pool();
    const deadline = new Deadline(TIMEOUT);
    const window = pool.use(deadline, (connection) => connection.send('GET', 'key'));
    const socket = await server.requests.next();
    const closed = once(socket, 'close');
    await standStill();
    expect(await window.catch((error: unknown) => error)).toBeInstanceOf(Error);
    expect(deadline.hasPassed).toBe(true);
    await closed;
    deadline.end();
  });

  it('a connection attempt fails', async () => {
    await using server = await HeldServer.start();
    const connected = firstValueFrom(server.connect(TIMEOUT));
    await server.requests.next();
    await standStill();
    await expect(connected).rejects.toThrow(`no reply within ${TIMEOUT} ms`);
  });

  it('an idle connection is cut', async () => {
    await using server = await HeldServer.start();
    const intervals = jest.spyOn(globalThis, 'setInterval');
    await server.pool();
    const checkIdle = intervals.mock.calls[0]?.[0] as () => void;
    intervals.mockRestore();
    checkIdle();
    const closed = once(await server.requests.next(), 'close');
    await standStill();
    expect(await closed).toBeDefined();
  });
});

describe('a deadline', () => {
  it('notifies nothing when the window ends while the last replies are read', async () => {
    const notified: string[] = [];
    const deadline = new Deadline(5);
    deadline.watch(() => notified.push('passed'));
    const ended = new Promise<void>((resolve) => {
      // Both timers are due when the loop goes on, so that this one runs directly after that of the deadline.
      setTimeout(() => {
        expect(deadline.hasPassed).toBe(true);
        deadline.end();
        resolve();
      }, 5);
    });
    await standStill();
    await ended;
    await setImmediate();
    await setImmediate();
    expect(notified).toEqual([]);
  });
});
