import { KEPT } from '../../../src/reservations/reservations';
import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { OnExpiry, ReservationStore } from '../../../src/streams/ports/reservations';
import { MAX_OPEN } from '../../../src/streams/ports/reservations';
import fc from '../../support/data/properties';
import { descriptor, request } from '../../support/data/requests';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { connected, instance } from '../kvstore/options';
import { Caller, LIMITS, NAMES, type Name, STARTS_AT, type Terms, WINDOW } from './reservation-caller';

interface Use {
  readonly name: Name;
  readonly hits: number;
}

/** What reservations must do, without a store: all at once, and reservations end at the moment when they expire. */
class Model {
  now = STARTS_AT;
  readonly #counts = new Map<string, number>();
  readonly #made = new Map<string, Made>();

  reserve(id: string, uses: readonly Use[], { ttl = 5_000, onExpiry = 'settle' }: Terms = {}): string {
    this.#expire();
    const known = this.#made.get(id);
    const content = JSON.stringify([uses, ttl, onExpiry]);
    if (known !== undefined) return known.content === content ? known.answer : 'reservation_conflict';
    const after = uses.map(({ name, hits }, index) => {
      const before = uses.slice(0, index).filter((use) => use.name === name);
      return this.#count(name) + before.reduce((sum, use) => sum + use.hits, 0) + hits;
    });
    const isDenied = uses.some(({ name }, index) => name !== 'tried' && after[index]! > LIMITS[name]);
    function left({ name, hits }: Use, index: number): number {
      if (name === 'free') return 0;
      const count = isDenied && after[index]! <= LIMITS[name] ? after[index]! - hits : after[index]!;
      return Math.max(0, LIMITS[name] - count);
    }
    const answer = `${isDenied ? 'denied' : 'reserved'} ${!isDenied} ${uses.map(left).join()}`;
    if (isDenied) return answer;
    const keys = uses.map(({ name }) => this.#key(name));
    uses.forEach(({ name, hits }) => this.#add(this.#key(name), hits));
    this.#made.set(id, { content, answer, uses, keys, expiresAt: this.now + ttl, onExpiry, state: 'open' });
    return answer;
  }

  end(id: string, wanted: 'settled' | 'cancelled', hits: number | readonly number[]): string {
    this.#expire();
    const made = this.#made.get(id);
    if (made === undefined) return 'unknown_reservation';
    if (typeof hits !== 'number' && hits.length !== made.uses.length) return 'invalid_request';
    const all = made.uses.map((_, index) => (typeof hits === 'number' ? hits : hits[index]!));
    const call = `${wanted} ${all.join()}`;
    if (made.state !== 'open') return made.call === call ? made.ended! : 'reservation_conflict';
    const parts = made.uses.map((use, index) => {
      if (use.name === 'free') return `0>${all[index]}:0`;
      const difference = all[index]! - use.hits;
      const isPresent = made.keys[index] === this.#key(use.name);
      const added = isPresent || difference > 0 ? difference : 0;
      this.#add(this.#key(use.name), added);
      return `${use.hits}>${all[index]}:${added}`;
    });
    made.state = wanted;
    made.call = call;
    made.ended = `${wanted} ${parts.join()}`;
    return made.ended;
  }

  #expire(): void {
    for (const made of this.#made.values()) {
      if (made.state !== 'open' || made.expiresAt > this.now) continue;
      made.state = 'expired';
      if (made.onExpiry === 'cancel') made.uses.forEach(({ hits }, index) => this.#add(made.keys[index]!, -hits));
    }
  }

  #key(name: Name): string {
    return `${name} ${Math.floor(this.now / WINDOW[name])}`;
  }

  #count(name: Name): number {
    return this.#counts.get(this.#key(name)) ?? 0;
  }

  #add(key: string, hits: number): void {
    this.#counts.set(key, Math.max(0, (this.#counts.get(key) ?? 0) + hits));
  }
}

interface Made {
  readonly content: string;
  readonly answer: string;
  readonly uses: readonly Use[];
  readonly keys: readonly string[];
  readonly expiresAt: number;
  readonly onExpiry: OnExpiry;
  state: 'open' | 'expired' | 'settled' | 'cancelled';
  call?: string;
  ended?: string;
}

