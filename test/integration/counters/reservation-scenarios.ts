import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import type { ReservationBounds } from '../../../src/sinks/counters/memory/memory-reservations';
import { LARGEST_COUNT } from '../../../src/counting/operation';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { CounterAdministration } from '../../../src/streams/ports/counter-administration';
import type { OnExpiry, ReservationStore } from '../../../src/streams/ports/reservations';
import { KEPT, MAX_OPEN } from '../../../src/streams/ports/reservations';
import fc from '../../support/data/properties';
import { descriptor, request } from '../../support/data/requests';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { connected, instance } from '../kvstore/options';
import { Caller, LIMITS, STARTS_AT, type Terms, WINDOW } from './reservation-caller';
import { counterOf } from '../../support/data/operations';

/** All the limits that a model has, of which two are quotas. */
const ALL_LIMITS = { ...LIMITS, first: 10, other: 20 };
const ALL_WINDOWS = { ...WINDOW, first: 60_000, other: 60_000 };
type AnyName = keyof typeof ALL_LIMITS;
const ALL_NAMES = Object.keys(ALL_LIMITS) as readonly AnyName[];
const QUOTAS: readonly AnyName[] = ['first', 'other'];

interface Use {
  readonly name: AnyName;
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
    if (known !== undefined && known.content !== content) return 'reservation_conflict';
    if (known !== undefined && !known.isEmpty) return known.answer;
    const before: number[] = [];
    const sums = new Map<AnyName, number>();
    const after = uses.map(({ name, hits }, index) => {
      before[index] = sums.get(name) ?? this.#count(this.#key(name));
      const sum = Math.min(LARGEST_COUNT, before[index] + hits);
      sums.set(name, sum);
      return sum;
    });
    const over = uses.map(({ name }, index) => after[index]! > ALL_LIMITS[name]);
    const quotas = over.filter((_, index) => QUOTAS.includes(uses[index]!.name));
    const isDenied =
      (quotas.length > 0 && !quotas.includes(false)) ||
      uses.some(({ name }, index) => name !== 'tried' && !QUOTAS.includes(name) && over[index]);
    function left({ name }: Use, index: number): number {
      if (name === 'free') return 0;
      const count = isDenied && !over[index] ? before[index]! : after[index]!;
      return Math.max(0, ALL_LIMITS[name] - count);
    }
    const lefts = uses.map(left).join();
    if (known !== undefined) return `reserved ${!isDenied} ${lefts}`;
    const answer = `${isDenied ? 'denied' : 'reserved'} ${!isDenied} ${lefts}`;
    if (isDenied) return answer;
    const keys = uses.map(({ name }) => this.#key(name));
    const held = uses.map(({ hits }, index) => this.#add(keys[index]!, hits));
    const isEmpty = uses.every(({ name, hits }) => name === 'free' || hits === 0);
    const more = { keys, held, isEmpty, expiresAt: this.now + ttl, onExpiry, state: 'open' } as const;
    this.#made.set(id, { content, answer, uses, givenBack: [], ...more });
    return answer;
  }

  end(id: string, wanted: 'settled' | 'cancelled', hits: number | readonly number[]): string {
    this.#expire();
    const made = this.#made.get(id);
    if (made === undefined) return 'unknown_reservation';
    if (typeof hits !== 'number' && hits.length !== made.uses.length) return 'invalid_request';
    const all = made.uses.map((_, index) => (typeof hits === 'number' ? hits : hits[index]!));
    const call = `${wanted} ${all.join()}`;
    const isLate = made.state === 'expired' && wanted === 'settled' && !made.isEmpty;
    if (made.state !== 'open' && !isLate) return made.call === call ? made.ended! : 'reservation_conflict';
    if (made.isEmpty && made.uses.some(({ name }, index) => name !== 'free' && all[index]! > 0)) {
      return 'reservation_conflict';
    }
    const parts = made.uses.map((use, index) => {
      if (made.isEmpty || use.name === 'free') return `0>${all[index]}:0`;
      const isGivenBack = isLate && made.givenBack.includes(made.keys[index]!);
      const difference = all[index]! - (isGivenBack ? 0 : made.held[index]!);
      const isPresent = made.keys[index] === this.#key(use.name);
      const added = isPresent || difference > 0 ? this.#add(this.#key(use.name), difference) : 0;
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
      if (made.onExpiry === 'settle') continue;
      made.held.forEach((held, index) => this.#add(made.keys[index]!, -held));
      made.givenBack.push(...made.uses.map(({ name }) => this.#key(name, made.expiresAt)));
    }
  }

  #key(name: AnyName, now = this.now): string {
    return `${name} ${Math.floor(now / ALL_WINDOWS[name])}`;
  }

  #count(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  /** @returns by how much the count has changed */
  #add(key: string, hits: number): number {
    const before = this.#count(key);
    const after = Math.min(LARGEST_COUNT, Math.max(0, before + hits));
    this.#counts.set(key, after);
    return after - before;
  }
}

interface Made {
  readonly content: string;
  readonly answer: string;
  readonly uses: readonly Use[];
  readonly keys: readonly string[];
  /** What each has added. */
  readonly held: readonly number[];
  readonly isEmpty: boolean;
  readonly expiresAt: number;
  readonly onExpiry: OnExpiry;
  /** The keys to which it was given back as it expired in their windows. */
  readonly givenBack: string[];
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
const HITS = fc.constantFrom(0, 0, 1, 9, 40, 60, 101, 2 ** 52, LARGEST_COUNT - 1, LARGEST_COUNT);
const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('reserve' as const),
    id: ID,
    uses: fc.array(fc.record({ name: fc.constantFrom(...ALL_NAMES), hits: HITS }), { minLength: 1, maxLength: 3 }),
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
    const reads = ALL_NAMES.map((name) => ({ name, hits: 0 }));
    expect(await caller.reserve(`read${index}`, reads)).toBe(model.reserve(`read${index}`, reads));
  }
}

let prefixes = 0;
export function freshPrefix(): string {
  prefixes += 1;
  return `p${prefixes}_`;
}

const opened: MemoryCounters[] = [];
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));

