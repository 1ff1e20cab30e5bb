import type { Socket } from 'node:net';
import { firstValueFrom } from 'rxjs';
import type { DecisionError } from '../../../src/counting/decision-error';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/deployment';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { keySlot } from '../../../src/sinks/counters/kvstore/slots';
import { LaneClient } from '../../support/clients/lane-client';
import { RecordedLog } from '../../support/data/recorded-log';
import { freePorts } from '../../support/processes/free-ports';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { type Reply, CommandServer, loopback } from '../../support/servers/command-server';
import { schedulerWith } from '../../support/waiting/scheduler-with';
import { until } from '../../support/waiting/until';
import { Service } from '../counters/rule-scenarios';
import { apply, operation } from '../counters/scenarios';
import { limit, rulesetOf } from '../../support/data/rules';
import { GIVE_UP, connected, instance, nextCount, openKvstore } from './options';
import { LONGEST_TABLE_KEY } from '../../../src/text/table-key';
import { algorithmOf } from '../../../src/counting/limit';
import type { ReservationChange } from '../../../src/streams/ports/reservations';
import { allOrNothingGroup, counterOf, stopWhenOver } from '../../support/data/operations';

function countersAt(url: string, more: Partial<InstanceOptions> = {}, log = new RecordedLog()) {
  return connected(instance(url, { type: 'cluster', ...more }), { log });
}

const NINE_A_DAY = { requestsPerUnit: 9, lengthSeconds: 86_400, burst: undefined };