type Step =
  | { kind: 'reserve'; id: string; uses: readonly Use[]; ttl: number; onExpiry: OnExpiry }
  | { kind: 'settle'; id: string; hits: number | readonly number[] }
  | { kind: 'cancel'; id: string }
  | { kind: 'pass'; milliseconds: number };

const ID = fc.constantFrom('r1', 'r2', 'r3', 'r4', 'r5');
const HITS = fc.constantFrom(0, 1, 9, 40, 60, 101);
const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('reserve' as const),
    id: ID,
    uses: fc.array(fc.record({ name: fc.constantFrom(...NAMES), hits: HITS }), { minLength: 1, maxLength: 3 }),
    ttl: fc.constantFrom(1_000, 60_000),
    onExpiry: fc.constantFrom<OnExpiry>('settle', 'cancel'),
  }),
  fc.record({
    kind: fc.constant('settle' as const),
    id: ID,
    hits: fc.oneof(HITS, fc.array(HITS, { minLength: 1, maxLength: 3 })),
  }),
  fc.record({ kind: fc.constant('cancel' as const), id: ID }),
  fc.record({ kind: fc.constant('pass' as const), milliseconds: fc.constantFrom(300, 1_000, 20_000) }),
);

/** Half of the reservations are made again, as after a lost answer. */
async function play(steps: readonly Step[], callers: readonly Caller[]): Promise<void> {
  const model = new Model();
  for (const [index, step] of steps.entries()) {
    const caller = callers[index % callers.length]!;
    if (step.kind === 'pass') {
      model.now += step.milliseconds;
      for (const each of callers) each.now = model.now;
    } else if (step.kind === 'reserve') {
      const expected = model.reserve(step.id, step.uses, step);
      expect(await caller.reserve(step.id, step.uses, step)).toBe(expected);
      if (index % 2 === 0) {
        const again = model.reserve(step.id, step.uses, step);
        expect(await caller.reserve(step.id, step.uses, step)).toBe(again);
      }
    } else if (step.kind === 'settle') {
      expect(await caller.settle(step.id, step.hits)).toBe(model.end(step.id, 'settled', step.hits));
    } else expect(await caller.cancel(step.id)).toBe(model.end(step.id, 'cancelled', 0));
    const reads = NAMES.map((name) => ({ name, hits: 0 }));
    expect(await caller.reserve(`read${index}`, reads)).toBe(model.reserve(`read${index}`, reads));
  }
}

let redis: RedisProcess;
beforeAll(async () => {
  redis = await RedisProcess.start();
});
afterAll(() => redis[Symbol.asyncDispose]());

let prefixes = 0;
function freshPrefix(): string {
  prefixes += 1;
  return `p${prefixes}_`;
}

const opened: MemoryCounters[] = [];
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));

/** Counters in memory whose clock is that of the first caller. */
function memory(clock: { now: number }): MemoryCounters {
  const counters = new MemoryCounters({ maxKeys: 100_000, now: () => clock.now });
  opened.push(counters);
  return counters;
}

