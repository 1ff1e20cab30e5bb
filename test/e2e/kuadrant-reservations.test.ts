import { Client, type ServiceError, credentials, status } from '@grpc/grpc-js';
import { RateLimitRequest, RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import {
  CommitRequest,
  CommitResponse,
  ReserveRequest,
  ReserveResponse,
} from '../../src/gen/kuadrant/service/ratelimit/v1/ratelimit';
import { type DescriptorSketch, requestMessage } from '../support/clients/grpc-client';
import { MemcachedProcess } from '../support/processes/memcached-process';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { Shop } from './shop';

const RULES = `domain: shop
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: 100}}
  - {key: team, rate_limit: {unit: year, requests_per_unit: 1000, algorithm: sliding_window}}
`;
const BOTH: readonly DescriptorSketch[] = ['user=x', 'team=x'];
const SECOND = 1_000;

/** A shop with a client of both methods. Their answers are texts: the name of the status if a call fails. */
class Gateway implements AsyncDisposable {
  readonly #client: Client;

  constructor(readonly shop: Shop) {
    this.#client = new Client(shop.weir.grpcAddress, credentials.createInsecure());
  }

  static async start(env: Readonly<Record<string, string>> = {}, rules = RULES): Promise<Gateway> {
    return new Gateway(await Shop.start({ env }, rules));
  }

  /** @param seconds of the ttl; undefined: there is none */
  async reserve(
    amount: bigint,
    descriptors = BOTH,
    seconds?: bigint,
  ): Promise<{ readonly code: string; readonly id: string }> {
    const ttl = seconds === undefined ? undefined : { seconds, nanos: 0 };
    const message = ReserveRequest.encode({ ...messageOf(descriptors), amount, ttl }).finish();
    const answer = await this.send('Reserve', message);
    if (typeof answer === 'string') return { code: answer, id: '' };
    const { code, reservationId: id } = ReserveResponse.decode(answer);
    return { code: Code[code], id };
  }

  /** Whether the reservation is released. */
  async commit(reservationId: string, actualAmount: bigint, descriptors = BOTH): Promise<boolean | string> {
    const message = CommitRequest.encode({ ...messageOf(descriptors), reservationId, actualAmount }).finish();
    const answer = await this.send('Commit', message);
    return typeof answer === 'string' ? answer : CommitResponse.decode(answer).reservationReleased;
  }

  send(method: 'Reserve' | 'Commit', message: Uint8Array): Promise<Uint8Array | string> {
    return new Promise((resolve) => {
      this.#client.makeUnaryRequest(
        `/kuadrant.service.ratelimit.v1.RateLimitService/${method}`,
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => bytes,
        Buffer.from(message),
        (error: ServiceError | null, answer?: Buffer) => resolve(error === null ? answer! : status[error.code]),
      );
    });
  }

  /** What is left of both limits, asked without counting. */
  async left(): Promise<readonly number[]> {
    const { statuses } = await this.shop.client.kuadrant('CheckRateLimit', requestMessage('shop', BOTH));
    return statuses.map(({ limitRemaining }) => limitRemaining);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.close();
    await this.shop[Symbol.asyncDispose]();
  }
}

function messageOf(descriptors: readonly DescriptorSketch[], domain = 'shop') {
  return RateLimitRequest.decode(requestMessage(domain, descriptors));
}

/** Has hits of its own, which are not those of the call. */
const SUBTRACTING = {
  entries: [{ key: 'user', value: 'x' }],
  limit: undefined,
  ...{ hitsAddend: 7n, isNegativeHits: true },
};