describe('a cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start();
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it('holds keys in the slots that keySlot returns', async () => {
    const [{ control }] = cluster.masters as [(typeof cluster.masters)[0]];
    const braces = ['{a}b', 'b{a}', '{}a', '{}{a}', '{a}{b}', '{{a}}', 'a{', 'a}', '}{a}'];
    for (const key of ['', 'a', ...braces, 'schlüssel', '鍵{🔑}', 'x'.repeat(300)]) {
      expect([key, keySlot(key)]).toEqual([key, await control.cluster('KEYSLOT', key)]);
    }
  });

  it.each([
    [0, 4, 4],
    [1, 4, 1],
    [3, 2, 2],
    [9, 4, 4],
  ])('with parallelism %i and a pool of %i works on %i nodes for a call', async (parallelism, poolSize, expected) => {
    const counters = await countersAt(cluster.url, { poolSize, clusterPipelineParallelism: parallelism });
    expect(counters.laneOf(operation('k', 1)).instance.lanesAtOnce).toBe(expected);
  });

  it('does not delay the keys of other nodes while one hangs, whatever the parallelism', async () => {
    const [stopped] = cluster.servers as [(typeof cluster.servers)[0]];
    const stores = await Promise.all(
      [0, 1].map((parallelism) => countersAt(cluster.url, { timeout: 3_000, clusterPipelineParallelism: parallelism })),
    );
    const keys = Array.from({ length: 30 }, (_, index) => `hangs_${index}`);
    const owners = await Promise.all(keys.map((key) => cluster.ownerOf(keySlot(key))));
    const held = owners.filter((owner) => owner === stopped).length;
    /** What became of a call for each key, in the order in which the calls ended. */
    async function outcomes(counters: KvstoreCounters): Promise<readonly string[]> {
      using client = new LaneClient(counters);
      const ended: string[] = [];
      const calls = keys.map(async (key, index) => {
        const outcome = await client.call([operation(key, 0)]).catch(({ code }: DecisionError) => code);
        ended.push(`${owners[index] === stopped ? 'on it' : 'elsewhere'}: ${String(outcome)}`);
      });
      await Promise.all(calls);
      return ended;
    }
    stopped.signal('SIGSTOP');
    const ended = await Promise.all(stores.map(outcomes)).finally(() => stopped.signal('SIGCONT'));
    const expected = keys.map((_, index) => (index < 30 - held ? 'elsewhere: 0' : 'on it: store_timeout'));
    expect(ended).toEqual([expected, expected]);
    expect([held > 0, held < 30]).toEqual([true, true]);
  });

  it('is counted on, and its counters are read, set and cleared, while a slot moves and afterwards', async () => {
    const hour = { lengthSeconds: 3600 };
    /** Two counters of this slot. */
    const stored = counterOf('{slot}_stored', 3600);
    const absent = counterOf('{slot}_absent', 3600);
    const counters = await countersAt(cluster.url);
    await apply(counters, operation(stored.key, 5, hour));
    await cluster.move([keySlot(stored.key)], async () => {
      // The first node still has the one, the node that imports the slot gets the other.
      expect(await counters.changeCounter(stored, 7)).toMatchObject({ count: 5 });
      expect(await counters.changeCounter(absent, 3)).toMatchObject({ count: 0 });
      expect(await apply(counters, operation(absent.key, 1, hour))).toEqual([4]);
      expect(await counters.readCounter(stored)).toMatchObject({ count: 7 });
      expect(await counters.changeCounter(absent, null)).toMatchObject({ count: 4 });
    });
    expect(await counters.changeCounter(stored, 9)).toMatchObject({ count: 7 });
    expect(await counters.readCounter(absent)).toMatchObject({ count: 0 });
    expect(await apply(counters, operation(stored.key, 1, hour))).toEqual([10]);
  });

  it('blocks callers by two keys of one slot, for longer the second time', async () => {
    let now = 1_764_000_000_000;
    const counters = await connected(instance(cluster.url, { type: 'cluster' }), { now: () => now * 1000 });
    const blockFor = { first: 60, factor: 2, most: 600, forgottenAfter: 600 };
    const rule = { key: 'k', rateLimit: limit(2, 'MINUTE', { blockFor }) };
    using service = new Service(rulesetOf('guard', rule), counters, {}, () => now);
    const callers = Array.from({ length: 9 }, (_, index) => `caller${index}`);
    async function calls(): Promise<readonly (number | undefined)[]> {
      const verdicts = await Promise.all(callers.map((caller) => service.decide('guard', [`k=${caller}`])));
      return [
        ...new Set(verdicts.map(({ statuses }) => (statuses[0]!.code === 2 ? statuses[0]!.secondsUntilReset : 0))),
      ];
    }
    for (const seconds of [60, 120]) {
      expect([await calls(), await calls(), await calls()]).toEqual([[0], [0], [seconds]]);
      const keys = (await Promise.all(cluster.masters.map(({ control }) => control.keys('*guard*')))).flat();
      // The counter has gone. Both have one hash tag.
      expect(keys).toHaveLength(callers.length);
      expect(keys.every((key) => /^\{_guard_k_caller\d_\}blocked_/.test(key))).toBe(true);
      now += seconds * 1000 - 1;
      expect(await calls()).toEqual([1]);
      now += 1;
    }
    expect(await calls()).toEqual([0]);
  });

  it('counts what needs several keys of a slot that moves once it has moved, and delays nothing else', async () => {
    const day = { lengthSeconds: 86_400, limit: 9 };
    const sliding = algorithmOf({ ...NINE_A_DAY, name: 'sliding_window' });
    const bucket = algorithmOf({ ...NINE_A_DAY, name: 'token_bucket' });
    const [slot, group] = [keySlot('{moving}'), allOrNothingGroup()];
    const owner = await cluster.ownerOf(slot);
    const elsewhere = await until('a key has another slot of the node', async () => {
      const key = `elsewhere_${Math.random()}`;
      return keySlot(key) !== slot && (await cluster.ownerOf(keySlot(key))) === owner && key;
    });
    // A window that were in flight until the slot has moved would have others fail.
    const counters = await countersAt(cluster.url, { poolSize: 1, poolOnEmptyBehavior: 'ERROR' });
    using client = new LaneClient(counters);
    const step = { ...counterOf('{moving}_held', 86_400), hits: 2, denies: 'alone', member: 'c1:x', held: 2 } as const;
    const opening: ReservationChange = {
      ...{ key: 'reservation', before: undefined, after: 'open', lifetime: 600_000, now: Date.now() },
      ...{
        opens: { domain: 'd', ttl: 600_000, isDenied: false },
        steps: [{ ...step, limit: { ...step.limit, requestsPerUnit: 9 } }],
      },
    };
    let areDone = false;
    let calls: Promise<readonly unknown[]> | undefined;
    await cluster.move([slot], async () => {
      const first = client.call([operation('{moving}_sliding', 2, { ...day, algorithm: sliding })]);
      const both = ['{moving}_both', '{moving}_bucket'].map((key, index) =>
        operation(key, 3, { ...day, group, isOneOfSeveral: true, algorithm: [sliding, bucket][index] }),
      );
      calls = Promise.all([first, client.call(both), counters.reservations.changeReservation(opening)]);
      void calls.then(() => (areDone = true));
      for (let time = 1; time <= 50; time += 1) expect(await client.call([operation(elsewhere, 1)])).toEqual([time]);
      expect(areDone).toBe(false);
    });
    expect(await calls).toEqual([[2], [3, 3], { outcome: 'done', steps: [{ count: 2, added: 2, found: '' }] }]);
    expect(await client.call([operation('{moving}_sliding', 1, { ...day, algorithm: sliding })])).toEqual([3]);
  });

  it('fails what needs several keys of a slot that moves for longer than a call may take, and counts nothing', async () => {
    const parts = {
      limit: 9,
      lengthSeconds: 86_400,
      algorithm: algorithmOf({ ...NINE_A_DAY, name: 'sliding_window' }),
    };
    const counters = await countersAt(cluster.url, { timeout: 300 });
    using client = new LaneClient(counters);
    await cluster.move([keySlot('{stuck}')], async () => {
      function fails(of: (error: DecisionError) => boolean | undefined): Promise<unknown> {
        return client.call([operation('{stuck}', 2, parts)]).catch(of);
      }
      // On a busy machine, the time of a call may be over while the reply is on the way.
      await until('a call fails that is known not to have counted', () => fails(({ isUncounted }) => isUncounted));
      await until('calls fail at once', () => fails(({ message }) => message.includes('is moving')));
    });
    expect(await client.call([operation('{stuck}', 2, parts)])).toEqual([2]);
  });
});

