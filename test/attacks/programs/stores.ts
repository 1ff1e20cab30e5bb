import type { Socket } from 'node:net';
import { keySlot } from '../../../src/sinks/counters/kvstore/slots';
import { requestMessage } from '../../support/clients/grpc-client';
import type { RedisProcess } from '../../support/processes/redis/redis-process';
import { type Reply, CommandServer, encode, loopback } from '../../support/servers/command-server';
import { type Answers, type Attack, type StoreFront, type Target, GrpcPeer, concurrently } from '../peers';

/** Whether the service has logged a condition, which lasts, once. */
async function recordLine({ weir }: Target, answers: Answers, message: string): Promise<void> {
  await weir.until(`the line “${message}”`, () => weir.output.includes(message));
  answers.add(weir.output.split(message).length === 2 ? 'one line' : 'several lines');
}

function redisReply({ control }: RedisProcess, name: string, args: readonly string[]): Promise<Reply> {
  return control.call(name, ...args).catch((error: Error) => error) as Promise<Reply>;
}

/** A sentinel of one master. Others that it names reject every command. */
class Sentinel extends CommandServer implements StoreFront {
  readonly #subscribers = new Set<Socket>();
  readonly #master: RedisProcess;

  constructor(master: RedisProcess, others: number) {
    super((name, [command, ...args], client) => {
      if (client.localAddress !== '127.0.0.1') return new Error('ERR no sentinel');
      if (name === 'subscribe') {
        this.#subscribers.add(client);
        return ['subscribe', command ?? args[0]!, 1];
      }
      if (name !== 'sentinel') return 'PONG';
      if (command === 'get-master-addr-by-name') return ['127.0.0.1', `${master.port}`];
      return Array.from({ length: others }, (_, index) => ['ip', loopback(index), 'port', `${this.port}`]);
    });
    this.#master = master;
  }

  get settings() {
    return { KVSTORE_TYPE: 'sentinel', KVSTORE_URL: `counters,${this.address}` };
  }

  announce(times: number): void {
    const { port } = this.#master;
    const message = encode(['message', '+switch-master', `counters 127.0.0.1 ${port} 127.0.0.1 ${port}`]);
    for (const client of this.#subscribers) client.write(message.repeat(times));
  }
}

/**
 * Nodes of a cluster at many addresses, with the counters of one server. The first node has all of them in its slots.
 */
class Cluster extends CommandServer implements StoreFront {
  /** The most connections at a time. */
  connections = 0;
  #reads = 0;

  /** @param nodes how many it names; 0: none but the first, and only in reply to the first query */
  constructor(redis: RedisProcess, nodes: number) {
    super((name, args, client) => {
      this.connections = Math.max(this.connections, this.sockets.size);
      const first = [loopback(0), this.port];
      if (name === 'cluster') {
        if (nodes === 0 && (this.#reads += 1) > 1) return new Promise(() => undefined);
        const others = Array.from({ length: nodes }, (_, index) => [index, index, [loopback(index), this.port]]);
        return [...others, [0, 16_383, first]];
      }
      const key = args[2] ?? '';
      const isRedirected = name.startsWith('eval') && key.startsWith('attack_') && client.localAddress === first[0];
      if (!isRedirected) return redisReply(redis, name, args);
      const [number] = /\d+/.exec(key) as unknown as [string];
      return new Error(`MOVED ${keySlot(key)} ${loopback(Number(number))}:${this.port}`);
    });
  }

  get settings() {
    return { KVSTORE_TYPE: 'cluster', KVSTORE_URL: `${loopback(0)}:${this.port}`, KVSTORE_POOL_SIZE: '1' };
  }
}

const RULES = {
  'attack.yaml': 'domain: attack\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 9 } }]\n',
};

/** What a store does by mistake, or when an attacker has taken it over. */
export const STORES = {
  'a sentinel that names 20,000 others, and announces the master 40,000 times': {
    front: (redis) => new Sentinel(redis, 20_000).listen(0, '0.0.0.0'),
    run: async (target, answers) => {
      await recordLine(target, answers, 'a sentinel names more sentinels than are used');
      (target.front as Sentinel).announce(40_000);
      await recordLine(target, answers, 'a sentinel announces masters without pause');
    },
  },
  'a cluster that names 8,000 nodes': {
    front: (redis) => new Cluster(redis, 8_000).listen(0, '0.0.0.0'),
    run: (target, answers) => recordLine(target, answers, 'the cluster names more nodes than are used'),
  },
  'a node of a cluster that sends 2,500 keys to a new node each': {
    front: (redis) => new Cluster(redis, 0).listen(0, '0.0.0.0'),
    rules: RULES,
    run: async (target, answers) => {
      using peer = new GrpcPeer(target, answers);
      // The second call for a key goes to the node that the first one was sent to.
      for (const _ of [1, 2]) {
        let index = 0;
        await concurrently(2_500, 250, () => peer.call(requestMessage('attack', [`k=${(index += 1)}`])));
      }
      const { connections } = target.front as Cluster;
      // One to each node, and those that read the slots.
      answers.add(connections < 1_010 ? '1,000 nodes' : `${connections} connections`);
    },
  },
} as const satisfies Record<string, Attack>;