describe.each(['memory', 'redis'])("Kuadrant's Reserve and Commit on counters in %s", (store) => {
  let redis: RedisProcess | undefined;
  let gateway: Gateway;
  beforeEach(async () => {
    redis = store === 'redis' ? await RedisProcess.start() : undefined;
    gateway = await Gateway.start(redis && { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address });
  });
  afterEach(async () => {
    await gateway[Symbol.asyncDispose]();
    await redis?.[Symbol.asyncDispose]();
  });

  it('reserve what fits, and count what was used', async () => {
    const first = await gateway.reserve(60n);
    expect(first).toEqual({ code: 'OK', id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
    expect(await gateway.reserve(60n)).toEqual({ code: 'OVER_LIMIT', id: '' });
    const second = await gateway.reserve(40n, [SUBTRACTING, 'team=x']);
    expect([second.code, await gateway.left()]).toEqual(['OK', [0, 900]]);
    expect(await gateway.reserve(0n)).toEqual({ code: 'OVER_LIMIT', id: '' });

    // Of less, the rest is given back; the same id again changes nothing, whatever the amount.
    expect(await gateway.commit(first.id, 10n)).toBe(true);
    expect(await gateway.commit(first.id, 10n)).toBe(true);
    expect(await gateway.commit(first.id, 11n)).toBe(true);
    expect(await gateway.left()).toEqual([50, 950]);
    expect(await gateway.reserve(0n)).toEqual({ code: 'OK', id: '' });
    // More is counted beyond the limit, and nothing of what was not used.
    expect(await gateway.commit(second.id, 120n)).toBe(true);
    expect(await gateway.left()).toEqual([0, 870]);
    const third = await gateway.reserve(70n, ['team=x']);
    expect([await gateway.commit(third.id, 0n), await gateway.left()]).toEqual([true, [0, 870]]);

    const statistics = await gateway.shop.weir.statistics();
    const counted = {
      ...{ 'ratelimit_server.Reserve.total_requests': 6, 'ratelimit_server.Commit.total_requests': 5 },
      ...{ 'ratelimit.reservations.reserved': 3, 'ratelimit.reservations.settled': 3 },
    };
    for (const [name, count] of Object.entries(counted)) expect([name, statistics.get(name)]).toEqual([name, count]);
  });

  it('count all of what was used where nothing is reserved', async () => {
    for (const [id, left] of [
      ['', [80, 980]],
      ['unknown', [60, 960]],
      ['x'.repeat(1_000), [40, 940]],
    ] as const) {
      expect(await gateway.commit(id, 20n, [SUBTRACTING, 'team=x'])).toBe(false);
      expect(await gateway.commit(id, 0n)).toBe(false);
      expect(await gateway.left()).toEqual(left);
    }
    expect(await gateway.commit('', 5_000_000_000n)).toBe(false);
    expect(await gateway.left()).toEqual([0, 0]);
    // Nothing limits it: it holds nothing, and ends once.
    const { code, id } = await gateway.reserve(5n, ['none=x']);
    expect([code, await gateway.commit(id, 9n), await gateway.commit(id, 9n)]).toEqual(['OK', true, true]);
  });

  it('bound the ttl, and count all of what was used after it', async () => {
    const { weir } = gateway.shop;
    for (const [seconds, ttl] of [
      [undefined, 60],
      [90n, 90],
      [9_000n, 3_600],
    ] as const) {
      const earliest = Date.now() + ttl * SECOND;
      const { id } = await gateway.reserve(60n, ['user=x'], seconds);
      const latest = Date.now() + ttl * SECOND;
      const counter = JSON.parse(await weir.debug('/api/counters?domain=shop&descriptor=user=x')) as {
        readonly openReservations: { readonly first: readonly { readonly expiresAt: string }[] };
      };
      const open = { id, hits: 60, expiresAt: expect.any(String), onExpiry: 'cancel' };
      expect(counter.openReservations).toEqual({ count: 1, first: [open] });
      const expiresAt = Date.parse(counter.openReservations.first[0]!.expiresAt);
      expect([expiresAt >= earliest, expiresAt <= latest]).toEqual([true, true]);
      expect(await gateway.commit(id, 0n)).toBe(true);
    }
    let left = 100;
    for (const seconds of [0n, -1n]) {
      const { id } = await gateway.reserve(10n, ['user=x'], seconds);
      await weir.until('it is given back', async () => (await gateway.left())[0] === left);
      expect([await gateway.commit(id, 40n), await gateway.commit(id, 40n)]).toEqual([false, true]);
      left -= 40;
      expect(await gateway.left()).toEqual([left, 1_000]);
    }
  });

  it('reject what ShouldRateLimit rejects', async () => {
    for (const amount of [0n, 1n]) {
      for (const request of [messageOf(BOTH, ''), messageOf([])]) {
        const reserve = ReserveRequest.encode({ ...request, amount, ttl: undefined }).finish();
        expect(await gateway.send('Reserve', reserve)).toBe('INVALID_ARGUMENT');
        const commit = CommitRequest.encode({ ...request, reservationId: '', actualAmount: amount + 1n }).finish();
        expect(await gateway.send('Commit', commit)).toBe('INVALID_ARGUMENT');
      }
    }
    for (const method of ['Reserve', 'Commit'] as const) {
      expect(await gateway.send(method, Uint8Array.of(0x0a, 5, 1))).toBe('INTERNAL');
    }
    expect((await gateway.reserve(2n ** 53n)).code).toBe('INVALID_ARGUMENT');
    expect(await gateway.commit('', 2n ** 53n)).toBe('INVALID_ARGUMENT');
    expect(await gateway.left()).toEqual([100, 1_000]);
  });
});

it('a store without reservations is asked, and counts what was used', async () => {
  await using memcached = await MemcachedProcess.start();
  const env = { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: memcached.address };
  // It has no algorithms either.
  await using gateway = await Gateway.start(env, RULES.slice(0, RULES.indexOf('  - {key: team')));
  const user = ['user=x'];
  expect(await gateway.reserve(0n, user)).toEqual({ code: 'OK', id: '' });
  expect(await gateway.reserve(1n, user)).toEqual({ code: 'UNIMPLEMENTED', id: '' });
  expect([await gateway.commit('', 60n, user), await gateway.commit('unknown', 60n, user)]).toEqual([false, false]);
  expect(await gateway.reserve(0n, user)).toEqual({ code: 'OVER_LIMIT', id: '' });
});