const NOSCRIPT = new Error('NOSCRIPT No matching script.');

type FakeAnswer = (name: string, key: string) => Error | undefined;

/** Nodes of a cluster that count with the scripts and the plain commands of weir. The first one owns all slots. */
class FakeNodes implements AsyncDisposable {
  readonly #servers: CommandServer[] = [];
  /** By the node: how often each key was counted, the commands to count with their keys, and the connections. */
  readonly nodes: { counted: Map<string, number>; received: string[]; clients: Set<Socket> }[] = [];
  /** The reply to CLUSTER SLOTS. */
  slots: () => Reply = () => [[0, 16_383, ['127.0.0.1', this.portOf(0)]]];

  /** Starts nodes. @param answers called with each of these commands; undefined: the command is run */
  static async start(...answers: readonly ((nodes: FakeNodes) => FakeAnswer)[]): Promise<FakeNodes> {
    const started = new FakeNodes();
    for (const answer of answers) await started.#add(answer(started));
    return started;
  }

  async #add(answer: FakeAnswer): Promise<void> {
    const node = { counted: new Map<string, number>(), received: [] as string[], clients: new Set<Socket>() };
    this.nodes.push(node);
    const server = await CommandServer.start((name, args, client) => {
      node.clients.add(client);
      if (name === 'cluster') return this.slots();
      if (name === 'ttl') return 60;
      if (!['eval', 'evalsha', 'incrby', 'get'].includes(name)) return 'PONG';
      const key = args[name.startsWith('eval') ? 2 : 0] as string;
      node.received.push(`${name} ${key}`);
      const error = answer(name, key);
      if (error !== undefined) return error;
      const count = (node.counted.get(key) ?? 0) + 1;
      node.counted.set(key, count);
      return name === 'incrby' ? count : [count];
    });
    this.#servers.push(server);
  }

  portOf(index: number): number {
    return this.#servers[index]!.port;
  }

  address(index: number): string {
    return `127.0.0.1:${this.portOf(index)}`;
  }

  /** The error reply that sends a key to a node. */
  sends(key: string, index: number, how = 'MOVED'): Error {
    return new Error(`${how} ${keySlot(key)} ${this.address(index)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server[Symbol.asyncDispose]()));
  }
}

/** A node that runs every command. */
function willing(): FakeAnswer {
  return () => undefined;
}

describe('a node of a cluster', () => {
  it.each(['MOVED', 'ASK'])(
    'that has lost the script counts each key once, by its text, also while a slot moves (%s)',
    async (redirect) => {
      await using fake = await FakeNodes.start((nodes) => {
        return (name, key) => {
          if (name === 'evalsha') return NOSCRIPT;
          return key === 'a' ? nodes.sends(key, 1, redirect) : undefined;
        };
      }, willing);
      const counters = await countersAt(fake.address(0));
      const batch = ['a', 'b', 'c', 'd'].map((key) => operation(key, 1));
      expect(await apply(counters, ...batch)).toEqual([1, 1, 1, 1]);
      const counted = fake.nodes.map((node) => Object.fromEntries(node.counted));
      expect(counted).toEqual([{ b: 1, c: 1, d: 1 }, { a: 1 }]);
      expect(fake.nodes[0]!.received).toEqual([
        ...['evalsha a', 'evalsha b', 'evalsha c', 'evalsha d'],
        ...['eval a', 'eval b', 'eval c', 'eval d'],
      ]);
    },
  );

  it.each([
    ['MOVED', 'incrby'],
    // Each command would need an ASKING before it.
    ['ASK', 'evalsha'],
  ])('counts known keys with plain commands, each once, also while a slot moves (%s)', async (redirect, command) => {
    let isMoving = false;
    await using fake = await FakeNodes.start(
      (nodes) => (_, key) => (isMoving && key < 'c' ? nodes.sends(key, 1, redirect) : undefined),
      willing,
    );
    const counters = await countersAt(fake.address(0));
    const batch = ['a', 'b', 'c'].map((key) => operation(key, 1));
    expect(await apply(counters, ...batch)).toEqual([1, 1, 1]);
    isMoving = true;
    expect(await apply(counters, ...batch)).toEqual([1, 1, 2]);
    expect(fake.nodes.map(({ received }) => received.slice(-3))).toEqual([
      ['incrby a', 'incrby b', 'incrby c'],
      [`${command} a`, `${command} b`],
    ]);
  });

  it.each([
    ['NOPERM', "NOPERM User weir has no permissions to run the 'eval' command"],
    ['ERR', "ERR unknown command 'EVAL', with args beginning with: "],
  ])('that rejects EVAL but not EVALSHA (%s) counts its keys with plain commands', async (reason, message) => {
    await using fake = await FakeNodes.start((nodes) => {
      return (name, key) => {
        if (name === 'evalsha') return NOSCRIPT;
        if (key === 'a') return nodes.sends(key, 1);
        return name === 'eval' ? new Error(message) : undefined;
      };
    }, willing);
    const log = new RecordedLog();
    const counters = await countersAt(fake.address(0), { poolSize: 1 }, log);
    const batch = ['a', 'b', 'c'].map((key) => operation(key, 1));
    expect(await apply(counters, ...batch)).toEqual([1, 1, 1]);
    expect(fake.nodes[0]!.received.slice(-4)).toEqual(['eval b', 'eval c', 'incrby b', 'incrby c']);
    expect(await apply(counters, ...batch)).toEqual([2, 2, 2]);
    expect(log.lines.filter(({ message: line }) => line.includes('rejects scripts'))).toMatchObject([
      { fields: { store: 'main', reason } },
    ]);
  });

  it('fails the calls when it replies NOSCRIPT to each, or after six times when it sends a step to itself', async () => {
    await using fake = await FakeNodes.start((nodes) => {
      // Without a host, the node that replies is meant.
      return (_, key) => (key === 'a' ? NOSCRIPT : new Error(`MOVED ${keySlot(key)} :${nodes.portOf(0)}`));
    });
    const counters = await countersAt(fake.address(0));
    expect(await apply(counters, operation('a', 1))).toMatchObject([{ code: 'store_failed' }]);
    expect(await apply(counters, operation('b', 1))).toMatchObject([
      { code: 'store_failed', message: 'the slot of a counter has moved to another node of the cluster' },
    ]);
    await expect(counters.readCounter(counterOf('c'))).rejects.toMatchObject({ code: 'store_failed' });
    for (const key of ['b', 'c']) {
      expect(fake.nodes[0]!.received.filter((each) => each.endsWith(key))).toHaveLength(6);
    }
  });

  it('whose connections are lost has its slots read again, without a call', async () => {
    await using fake = await FakeNodes.start(willing, willing);
    // Without the reads that follow one another every five seconds.
    const scheduler = schedulerWith({ 5_000: 1_000_000 });
    const counters = await connected(instance(fake.address(0), { type: 'cluster' }), { scheduler });
    const retired = firstValueFrom(counters.laneOf(operation('a', 1)).retired$);
    fake.slots = () => [[0, 16_383, ['127.0.0.1', fake.portOf(1)]]];
    for (const client of fake.nodes[0]!.clients) client.destroy();
    await retired;
    expect(await apply(counters, operation('a', 1))).toEqual([1]);
  });

  it('that holds no slots any more is left', async () => {
    let owner = 0;
    await using fake = await FakeNodes.start(
      (nodes) => (_, key) => (owner === 0 ? undefined : nodes.sends(key, 1)),
      willing,
    );
    fake.slots = () => [[0, 16_383, ['127.0.0.1', fake.portOf(owner)]]];
    const counters = await countersAt(fake.address(0));
    expect(await apply(counters, operation('a', 1))).toEqual([1]);
    const retired = firstValueFrom(counters.laneOf(operation('b', 1)).retired$);
    owner = 1;
    expect(await apply(counters, operation('a', 1))).toEqual([1]);
    await retired;
    await nextCount(counters, 'b');
    expect(fake.nodes.map(({ counted }) => [...counted.keys()])).toEqual([['a'], ['a', 'b']]);
    await until('its connections are closed', () => [...fake.nodes[0]!.clients].every(({ destroyed }) => destroyed));
  });
});

it('keys of guards on a cluster are short in every table: V8 hashes long texts by their length alone', async () => {
  await using nodes = await FakeNodes.start(willing);
  const counters = await countersAt(nodes.address(0));
  const group = stopWhenOver();
  const batch = ['1', '2'].map((end) => operation('x'.repeat(20_000) + end, 1, { group, limit: 9 }));
  const set = jest.spyOn(Map.prototype, 'set');
  const counts = await apply(counters, ...batch);
  const lengths = set.mock.calls.map(([key]) => `${key}`.length);
  set.mockRestore();
  expect(counts).toEqual([2, 2]);
  // Those of the server in this process.
  expect(lengths.filter((length) => length > LONGEST_TABLE_KEY)).toHaveLength(4);
});

describe('the slots of a cluster', () => {
  it('are read from the first node that answers, and keys whose slot no node holds fail alone', async () => {
    await using nodes = await FakeNodes.start(willing);
    const [held, alone] = [keySlot('held'), keySlot('alone')];
    // A node that does not know its own host omits it; `?` is one whose host the others do not know.
    nodes.slots = () => [
      [held, held, [null, nodes.portOf(0)]],
      [alone, alone, ['?', 1]],
    ];
    const [dead] = await freePorts(1);
    const counters = await countersAt(`127.0.0.1:${dead},${nodes.address(0)}`);
    const counts = await apply(counters, operation('held', 1), operation('alone', 1));
    expect(counts).toMatchObject([1, { code: 'store_failed', message: 'no cluster node holds the slot of a counter' }]);
  });

  it('are of other lanes once they are known: that of the time before is retired', async () => {
    await using nodes = await FakeNodes.start(willing);
    const counters = openKvstore(instance(nodes.address(0), { type: 'cluster' }));
    const before = counters.laneOf(operation('k', 1));
    await Promise.all([firstValueFrom(before.retired$), firstValueFrom(counters.ready$)]);
    expect(counters.laneOf(operation('k', 1))).not.toBe(before);
  });

  it('that cannot be read fail the start with the reason of each node', async () => {
    await using nodes = await FakeNodes.start(willing);
    nodes.slots = () => [];
    const main = instance(nodes.address(0), { type: 'cluster' });
    await expect(connected(main, { startup: GIVE_UP })).rejects.toThrow(
      `no cluster node returned the slots (${nodes.address(0)}: the list of slots is empty)`,
    );
  });
});

describe('a cluster without bounds', () => {
  /** Nodes at many addresses of this machine, which are one server. */
  class Everywhere extends CommandServer {
    readonly addresses = new Set<string>();

    constructor(answer: (name: string, key: string, client: Socket) => Reply | Promise<Reply> | undefined) {
      super((name, args, client) => {
        this.addresses.add(client.localAddress!);
        return answer(name, args[2] ?? '', client) ?? (name.startsWith('eval') ? [1] : 'PONG');
      });
    }
  }

  const LINE = 'the cluster names more nodes than are used; calls with keys on the others fail';

  it('with 8,000 nodes has 1,000 of them used, and calls for keys on the others fail', async () => {
    await using nodes: Everywhere = await new Everywhere((name) => {
      if (name !== 'cluster') return undefined;
      return Array.from({ length: 8_000 }, (_, index) => [2 * index, 2 * index + 1, [loopback(index), nodes.port]]);
    }).listen(0, '0.0.0.0');
    const log = new RecordedLog();
    const counters = await countersAt(`${loopback(0)}:${nodes.port}`, { poolSize: 1 }, log);
    await until('1,000 nodes are connected to', () => nodes.addresses.size >= 1_000);
    const keys = Array.from({ length: 100 }, (_, index) => `key_${index}`);
    const counts = await apply(counters, ...keys.map((key) => operation(key, 1)));
    const missing = expect.objectContaining({ code: 'store_failed' }) as object;
    expect(counts).toEqual(keys.map((key) => (keySlot(key) < 2_000 ? 1 : missing)));
    expect(counts).toContain(1);
    expect(nodes.addresses.size).toBe(1_000);
    expect(log.lines.filter(({ message }) => message === LINE)).toMatchObject([{ fields: { nodes: 8_000 } }]);
  });

  it('whose nodes do not answer has the slots read again from one that does, after at most seven others', async () => {
    const queried = new Set<string>();
    let reads = 0;
    await using nodes: Everywhere = await new Everywhere((name, _key, client) => {
      const address = client.localAddress!;
      // Connections to count on, and those to query, are closed.
      if (['script', 'cluster'].includes(name) && address !== loopback(0)) client.destroy();
      if (name !== 'cluster') return undefined;
      queried.add(address);
      reads += 1;
      return Array.from({ length: 100 }, (_, index) => [index, index, [loopback(index), nodes.port]]);
    }).listen(0, '0.0.0.0');
    await countersAt(`${loopback(0)}:${nodes.port}`, { poolSize: 1 });
    // Lost connections have them read again.
    await until('the slots are read from it several times', () => queried.size > 1 && reads > 50);
    expect([...queried].sort()).toEqual(Array.from({ length: 8 }, (_, index) => loopback(index)));
  });

  it('that redirects each key to a new node has 1,000 nodes used until the slots are read again', async () => {
    let reads = 0;
    await using nodes: Everywhere = await new Everywhere((name, key, client) => {
      // Later reads of the slots are not answered.
      if (name === 'cluster') {
        return (reads += 1) > 1 ? new Promise(() => undefined) : [[0, 16_383, [loopback(0), nodes.port]]];
      }
      const isCount = name.startsWith('eval') && client.localAddress === loopback(0);
      return isCount ? new Error(`MOVED ${keySlot(key)} ${loopback(1 + Number(key))}:${nodes.port}`) : undefined;
    }).listen(0, '0.0.0.0');
    const log = new RecordedLog();
    const counters = await countersAt(`${loopback(0)}:${nodes.port}`, { poolSize: 1 }, log);
    const counts = await apply(counters, ...Array.from({ length: 1_100 }, (_, index) => operation(`${index}`, 1)));
    expect(counts.filter((count) => count === 1)).toHaveLength(999);
    expect(nodes.addresses.size).toBe(1_000);
    expect(log.lines.filter(({ message }) => message === LINE)).toHaveLength(1);
  });
});
