import { once } from 'node:events';
import { connect } from 'node:net';
import { hello, ping } from '../../grpc/http2/frames';
import { AdsServer, SnapshotCache } from '../../support/servers/ads-server';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { simpleResource } from '../../support/data/rule-resources';
import { RuleFolder } from '../../support/data/rule-folder';
import { WeirProcess } from '../../support/processes/weir-process';
import { workersOf } from '../../support/processes/worker-processes';

const RULES = `
domain: shop
descriptors:
  - { key: k, rate_limit: { unit: day, requests_per_unit: 10 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: one, descriptors: [{ key: two, rate_limit: { unit: day, requests_per_unit: 0 } }] }
`;

function scraped(port: number) {
  return { USE_PULLMETRICS: 'true', PULLMETRICS_ADDR: `127.0.0.1:${port}` };
}

/**
 * Two services that together export every statistic of the examples: one on Redis with rule files, and one on the memory store
 * with two workers, rules from a management server and SHADOW_MODE.
 */
export class ExportingServices implements AsyncDisposable {
  readonly #ports: readonly [redis: number, memory: number];
  readonly #started: AsyncDisposable[] = [];
  #servers: Started | undefined;

  private constructor(ports: readonly [redis: number, memory: number]) {
    this.#ports = ports;
  }

  /** @param ports of the two metrics listeners */
  static async start(ports: readonly [redis: number, memory: number]): Promise<ExportingServices> {
    const services = new ExportingServices(ports);
    try {
      await services.#start();
    } catch (error) {
      await services[Symbol.asyncDispose]();
      throw error;
    }
    return services;
  }

  /** The metrics pages of both services. */
  async pages(): Promise<string> {
    const pages = this.#ports.map(async (port) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
    return (await Promise.all(pages)).join('');
  }

  /** Changes the statistics of calls that succeed. */
  async work(): Promise<void> {
    const { onRedis, inMemory } = this.#running;
    using client = new RateLimitClient(onRedis.grpcAddress);
    await client.shouldRateLimit('shop', ['k'], 9);
    await Promise.all([client.shouldRateLimit('shop', ['k'], 1), client.shouldRateLimit('shop', ['k'], 1)]);
    await client.shouldRateLimit('shop', ['shadow', 'one,two']);
    await expect(client.shouldRateLimit('', ['k'])).rejects.toThrow('domain');
    using shadowed = new RateLimitClient(inMemory.grpcAddress);
    await shadowed.shouldRateLimit('shop', ['key=a']);
  }

  /** Changes the statistics of failures. The services do not recover. */
  async fail(): Promise<void> {
    const { onRedis, inMemory, folder, redis } = this.#running;
    process.kill(workersOf(inMemory)[0]!.pid, 'SIGKILL');
    const attacker = connect(onRedis.ports.grpc, '127.0.0.1');
    await once(attacker, 'connect');
    attacker.on('error', () => undefined).write(Buffer.concat([hello(), ...Array.from({ length: 100 }, () => ping())]));
    function has(name: string) {
      return async () => (await onRedis.statistics()).has(name);
    }
    await onRedis.until('the flood to be counted', has('ratelimit_server.http2.ping_flood'));
    attacker.destroy();
    await folder.write('bad.yaml', 'domain: [');
    await onRedis.line(/new rules rejected/);
    await redis.crash();
    using client = new RateLimitClient(onRedis.grpcAddress);
    await onRedis.until('a call that the store fails', () =>
      // With a value that is not in the over limit cache.
      client.shouldRateLimit('shop', ['k=other']).then(
        () => false,
        () => true,
      ),
    );
    await onRedis.until(
      'the connections to be counted as closed',
      has('ratelimit.redis_per_second_pool.cx_local_close'),
    );
    await inMemory.until('the worker to be replaced', async () => {
      const statistics = await inMemory.statistics();
      return statistics.get('ratelimit.workers.restarts') === 1 && statistics.get('ratelimit.workers.ready') === 2;
    });
  }

  get #running(): Started {
    if (this.#servers === undefined) throw new Error('not started');
    return this.#servers;
  }

  async #start(): Promise<void> {
    const keep = <Disposable extends AsyncDisposable>(made: Disposable): Disposable => {
      this.#started.push(made);
      return made;
    };
    const [redisPort, memoryPort] = this.#ports;
    const redis = keep(await RedisProcess.start());
    const folder = keep(await RuleFolder.with({ 'shop.yaml': RULES }));
    const cache = new SnapshotCache();
    cache.publish('1', [simpleResource('shop', 0)]);
    const server = keep(await AdsServer.start({ cache }));
    const onRedis = WeirProcess.start({
      env: {
        ...folder.env,
        ...scraped(redisPort),
        BACKEND_TYPE: 'kvstore',
        KVSTORE_URL: redis.address,
        KVSTORE_PERSECOND: 'true',
        KVSTORE_PERSECOND_URL: redis.address,
        KVSTORE_PIPELINE_WINDOW: '20ms',
        LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
      },
    }).then(keep);
    const inMemory = WeirProcess.start({
      env: {
        ...scraped(memoryPort),
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        CONFIG_GRPC_XDS_SERVER_URL: server.address,
        SHADOW_MODE: 'true',
        WORKERS: '2',
      },
    }).then(keep);
    await Promise.allSettled([onRedis, inMemory]);
    this.#servers = { redis, folder, onRedis: await onRedis, inMemory: await inMemory };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const started of this.#started.toReversed()) await started[Symbol.asyncDispose]();
  }
}

interface Started {
  readonly redis: RedisProcess;
  readonly folder: RuleFolder;
  readonly onRedis: WeirProcess;
  readonly inMemory: WeirProcess;
}
