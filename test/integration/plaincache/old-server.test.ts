import { once } from 'node:events';
import { type AddressInfo, type Server, connect, createServer } from 'node:net';
import {
  type PlaincacheCounters,
  plaincacheCounters,
} from '../../../src/sinks/counters/plaincache/plaincache-counters';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { apply, operation } from '../counters/scenarios';
import { plaincacheTestOptions } from './options';

const COUNTER = { key: 'old_server', windowSeconds: 3600 };

let memcached: MemcachedProcess;
let proxy: Server;
let counters: PlaincacheCounters;
beforeAll(async () => {
  memcached = await MemcachedProcess.start();
  const [host = '', port] = memcached.address.split(':');
  // Answers the command as a server before 1.6 does, which does not know it.
  proxy = createServer((client) => {
    const server = connect(Number(port), host);
    for (const socket of [client, server]) socket.on('error', () => undefined);
    server.on('data', (reply) => client.write(reply)).on('close', () => client.destroy());
    client.on('data', (request) =>
      request.toString().startsWith('mg ') ? client.write('ERROR\r\n') : server.write(request),
    );
    client.on('close', () => server.destroy());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  counters = plaincacheCounters(plaincacheTestOptions([{ address }], { expirationJitterMaxSeconds: 0 }));
});
afterAll(async () => {
  await counters?.close();
  proxy?.close();
  await memcached?.[Symbol.asyncDispose]();
});

describe('counters on a memcached server without the command that tells the time to live', () => {
  it('are read, set and cleared by operators, the time to live being unknown', async () => {
    expect(await counters.readCounter(COUNTER)).toEqual({ count: 0, timeToLive: null });
    await apply(counters, operation(COUNTER.key, 4, COUNTER));
    expect(await counters.readCounter(COUNTER)).toEqual({ count: 4, timeToLive: null });
    expect(await counters.setCounter(COUNTER, 9)).toEqual({ count: 4, timeToLive: null });
    expect(await apply(counters, operation(COUNTER.key, 1, COUNTER))).toEqual([10]);
    expect(await counters.clearCounter(COUNTER)).toEqual({ count: 10, timeToLive: null });
    expect(await counters.readCounter(COUNTER)).toEqual({ count: 0, timeToLive: null });
  });
});