/** Counters in memory whose clock is that of the first caller. */
export function memory(clock: { now: number }, reservations?: ReservationBounds): MemoryCounters {
  const counters = new MemoryCounters({ maxKeys: 100_000, now: () => clock.now, reservations });
  opened.push(counters);
  return counters;
}

type Kind = 'memory' | 'Redis' | 'Redis behind sentinels' | 'Redis Cluster';

/** What reservations do in every store. @param runs of random calls */
export function reservationScenarios(kind: Kind, runs: number): void {
  let servers: RedisProcess | RedisSentinels | RedisCluster | undefined;
  beforeAll(async () => {
    if (kind === 'Redis') servers = await RedisProcess.start();
    if (kind === 'Redis behind sentinels') servers = await RedisSentinels.start();
    if (kind === 'Redis Cluster') servers = await RedisCluster.start();
  });
  afterAll(() => servers?.[Symbol.asyncDispose]());
  let clock = { now: STARTS_AT };
  let kvstore: KvstoreCounters | undefined;
  let counters: CounterAdministration | undefined;
  beforeEach(async () => {
    if (servers === undefined) return;
    const type = servers instanceof RedisCluster ? 'cluster' : 'sentinel';
    const main = servers instanceof RedisProcess ? instance(servers.address) : instance(servers.url, { type });
    kvstore = await connected(main, { now: () => clock.now * 1000 });
  });

  /** Two callers with one store. */
  function callers(): readonly [Caller, Caller] {
    clock = { now: STARTS_AT };
    const inMemory = kvstore === undefined ? memory(clock) : undefined;
    counters = kvstore ?? inMemory;
    const store = inMemory ?? kvstore!.reservations;
    const prefix = freshPrefix();
    const made = [new Caller(store, prefix), new Caller(store, prefix)] as const;
    Object.defineProperty(clock, 'now', { get: () => made[0].now });
    return made;
  }

  it('do the same as a model, whichever of two instances is called', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 25 }), (steps) => play(steps, callers())),
      { numRuns: runs },
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
    const counter = counterOf(`${one.cacheKeyPrefix}d_user_x_1699999980`);
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

  it('count in a window of the calendar until that ends', async () => {
    const [caller, other] = callers();
    const [now, ahead] = [Date.now(), 9 * 3_600_000];
    const end = Date.UTC(new Date(now + ahead).getUTCFullYear() + 1, 0) - ahead;
    const answers: string[] = [];
    for (const time of [now, end - 1, end]) {
      caller.now = other.now = time;
      for (const id of ['a', 'b']) answers.push(await caller.reserve(`${id}${time}`, [{ name: 'year', hits: 6 }]));
    }
    expect(answers).toEqual([
      'reserved true 4',
      ...Array(3).fill('denied false 0'),
      'reserved true 4',
      'denied false 0',
    ]);
    if (!(servers instanceof RedisProcess)) return;
    const { control } = servers;
    const keys = (await control.keys(`${caller.cacheKeyPrefix}d_year_x_*[0-9]`)).toSorted();
    const left = await Promise.all(keys.map((key) => control.ttl(key)));
    expect(Math.abs(left[0]! - (end - now) / 1000)).toBeLessThan(600);
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

  it('say what was given back when the counter was lower', async () => {
    const [caller] = callers();
    await caller.reserve('r', [{ name: 'user', hits: 50 }]);
    await counters!.changeCounter(counterOf(`${caller.cacheKeyPrefix}d_user_x_1699999980`), 20);
    expect([await caller.cancel('r'), await caller.cancel('r')]).toEqual(['cancelled 50>0:-20', 'cancelled 50>0:-20']);
  });

  it('give back what has expired, at most 100 with each call on the counter', async () => {
    const [caller] = callers();
    const uses = [{ name: 'tried', hits: 1 }] as const;
    const terms = { ttl: 2_000, onExpiry: 'cancel' } as const;
    for (let made = 0; made < 250; made += 1) await caller.reserve(`r${made}`, uses, terms);
    caller.now += 1_999;
    await caller.reserve('later', uses, terms);
    caller.now += 1;
    const counter = counterOf(`${caller.cacheKeyPrefix}d_tried_x_1699999980`);
    const counts: number[] = [];
    for (let read = 0; read < 4; read += 1) {
      await caller.reserve(`read${read}`, [{ name: 'tried', hits: 0 }]);
      counts.push((await counters!.readCounter(counter)).count);
    }
    expect(counts).toEqual([151, 51, 1, 1]);
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
    const uses = Array.from({ length: 16 }, () => ({ name: 'tried' as const, hits: 1 }));
    for (let index = 0; index < MAX_OPEN / 16; index += 1) await caller.reserve(`r${index}`, uses);
    expect(await caller.reserve('more', uses)).toBe('too_many_reservations');
    caller.now += 5_000;
    expect(await caller.reserve('more', uses)).toMatch(/^reserved/);
  });

  it('keep nothing when no limit needs them, except with an id of the caller', async () => {
    const [caller, other] = callers();
    const { reservations } = caller;
    const call = { ttl: 5_000, id: undefined, onExpiry: 'settle' } as const;
    const none = [descriptor('user=x', { hitsAddend: 0 }), descriptor('free=x', { hitsAddend: 7 })];
    const { id, expiresAt } = await reservations.reserve({ ...call, request: request('d', none) });
    expect([id, expiresAt]).toEqual([expect.stringMatching(/^none\.2\.1\.[\w.-]{1,100}$/), caller.now + 5_000]);
    expect(await other.settle(id!, [1, 9])).toBe('reservation_conflict');
    expect(await other.settle(id!, [1])).toBe('invalid_request');
    if (servers instanceof RedisProcess) expect(await servers.control.keys(`${caller.cacheKeyPrefix}*`)).toEqual([]);
    expect(await other.settle(id!, [0, 9])).toBe('settled 0>0:0,0>9:0');
    await caller.reserve('own', [{ name: 'free', hits: 9 }]);
    const empty = counterOf(`${caller.cacheKeyPrefix}d_user_x_1699999980`);
    expect(await (caller.store as ReservationStore).readOpen(empty, caller.now)).toEqual({ count: 0, first: [] });
    const record = await (caller.store as ReservationStore).readRecord(`${caller.cacheKeyPrefix}weir:reservation:own`);
    expect(record!.length).toBeLessThan(100);
    expect(await other.reserve('own', [{ name: 'free', hits: 8 }])).toBe('reservation_conflict');
    expect(await other.reserve('own', [{ name: 'free', hits: 9 }])).toBe('reserved true 0');
    expect(await other.settle('own', 4)).toBe('settled 0>4:0');
    expect(await caller.reserve('own', [{ name: 'free', hits: 9 }])).toBe('reserved true 0');
    const late = await reservations.reserve({ ...call, request: request('d', none) });
    caller.now = other.now = caller.now + 5_000;
    expect(await other.cancel(late.id!)).toBe('reservation_conflict');
    if (!(servers instanceof RedisProcess)) return;
    const { control } = servers;
    const prefix = `${caller.cacheKeyPrefix}weir:reservation:`;
    expect(new Set(await control.keys(`${prefix}*`))).toEqual(new Set([`${prefix}own`, `${prefix}${id}`]));
    // The time of the test goes on, that of Redis does not.
    expect(await control.pttl(`${prefix}${id}`)).toBeLessThanOrEqual(5_000 + KEPT);
  });

  it('that hold no hits end once, as those that hold some', async () => {
    const [caller, other] = callers();
    const call = { ttl: 5_000, onExpiry: 'settle' } as const;
    const empty = {
      unlimited: request('d', ['unlimited=x']),
      unmatched: request('d', ['unmatched=x']),
      unknown: request('unknown', ['user=x']),
      asking: request('d', [descriptor('user=x', { hitsAddend: 0 }), descriptor('free=x', { hitsAddend: 7 })]),
    };
    for (const [name, asked] of Object.entries(empty)) {
      for (const own of [undefined, name]) {
        const { id } = await caller.reservations.reserve({ ...call, id: own, request: asked });
        const hits = name === 'asking' ? [0, 9] : 9;
        const settled = name === 'asking' ? 'settled 0>0:0,0>9:0' : 'settled 0>9:0';
        expect([name, own, await other.settle(id!, hits)]).toEqual([name, own, settled]);
        expect([await caller.settle(id!, hits), await other.settle(id!, hits)]).toEqual([settled, settled]);
        expect([await caller.cancel(id!), await other.settle(id!, 0)]).toEqual([
          'reservation_conflict',
          'reservation_conflict',
        ]);
        const race = (await caller.reservations.reserve({ ...call, id: own && `${name}-race`, request: asked })).id!;
        const ends = await Promise.all([caller.settle(race, hits), other.cancel(race), caller.cancel(race)]);
        const wins = ends.filter((end) => end !== 'reservation_conflict');
        expect(new Set(wins).size).toBe(1);
      }
    }
    const ended = [caller, other].flatMap(({ statistics }) =>
      ['settled', 'cancelled'].map((how) => statistics.counter(`ratelimit.reservations.${how}`).value),
    );
    expect(ended.reduce((sum, count) => sum + count)).toBe(16);
  });

  it('do nothing to a counter by an id that was made up', async () => {
    const [caller, other] = callers();
    await caller.reserve('r', [{ name: 'user', hits: 50 }]);
    const forged = [
      'none.1.0.zzzzzzzz.r',
      `none.1.0.${(STARTS_AT + 5_000).toString(36)}.r`,
      'none.16.1ekf.zzzzzzzz.',
      'none.99.0.zzzzzzzz.x',
      'none.1.0.zzzzzzzz.r:x',
      'none.',
    ];
    for (const id of forged) {
      for (const answer of [await other.settle(id, 0), await other.cancel(id), await other.settle(id, LARGEST_COUNT)])
        expect(answer).toMatch(/^(unknown_reservation|reservation_conflict|(settled|cancelled) (0>\d+:0,?)+)$/);
      expect(await other.reserve(id, [{ name: 'user', hits: 1 }])).toBe('invalid_request');
    }
    expect(await caller.reserve('read', [{ name: 'user', hits: 0 }])).toBe('reserved true 50');
    expect(await caller.settle('r', 1)).toBe('settled 50>1:-49');
    // No longer open than a reservation can be: its record would be kept as long.
    expect(await other.cancel(forged[0]!)).toBe('unknown_reservation');
  });

  it('reject what they cannot do, and count nothing', async () => {
    const [caller] = callers();
    const one = [{ name: 'user', hits: 1 }] as const;
    expect(await caller.reserve('a/b', one)).toBe('invalid_request');
    expect(await caller.reserve('x'.repeat(129), one)).toBe('invalid_request');
    expect([await caller.reserve('.', one), await caller.reserve('..', one)]).toEqual([
      'invalid_request',
      'invalid_request',
    ]);
    expect(await caller.reserve('r', one, { ttl: 999 })).toBe('invalid_request');
    expect(await caller.reserve('r', one, { ttl: 3_600_001 })).toBe('invalid_request');
    expect(
      await caller.reserve(
        'r',
        Array.from({ length: 17 }, () => one[0]),
      ),
    ).toBe('invalid_request');
    const call = { ttl: 5_000, id: 'r', onExpiry: 'settle' } as const;
    await expect(caller.reservations.reserve({ ...call, request: request('d', ['quotas=x']) })).rejects.toThrow(
      'd.quotas is a quota with several limits',
    );
    await expect(caller.reservations.reserve({ ...call, request: request('d', ['blocks=x']) })).rejects.toThrow(
      'the rule d.blocks has block_for',
    );
    const long = request('d', [descriptor(`user=${'x'.repeat(9_000)}`)]);
    await expect(caller.reservations.reserve({ ...call, request: long })).rejects.toThrow('at most 16384 bytes');
    const negative = request('d', [descriptor('user=x', { isNegativeHits: true })]);
    await expect(caller.reservations.reserve({ ...call, request: negative })).rejects.toThrow('cannot be negative');
    expect(await caller.reserve('read', [{ name: 'user', hits: 0 }])).toBe('reserved true 100');
  });
}
