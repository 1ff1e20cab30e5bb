import { once } from 'node:events';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { NodeConnections } from '../../../src/sinks/counters/plaincache/nodes/node-connections';
import { ValuesReader, getCommands } from '../../../src/sinks/counters/plaincache/protocol/read-values';
import { VERSION_COMMAND, VersionReader } from '../../../src/sinks/counters/plaincache/protocol/version-reader';
import { parseServer } from '../../../src/sinks/counters/server-address';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { FaultProxy } from '../../support/servers/fault-proxy';
import { until } from '../../support/waiting/until';

let server: MemcachedProcess;
/** Counts the connections: the server also counts those of others, until it has noticed that they are closed. */
let proxy: FaultProxy;
let connections: NodeConnections;
beforeEach(async () => {
  server = await MemcachedProcess.start();
  proxy = await FaultProxy.start(() => ({ port: Number(server.address.split(':')[1]) }));
  connections = new NodeConnections({
    server: parseServer(proxy.address),
    tls: undefined,
    maxIdle: 2,
    timeout: 10_000,
  });
});
afterEach(async () => {
  connections.close();
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

function version(): Promise<string> {
  return connections.read(VERSION_COMMAND, () => new VersionReader());
}

describe('the connections to a memcached server', () => {
  it('are kept while idle up to their number, and used again', async () => {
    await Promise.all(Array.from({ length: 8 }, version));
    await until('surplus connections are closed', () => proxy.connections === 2);
    const { accepted } = proxy;
    for (let index = 0; index < 20; index += 1) await version();
    expect([proxy.accepted, proxy.connections]).toEqual([accepted, 2]);
  });

  it('are replaced for a read when the server has closed them, but not for a write', async () => {
    await version();
    await server.crash();
    await server.run();
    expect(await version()).toMatch(/^VERSION /);
    await server.crash();
    await expect(connections.write('incr k 1\r\n', new ValuesReader(new Set()))).rejects.toThrow(/closed|ECONNRE/);
  });

  it('are closed with their store, and what waits on them fails', async () => {
    server.hang();
    const waiting = version();
    connections.close();
    await expect(waiting).rejects.toThrow('the connection is closed');
    server.resume();
  });
});

describe('a reply of two parts', () => {
  const TIMEOUT = 500;
  const keys = new Set(Array.from({ length: 1_500 }, (_, index) => `k${index}`));

  /** Begins to read the keys. @returns the socket of the server, which has received the request, and the result */
  async function begin() {
    const held = createServer();
    held.listen(0, '127.0.0.1');
    await once(held, 'listening');
    const own = new NodeConnections({
      server: parseServer(`127.0.0.1:${(held.address() as AddressInfo).port}`),
      tls: undefined,
      maxIdle: 1,
      timeout: TIMEOUT,
    });
    const accepted = once(held, 'connection') as Promise<[Socket]>;
    const result = own.read(getCommands(keys), () => new ValuesReader(keys));
    const [socket] = await accepted;
    await once(socket, 'data');
    socket.resume();
    function close() {
      own.close();
      socket.destroy();
      held.close();
    }
    return { socket, result, [Symbol.dispose]: close };
  }

  it('is received when the event loop stands still until the timeout is over, and the first part arrives meanwhile', async () => {
    using exchange = await begin();
    await nextTurn();
    exchange.socket.write('END\r\n');
    const end = performance.now() + TIMEOUT + 10;
    while (performance.now() < end);
    // What the timer does follows in the same turn as the part, and is over after the next one.
    await nextTurn();
    await nextTurn();
    exchange.socket.write('END\r\n');
    expect(await exchange.result).toEqual(new Map());
  });

  it('may take the timeout for each part', async () => {
    using exchange = await begin();
    for (let part = 1; part <= 2; part += 1) {
      await wait(0.6 * TIMEOUT);
      exchange.socket.write('END\r\n');
    }
    expect(await exchange.result).toEqual(new Map());
  });

  it('is given up when bytes arrive, but no part is complete within the timeout', async () => {
    using exchange = await begin();
    exchange.socket.write('END\r\n');
    const bytes = setInterval(() => exchange.socket.write('V'), TIMEOUT / 10);
    await expect(exchange.result).rejects.toThrow(`the server did not answer within ${TIMEOUT} ms`);
    clearInterval(bytes);
  });
});
