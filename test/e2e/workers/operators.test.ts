import { RateLimitClient } from '../../support/clients/grpc-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { WeirProcess } from '../../support/processes/weir-process';
import { workersOf } from '../../support/processes/worker-processes';

const RULES = `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 3 }
`;
const CLIENTS = 6;
/** Each client has a connection of its own. */
const OWN = { 'grpc.use_local_subchannel_pool': 1 };

let folder: RuleFolder;
let redis: RedisProcess;
beforeAll(async () => {
  [folder, redis] = await Promise.all([RuleFolder.with({ 'shop.yaml': RULES }), RedisProcess.start()]);
});
afterAll(async () => {
  await redis?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** An instance of three workers, and clients on each of them. */
class Instance implements AsyncDisposable {
  private constructor(
    readonly weir: WeirProcess,
    readonly clients: readonly RateLimitClient[],
  ) {}

  static async start(env: Readonly<Record<string, string>>): Promise<Instance> {
    const weir = await WeirProcess.start({
      env: {
        ...folder.env,
        ...env,
        WORKERS: '3',
        LOCAL_CACHE_SIZE_IN_BYTES: '100000',
        OPERATOR_TOKEN: 'a-token-of-operators',
      },
    });
    return new Instance(
      weir,
      Array.from({ length: CLIENTS }, () => new RateLimitClient(weir.grpcAddress, undefined, OWN)),
    );
  }

  /** The codes of a call on each connection, one after the other. */
  async callOnEach(user: string): Promise<readonly number[]> {
    const codes: number[] = [];
    for (const client of this.clients) codes.push((await client.shouldRateLimit('shop', [`user=${user}`])).overallCode);
    return codes;
  }

  /** The answer to a request, with this status. */
  async api(request: string, body?: unknown, status = 200): Promise<Readonly<Record<string, unknown>>> {
    const [method, path] = request.split(' ') as [string, string];
    const response = await fetch(`http://127.0.0.1:${this.weir.ports.debug}${path}`, {
      method,
      headers: { authorization: 'Bearer a-token-of-operators', 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    expect([request, response.status, answer]).toEqual([request, status, answer]);
    return answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.clients) client[Symbol.dispose]();
    await this.weir[Symbol.asyncDispose]();
  }
}

const [OK, OVER_LIMIT] = [1, 2];

describe.each<[store: string, env: () => Readonly<Record<string, string>>]>([
  ['memory', () => ({ BACKEND_TYPE: 'memory' })],
  ['Redis', () => ({ BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address })],
])('the operators’ API of several workers, with counters in %s,', (_, env) => {
  let instance: Instance;
  beforeAll(async () => {
    instance = await Instance.start(env());
  });
  afterAll(() => instance?.[Symbol.asyncDispose]());

  it('explains a request with the count of all workers, without counting it', async () => {
    for (const client of instance.clients.slice(0, 2)) await client.shouldRateLimit('shop', ['user=explained']);
    const body = { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'explained' }] }] };
    for (let time = 0; time < 2; time += 1) {
      const { descriptors } = await instance.api('POST /api/explanations', body);
      expect(descriptors).toMatchObject([{ outcome: 'limit', counter: { count: 2, countAfter: 3 } }]);
    }
  });

  it('rejects a request to be explained that is too long as a single process does', async () => {
    const entries = [{ key: 'user', value: 'x'.repeat(1_048_400) }];
    const response = await fetch(`http://127.0.0.1:${instance.weir.ports.debug}/api/explanations`, {
      method: 'POST',
      headers: { authorization: 'Bearer a-token-of-operators' },
      body: JSON.stringify({ domain: 'shop', descriptors: [{ entries }] }),
    });
    expect([response.status, await response.json()]).toEqual([413, expect.objectContaining({ code: 'too_much_work' })]);
  });

  it('unblocks a caller on every worker, whose local caches have it as over its limit', async () => {
    expect(await instance.callOnEach('blocked')).toEqual([OK, OK, OK, OVER_LIMIT, OVER_LIMIT, OVER_LIMIT]);
    expect(await instance.callOnEach('blocked')).toEqual(Array.from({ length: CLIENTS }, () => OVER_LIMIT));
    const counter = '/api/counters?domain=shop&descriptor=user=blocked';
    expect(await instance.api(`GET ${counter}`)).toMatchObject({ isInLocalCache: true });
    await instance.api(`DELETE ${counter}`);
    expect(await instance.api(`GET ${counter}`)).toMatchObject({ count: 0, isInLocalCache: false });
    expect(await instance.callOnEach('blocked')).toEqual([OK, OK, OK, OVER_LIMIT, OVER_LIMIT, OVER_LIMIT]);
  });

  it('sets a counter, which every worker then continues', async () => {
    const change = { domain: 'shop', descriptor: 'user=set', count: 2 };
    expect(await instance.api('PUT /api/counters', change)).toMatchObject({ countBefore: 0, count: 2 });
    const codes = await instance.callOnEach('set');
    expect(codes).toEqual([OK, OVER_LIMIT, OVER_LIMIT, OVER_LIMIT, OVER_LIMIT, OVER_LIMIT]);
  });

  it('shows the callers that all workers have limited, and the totals of all', async () => {
    const { offenders } = await instance.api('GET /api/offenders?domain=shop');
    const limited = Object.fromEntries(
      (offenders as { descriptor: string; limited: number }[]).map((offender) => [
        offender.descriptor,
        offender.limited,
      ]),
    );
    // 3 and 6 calls before the counter was cleared, 3 afterwards; 5 calls after the other was set.
    expect(limited).toEqual({ 'user=blocked': 12, 'user=set': 5 });
    // A worker whose report is late is not waited for.
    const totals = await instance.weir.until('the calls of all workers', async () => {
      const { domains } = await instance.api('GET /api/rules/shop');
      const [{ descriptors }] = domains as [{ descriptors: [{ totals: { hits: number; over: number } }] }];
      return descriptors[0].totals.hits === 26 && descriptors[0].totals;
    });
    expect(totals).toMatchObject({ hits: 26, over: 17 });
  });
});

