import { NodeConnections } from '../../../src/sinks/counters/plaincache/nodes/node-connections';
import { ValuesReader } from '../../../src/sinks/counters/plaincache/protocol/read-values';
import { VERSION_COMMAND, VersionReader } from '../../../src/sinks/counters/plaincache/protocol/version-reader';
import { parseServer } from '../../../src/sinks/counters/server-address';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { until } from '../../support/waiting/until';

let server: MemcachedProcess;
let connections: NodeConnections;
beforeEach(async () => {
  server = await MemcachedProcess.start();
  connections = new NodeConnections({ server: parseServer(server.address), tls: undefined, maxIdle: 2 });
});
afterEach(async () => {
  connections.close();
  await server[Symbol.asyncDispose]();
});

function version(): Promise<string> {
  return connections.read(VERSION_COMMAND, () => new VersionReader());
}

/** What the server counts as connections, with its listening sockets and the connection that asks. */
async function countedConnections(): Promise<number> {
  return Number(/curr_connections (\d+)/.exec(await server.command('stats\r\n', /END\r\n/))?.[1]);
}

describe('the connections to a memcached server', () => {
  it('are kept while idle up to their number, and used again', async () => {
    const before = await countedConnections();
    await Promise.all(Array.from({ length: 8 }, version));
    await until('surplus connections are closed', async () => (await countedConnections()) === before + 2);
    for (let index = 0; index < 20; index += 1) await version();
    expect(await countedConnections()).toBe(before + 2);
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
