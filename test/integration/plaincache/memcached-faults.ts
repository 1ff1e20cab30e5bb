import type { PlaincacheCounters } from '../../../src/sinks/counters/plaincache/plaincache-counters';
import { Statistics } from '../../../src/statistics/statistics';
import { RecordedLog } from '../../support/data/recorded-log';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { FaultProxy } from '../../support/servers/fault-proxy';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { type FaultTests, faultTests } from '../kvstore/fault-rows';
import { ScriptedServer, openPlaincache } from './options';

let server: MemcachedProcess;
let proxy: FaultProxy;
let healthy: MemcachedProcess;
let counters: PlaincacheCounters;
let log: RecordedLog;
let statistics: Statistics;

/** Its CRC-32 is even, so that the first of two nodes holds it: the one behind the proxy. */
const OF_FIRST = 'm';

/** A key of the server behind the proxy, or of the healthy one. */
function keyOf(node: 'faulty' | 'healthy'): string {
  const faultyLane = counters.laneOf(operation(OF_FIRST, 1));
  for (let index = 0; ; index += 1) {
    const key = `${node}_${index}`;
    if ((counters.laneOf(operation(key, 1)) === faultyLane) === (node === 'faulty')) return key;
  }
}

interface Course {
  readonly begin: () => unknown;
  readonly end?: () => unknown;
  /** Whether the server forgets its counters. */
  readonly losesData?: boolean;
}

/**
 * Calls on one key of each server before, during and after the fault. Every call gets a count, the other server's are
 * exact, no hit of the faulty one is counted twice, and it counts again without intervention.
 */
async function play({ begin, end, losesData = false }: Course): Promise<void> {
  const [faulty, other] = [keyOf('faulty'), keyOf('healthy')];
  let calls = 0;
  async function call(): Promise<number> {
    calls += 1;
    const [count, otherCount] = await apply(counters, operation(faulty, 1), operation(other, 1));
    expect(otherCount).toBe(calls);
    expect(count).toBeGreaterThanOrEqual(1);
    expect(count).toBeLessThanOrEqual(calls);
    return Number(count);
  }
  for (let index = 1; index <= 3; index += 1) expect(await call()).toBe(index);
  await apply(counters, operation(faulty, 0));
  await begin();
  await until('the fault is noticed', async () => {
    await call();
    return log.lines.length > 0;
  });
  for (let index = 0; index < 5; index += 1) await call();
  await end?.();
  await until('the server counts again', async () => {
    const before = await call();
    return (await call()) === before + 1 && log.lines.some(({ message }) => message.includes('answers again'));
  });
  const [count] = await apply(counters, operation(faulty, 0));
  const dropped = statistics.counter('ratelimit.memcache.dropped_hits').value;
  // A hit whose reply was lost may be counted, and is counted as dropped, too.
  expect(count).toBeLessThanOrEqual(calls);
  if (!losesData) expect(Number(count) + dropped).toBeGreaterThanOrEqual(calls);
  expect(await apply(counters, operation(other, 0))).toEqual([calls]);
  expect(log.lines.length).toBeLessThanOrEqual(8);
}

function noFault(): void {
  proxy.fault = 'none';
}

const COURSES: Readonly<Record<string, Course | (() => Promise<void>)>> = {
  'the server crashes': { begin: () => server.crash(), end: () => server.run(), losesData: true },
  'the server hangs': { begin: () => server.hang(), end: () => server.resume() },
  'new connections are refused': {
    begin: () => {
      proxy.fault = 'refused';
      proxy.reset();
    },
    end: noFault,
  },
  'replies are lost': { begin: () => (proxy.fault = 'lost replies'), end: noFault },
  'no bytes get through': { begin: () => (proxy.fault = 'black hole'), end: noFault },
  'a connection is cut in the middle of a reply': { begin: () => proxy.cutAfterReplyBytes(3) },
  'the server sends replies without requests': async () => {
    const key = keyOf('faulty');
    for (let calls = 1; calls <= 5; calls += 1) {
      const accepted = proxy.accepted;
      expect(await apply(counters, operation(key, 1))).toEqual([calls]);
      await apply(counters, operation(key, 0));
      proxy.sendToClients('17\r\n');
      // Its connection cannot be used any more: what it sends next could be taken for a reply.
      await until('another connection is opened', async () => {
        const [count] = await apply(counters, operation(key, 0));
        // 0: the surplus reply has arrived instead of this one.
        expect([0, calls]).toContain(count);
        return count === calls && proxy.accepted > accepted;
      });
    }
  },
  'the server sends garbage': async () => {
    await using garbage = await ScriptedServer.start(() => 'hello\r\n');
    const own = openPlaincache([garbage], { log });
    for (let call = 0; call < 2; call += 1) expect(await apply(own, operation('k', 5))).toEqual([5]);
    const reasons = log.lines.map(({ fields }) => fields['reason']);
    expect(reasons).toContain('in reply to get, the server sent "hello"');
    await own.close();
  },
  'the server is out of memory': async () => {
    await using full = await MemcachedProcess.start({ args: ['-M', '-m', '2'] });
    const own = openPlaincache([full], { log });
    await apply(own, operation('present', 1));
    await until('the server is full', async () => {
      await apply(own, ...Array.from({ length: 500 }, () => operation(`${'x'.repeat(200)}${Math.random()}`, 1)));
      return log.lines.some(({ fields }) => String(fields['reason']).includes('out of memory'));
    });
    expect(await apply(own, operation('present', 1))).toEqual([2]);
    await full.command('flush_all\r\n');
    await until('the server stores again', async () => {
      await apply(own, operation('later', 1));
      return Number((await apply(own, operation('later', 0)))[0]) > 0;
    });
    await own.close();
  },
};

/** The tests of the rows about memcached that belong to a suite. */
export function memcachedFaultTests(suite: FaultTests<unknown>['suite']): void {
  beforeEach(async () => {
    [server, healthy] = await Promise.all([MemcachedProcess.start(), MemcachedProcess.start()]);
    proxy = await FaultProxy.start(() => ({ port: Number(server.address.split(':')[1]) }));
    log = new RecordedLog();
    statistics = new Statistics(100);
    counters = openPlaincache([proxy, healthy], { log, statistics });
  });
  afterEach(() => Promise.all([server, proxy, healthy].map((each) => each[Symbol.asyncDispose]())));

  describe('counters in memcached', () => {
    faultTests('memcached', {
      suite,
      courses: COURSES,
      play: (course) => (typeof course === 'function' ? course() : play(course)),
    });
  });
}
