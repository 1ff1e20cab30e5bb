import { firstValueFrom } from 'rxjs';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { keySlot } from '../../../src/sinks/counters/kvstore/stores/cluster/key-slot';
import { RecordedLog } from '../../support/data/recorded-log';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { type Answer, CommandServer } from '../../support/servers/command-server';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { instance, options } from './options';

const opened: KvstoreCounters[] = [];
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));

async function countersAt(url: string, log = new RecordedLog()): Promise<KvstoreCounters> {
  const counters = kvstoreCounters(options(instance(url, { type: 'cluster' }), { log }));
  opened.push(counters);
  await firstValueFrom(counters.ready$);
  return counters;
}

const REJECTED = 'the counter store rejects scripts; counting with plain commands, not atomically';

describe('a cluster that allows EVALSHA but not EVAL, and does not have the script', () => {
  it.each([
    ['by its ACL', ['--user', 'default', 'on', 'nopass', '~*', '&*', '+@all', '-eval'], 'NOPERM'],
    ['as a renamed command', ['--rename-command', 'EVAL', ''], 'ERR'],
  ])('counts with plain commands, with EVAL rejected %s', async (_, directives, reason) => {
    await using cluster = await RedisCluster.start({ directives });
    const log = new RecordedLog();
    const counters = await countersAt(cluster.url, log);
    const keys = Array.from({ length: 12 }, (__, index) => `rejected_${index}`);
    await until('all nodes are connected', async () => {
      const counts = await apply(counters, ...keys.map((key) => operation(key, 0)));
      return counts.every((count) => count === 0);
    });
    expect(await apply(counters, ...keys.map((key) => operation(key, 1)))).toEqual(keys.map(() => 1));
    expect(await apply(counters, ...keys.map((key) => operation(key, 2)))).toEqual(keys.map(() => 3));
    expect(await cluster.storedCounts(keys)).toEqual(keys.map(() => 3));
    const lines = log.lines.filter(({ message }) => message === REJECTED);
    expect(lines.map(({ fields }) => fields)).toEqual([{ store: 'main', reason }]);
  });
});

/** Nodes of a cluster that count with the scripts and the plain commands of weir. */
class FakeNodes implements AsyncDisposable {
  readonly #nodes: CommandServer[] = [];
  /** How often each key was counted, by the node. */
  readonly counted: Map<string, number>[] = [];
  /** The commands that each node has received to count, with the key. */
  readonly received: string[][] = [];

  /** Adds a node; the first one owns all slots. @param answer called for these commands; undefined: the command is run */
  async add(answer: (name: string, key: string) => Error | undefined): Promise<void> {
    const counted = new Map<string, number>();
    const received: string[] = [];
    const respond: Answer = (name, args) => {
      if (name === 'cluster') return [[0, 16_383, ['127.0.0.1', this.#nodes[0]!.port]]];
      if (name === 'ttl') return 60;
      if (!['eval', 'evalsha', 'incrby'].includes(name)) return 'PONG';
      const key = args[name === 'incrby' ? 0 : 2] as string;
      received.push(`${name} ${key}`);
      const error = answer(name, key);
      if (error !== undefined) return error;
      counted.set(key, (counted.get(key) ?? 0) + 1);
      const count = counted.get(key) as number;
      return name === 'incrby' ? count : [count];
    };
    this.#nodes.push(await CommandServer.start(respond));
    this.counted.push(counted);
    this.received.push(received);
  }

  address(index: number): string {
    return this.#nodes[index]!.address;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node[Symbol.asyncDispose]()));
  }
}

describe.each(['MOVED', 'ASK'])('a slot that moves (%s) just before the call that loads the script', (redirect) => {
  it('does not fail the other keys, and no key is counted twice', async () => {
    await using nodes = new FakeNodes();
    let isLoaded = false;
    await nodes.add((name, key) => {
      if (name === 'evalsha' && !isLoaded) return new Error('NOSCRIPT No matching script.');
      if (name === 'eval' && key === 'a') return new Error(`${redirect} ${keySlot(key)} ${nodes.address(1)}`);
      isLoaded = true;
      return undefined;
    });
    await nodes.add(() => undefined);
    const counters = await countersAt(nodes.address(0));
    const batch = ['a', 'b', 'c', 'd'].map((key) => operation(key, 1));
    expect(await apply(counters, ...batch)).toEqual([1, 1, 1, 1]);
    expect([...nodes.counted[0]!]).toEqual([
      ['b', 1],
      ['c', 1],
      ['d', 1],
    ]);
    expect([...nodes.counted[1]!]).toEqual([['a', 1]]);
    expect(nodes.received[0]).toEqual([
      ...['evalsha a', 'evalsha b', 'evalsha c', 'evalsha d'],
      ...['eval a', 'evalsha b', 'evalsha c', 'evalsha d'],
      ...['eval b', 'eval c', 'eval d'],
    ]);
  });
});

it('a node that rejects EVAL only after a redirect counts the keys that it holds with plain commands', async () => {
  await using nodes = new FakeNodes();
  await nodes.add((name, key) => {
    if (name === 'evalsha') return new Error('NOSCRIPT No matching script.');
    if (key === 'a') return new Error(`MOVED ${keySlot(key)} ${nodes.address(1)}`);
    return name === 'eval' ? new Error("NOPERM User weir has no permissions to run the 'eval' command") : undefined;
  });
  await nodes.add(() => undefined);
  const counters = await countersAt(nodes.address(0));
  expect(await apply(counters, ...['a', 'b', 'c'].map((key) => operation(key, 1)))).toEqual([1, 1, 1]);
  expect(nodes.received[0]?.slice(-4)).toEqual(['eval b', 'eval c', 'incrby b', 'incrby c']);
});

it('a node that replies NOSCRIPT to every call fails the calls', async () => {
  await using nodes = new FakeNodes();
  await nodes.add(() => new Error('NOSCRIPT No matching script.'));
  const counters = await countersAt(nodes.address(0));
  expect(await apply(counters, operation('a', 1))).toMatchObject([{ code: 'store_failed' }]);
});
