import { NodeConnections } from '../../../src/sinks/counters/plaincache/nodes/node-connections';
import { ValuesReader } from '../../../src/sinks/counters/plaincache/protocol/read-values';
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