const KINDS = ['memory', 'Redis', 'Redis behind sentinels', 'Redis Cluster'] as const;
describe.each(KINDS)('reservations in %s', (kind) => {
  let servers: RedisSentinels | RedisCluster | undefined;
  beforeAll(async () => {
    if (kind === 'Redis behind sentinels') servers = await RedisSentinels.start();
    if (kind === 'Redis Cluster') servers = await RedisCluster.start();
  });
  afterAll(() => servers?.[Symbol.asyncDispose]());
  let kvstore: KvstoreCounters | undefined;
  beforeEach(async () => {
    if (kind === 'memory') return;
    const type = servers instanceof RedisCluster ? 'cluster' : 'sentinel';
    kvstore = await connected(servers === undefined ? instance(redis.address) : instance(servers.url, { type }));
  });

  /** Two callers with one store. */
  function callers(): readonly [Caller, Caller] {
    const clock = { now: STARTS_AT };
    const store = kvstore === undefined ? memory(clock) : kvstore.reservations;
    const prefix = freshPrefix();
    const made = [new Caller(store, prefix), new Caller(store, prefix)] as const;
    Object.defineProperty(clock, 'now', { get: () => made[0].now });
    return made;
  }

  it('do the same as a model, whichever of two instances is called', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 25 }), (steps) => play(steps, callers())),
      { numRuns: kind === 'memory' ? 200 : 50 },
    );
  });

  it('end once, also when several calls end them at the same time', async () => {
    const [one, other] = callers();
    await one.reserve('r', [{ name: 'user', hits: 50 }]);
    const ends = await Promise.all([
      one.settle('r', 80),
      other.cancel('r'),
      one.settle('r', 80),
      other.settle('r', 80),
    ]);
    const wins = ends.filter((end) => end !== 'reservation_conflict');
    expect(new Set(wins).size).toBe(1);
    const left = wins[0] === 'cancelled 50>0:-50' ? 100 : 20;
    expect(await one.reserve('read', [{ name: 'user', hits: 0 }])).toBe(`reserved true ${left}`);
  });

  it('are listed by counter until they end, those first that expire first', async () => {
    const [one, other] = callers();
    const store = one.store as ReservationStore;
    const counter = { key: `${one.cacheKeyPrefix}d_user_x_1699999980`, windowSeconds: 60 };
    expect(await store.readOpen(counter, one.now)).toEqual({ count: 0, first: [] });
    await one.reserve('late', [{ name: 'user', hits: 5 }]);
    const soon = [
      { name: 'user', hits: 3 },
      { name: 'team', hits: 9 },
    ];
    await other.reserve('so-on', soon, { ttl: 2_000, onExpiry: 'cancel' });
    const late = { id: 'late', hits: 5, expiresAt: one.now + 5_000, onExpiry: 'settle' };
    const first = [{ id: 'so-on', hits: 3, expiresAt: one.now + 2_000, onExpiry: 'cancel' }, late];
    expect(await store.readOpen(counter, one.now)).toEqual({ count: 2, first });
    expect(await store.readOpen(counter, one.now + 2_000)).toEqual({ count: 1, first: [late] });
    await other.settle('late', 4);
    expect(await store.readOpen(counter, one.now)).toEqual({ count: 1, first: [first[0]] });
    for (let made = 0; made < 21; made += 1) await one.reserve(`many${made}`, [{ name: 'user', hits: 1 }]);
    const many = await store.readOpen(counter, one.now);
    expect([many.count, many.first.length, many.first[0]!.id]).toEqual([22, 20, 'so-on']);
  });

  it('do not let parallel calls overspend', async () => {
    const both = callers();
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => both[index % 2]!.reserve(`r${index}`, [{ name: 'user', hits: 9 }])),
    );
    expect(answers.filter((answer) => answer.startsWith('reserved'))).toHaveLength(11);
  });

  it('count at each limit of a rule, also once the window of one has ended', async () => {
    const [caller, other] = callers();
    expect(await caller.reserve('r', [{ name: 'both', hits: 8 }])).toBe('reserved true 2');
    expect(await other.reserve('denied', [{ name: 'both', hits: 3 }])).toBe('denied false 0');
    caller.now = other.now = STARTS_AT + 4_900;
    expect(await other.reserve('late', [{ name: 'both', hits: 1 }], { ttl: 60_000 })).toBe('reserved true 1');
    caller.now = other.now = STARTS_AT + 6_000;
    expect(await other.settle('late', 4)).toBe('settled 1>4:3');
    expect(await caller.reserve('next', [{ name: 'both', hits: 7 }])).toBe('reserved true 0');
    expect(await other.cancel('next')).toBe('cancelled 7>0:-7');
    for (let minute = 0; minute < 8; minute += 1) {
      caller.now = other.now = STARTS_AT + 65_000 + minute * 60_000;
      expect(await caller.reserve(`m${minute}`, [{ name: 'both', hits: 10 }])).toBe('reserved true 0');
    }
    caller.now = other.now = STARTS_AT + 65_000 + 8 * 60_000;
    // Of the hour: 8, 4, and 8 × 10.
    expect(await caller.reserve('all', [{ name: 'both', hits: 9 }])).toBe('denied false 0');
    expect(await caller.reserve('rest', [{ name: 'both', hits: 8 }])).toBe('reserved true 0');
  });

  it('are over a limit with all their hits when they are denied, and within none', async () => {
    const [caller] = callers();
    const uses = [
      { name: 'first', hits: 8 },
      { name: 'user', hits: 81 },
    ];
    for (const id of ['r1', 'r2', 'r3']) await caller.reserve(id, uses);
    const { totalHits, withinLimit, nearLimit, overLimit } = caller.statistics.rule('d.user');
    expect([totalHits, withinLimit, nearLimit, overLimit]).toEqual([243, 81, 1, 162]);
    const quota = caller.statistics.rule('d.first');
    expect([quota.totalHits, quota.withinLimit, quota.nearLimit, quota.overLimit]).toEqual([24, 8, 0, 16]);
  });

  it('free the local cache when hits are given back', async () => {
    const [caller] = callers();
    await caller.reserve('r', [{ name: 'user', hits: 100 }]);
    expect(caller.freed).toEqual([]);
    await caller.cancel('r');
    expect(caller.freed).toEqual([expect.stringContaining('d_user_x_')]);
  });

  it('are bounded for each counter', async () => {
    const [caller] = callers();
    const uses = Array.from({ length: 16 }, () => ({ name: 'user' as const, hits: 0 }));
    for (let index = 0; index < MAX_OPEN / 16; index += 1) await caller.reserve(`r${index}`, uses);
    expect(await caller.reserve('more', uses)).toBe('too_many_reservations');
    caller.now += 5_000;
    expect(await caller.reserve('more', uses)).toMatch(/^reserved/);
  });

  it('reject what they cannot do, and count nothing', async () => {
    const [caller] = callers();
    const one = [{ name: 'user', hits: 1 }] as const;
    expect(await caller.reserve('a/b', one)).toBe('invalid_request');
    expect(await caller.reserve('x'.repeat(129), one)).toBe('invalid_request');
    expect(await caller.reserve('r', one, { ttl: 999 })).toBe('invalid_request');
    expect(await caller.reserve('r', one, { ttl: 3_600_001 })).toBe('invalid_request');
    expect(
      await caller.reserve(
        'r',
        Array.from({ length: 17 }, () => one[0]),
      ),
    ).toBe('invalid_request');
    const slid = { request: request('d', ['slid=x', 'user=x']), ttl: 5_000, id: 'r', onExpiry: 'settle' } as const;
    await expect(caller.reservations.reserve(slid)).rejects.toThrow('d.slid has the algorithm sliding_window');
    await expect(caller.reservations.reserve({ ...slid, request: request('d', ['quotas=x']) })).rejects.toThrow(
      'd.quotas is a quota with several limits',
    );
    const long = request('d', [descriptor(`user=${'x'.repeat(9_000)}`)]);
    await expect(caller.reservations.reserve({ ...slid, request: long })).rejects.toThrow('at most 16384 bytes');
    const negative = request('d', [descriptor('user=x', { isNegativeHits: true })]);
    await expect(caller.reservations.reserve({ ...slid, request: negative })).rejects.toThrow('cannot be negative');
    expect(await caller.reserve('read', [{ name: 'user', hits: 0 }])).toBe('reserved true 100');
  });
});