describe('the operators’ API of several workers', () => {
  it('answers with the timeout of the store, also when that is longer than a worker may stand still', async () => {
    await using hanging = await RedisProcess.start();
    const store = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: hanging.address, KVSTORE_TIMEOUT: '7s' };
    await using instance = await Instance.start(store);
    hanging.signal('SIGSTOP');
    const entries = [{ key: 'user', value: 'ann' }];
    const [explanation, problem] = await Promise.all([
      instance.api('POST /api/explanations', { domain: 'shop', descriptors: [{ entries }] }),
      instance.api('GET /api/counters?domain=shop&descriptor=user=ann', undefined, 503),
    ]);
    expect(explanation).toMatchObject({ descriptors: [{ outcome: 'limit' }], error: { code: 'store_timeout' } });
    expect(problem).toMatchObject({ code: 'store_timeout' });
  });

  it('unblocks a caller also on a worker that does not answer, as soon as that continues', async () => {
    await using instance = await Instance.start({ BACKEND_TYPE: 'memory' });
    const { weir } = instance;
    await instance.callOnEach('stopped');
    await instance.callOnEach('stopped');
    const { pid } = workersOf(weir).at(-1)!;
    process.kill(pid, 'SIGSTOP');
    try {
      await weir.line(/a worker does not answer; others get the new connections/);
      await instance.api('DELETE /api/counters?domain=shop&descriptor=user=stopped');
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await weir.line(/a worker answers again/);
    const counter = await instance.api('GET /api/counters?domain=shop&descriptor=user=stopped');
    expect(counter).toMatchObject({ count: 0, isInLocalCache: false });
  });
});
