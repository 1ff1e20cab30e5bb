import { firstValueFrom, merge } from 'rxjs';
import type { CounterLane } from '../../../src/streams/ports/counters';
import { plaincacheCounters } from '../../../src/sinks/counters/plaincache/plaincache-counters';
import { lookUpSrv } from '../../../src/sinks/counters/plaincache/nodes/srv-records';
import { RecordedLog } from '../../support/data/recorded-log';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { SrvServer } from '../../support/servers/srv-server';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { plaincacheTestOptions } from './options';

const RECORD = '_memcache._tcp.example.test';

let first: MemcachedProcess;
let second: MemcachedProcess;
beforeAll(async () => {
  [first, second] = await Promise.all([MemcachedProcess.start(), MemcachedProcess.start()]);
});
afterAll(() => Promise.all([first, second].map((server) => server[Symbol.asyncDispose]())));

function recordOf(server: MemcachedProcess) {
  const [name, port] = server.address.split(':');
  return { name: name!, port: Number(port) };
}

describe('memcached servers from a DNS record', () => {
  let dns: SrvServer;
  let log: RecordedLog;
  beforeEach(async () => {
    dns = await SrvServer.start();
    log = new RecordedLog();
  });
  afterEach(() => dns[Symbol.asyncDispose]());

  function open(refresh: number) {
    const servers = { record: RECORD, refresh };
    return plaincacheCounters(plaincacheTestOptions([], { servers, log, lookUp: dns.lookUp }));
  }

  it('are looked up at start, as often as it takes', async () => {
    const counters = open(0);
    try {
      await until('the failure is logged', () => log.lines.length === 1);
      expect(log.lines[0]?.fields).toEqual({ record: RECORD, reason: expect.stringContaining('querySrv') as string });
      dns.records = [recordOf(first)];
      await firstValueFrom(counters.ready$);
      expect(await apply(counters, operation('srv_start', 2))).toEqual([2]);
      expect(log.lines.map(({ message }) => message)).toEqual([
        'cannot look up the memcached servers; keeping those that are known',
        'the memcached servers can be looked up again',
      ]);
    } finally {
      await counters.close();
    }
  });

  it('are replaced when the record changes, and only then', async () => {
    dns.records = [recordOf(first), recordOf(second)];
    const counters = open(20);
    try {
      await firstValueFrom(counters.ready$);
      const key = operation('srv_refresh', 1);
      const lanes = new Set<CounterLane>(
        Array.from({ length: 40 }, (_, index) => counters.laneOf(operation(`k${index}`, 1))),
      );
      expect(lanes.size).toBe(2);

      const asked = dns.queries;
      dns.records = [recordOf(second), recordOf(first)];
      await until('the record is looked up again', () => dns.queries > asked + 2);
      expect(lanes).toContain(counters.laneOf(key));

      dns.fails = true;
      await until('the failure is logged', () => log.lines.length === 1);
      expect(lanes).toContain(counters.laneOf(key));
      dns.fails = false;

      const retired = firstValueFrom(merge(...[...lanes].map((lane) => lane.retired$)));
      dns.records = [recordOf(second)];
      await retired;
      expect(new Set(Array.from({ length: 40 }, (_, index) => counters.laneOf(operation(`k${index}`, 1)))).size).toBe(
        1,
      );
      expect(await apply(counters, operation('after', 1))).toEqual([1]);
      expect(await apply(counters, operation('after', 0))).toEqual([1]);
      expect(await second.value('after')).toBe('1');
    } finally {
      await counters.close();
    }
  });

  it('are not waited for longer than a few seconds when the name server is mute', async () => {
    dns.isMute = true;
    await expect(dns.lookUp(RECORD, 200)).rejects.toThrow('queryS');
    await expect(lookUpSrv('_memcache._tcp.invalid')).rejects.toThrow(/query/);
  });
});

describe('the health of the store', () => {
  it('follows the servers: it is lost when none answers', async () => {
    await using only = await MemcachedProcess.start();
    const counters = plaincacheCounters(plaincacheTestOptions([only]));
    const states: boolean[] = [];
    const subscription = counters.connected$.subscribe((state) => states.push(state));
    try {
      expect(states).toEqual([true]);
      await only.crash();
      await until('the store is not connected', () => states.length === 2);
      await only.run();
      await until('the store is connected', () => states.length === 3);
      expect(states).toEqual([true, false, true]);
    } finally {
      subscription.unsubscribe();
      await counters.close();
    }
  });

  it('is kept while one of two servers answers', async () => {
    await using away = await MemcachedProcess.start();
    const log = new RecordedLog();
    const counters = plaincacheCounters(plaincacheTestOptions([away, first], { log }));
    const states: boolean[] = [];
    const subscription = counters.connected$.subscribe((state) => states.push(state));
    try {
      await away.crash();
      await until('the server is missed', () => log.lines.length > 0);
      expect(states).toEqual([true]);
    } finally {
      subscription.unsubscribe();
      await counters.close();
    }
  });
});