describe('reservations of one store only', () => {
  it('in memory are forgotten some time after they have expired, and what they held is given back then', async () => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    const clock = { now: STARTS_AT };
    const counters = memory(clock);
    const caller = new Caller(counters, freshPrefix());
    await caller.reserve('r', [{ name: 'team', hits: 50 }], { onExpiry: 'cancel' });
    clock.now += KEPT + 6_000;
    caller.now = clock.now;
    counters.removeExpired();
    expect(await caller.cancel('r')).toBe('unknown_reservation');
    jest.useRealTimers();
  });

  it('in Redis leave keys that expire, and reject another type of value', async () => {
    const kvstore = await connected(instance(redis.address));
    const caller = new Caller(kvstore.reservations, 'ttl_');
    await caller.reserve('r', [{ name: 'user', hits: 1 }]);
    const keys = (await redis.control.keys('ttl_*')).sort();
    expect(keys).toEqual([
      expect.stringMatching(/^ttl_d_user_x_\d+$/),
      expect.stringMatching(/:reservations$/),
      'ttl_weir:reservation:r',
    ]);
    for (const key of keys) expect(await redis.control.ttl(key)).toBeGreaterThan(0);
    await redis.control.set('ttl_weir:reservation:odd', 'odd');
    expect(await caller.settle('odd', 1)).toBe('store_failed');
    await redis.control.lpush('ttl_weir:reservation:list', 'odd');
    expect(await caller.reserve('list', [{ name: 'user', hits: 1 }])).toBe('store_failed');
    expect(await caller.reserve('read', [{ name: 'user', hits: 0 }])).toBe('reserved true 99');
    expect(caller.statistics.counter('ratelimit.reservations.reserved').value).toBe(2);
  });
});
