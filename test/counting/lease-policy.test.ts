import { DecisionError } from '../../src/counting/decision-error';
import { RateEstimator } from '../../src/counting/rate-estimator';
import { Leases } from '../../src/counting/leases';
import type { Limit } from '../../src/counting/limit';
import { Operation } from '../../src/counting/operation';
import { Counter } from '../../src/statistics/counter';
import { leasedLimit } from './lease-bounds';

// How much is leased, when, and for how long: the numbers of the policy. That it keeps limits is in leases.test.ts.

/** The start of a window of 10 seconds. */
const START = 1_700_000_000_000;
const LIMIT = leasedLimit(1_000_000, 10);

/** The leases of one key at a time that a test sets, and a store whose answers it gives. */
class Leasing {
  /** Milliseconds of the window of 10 seconds that have passed. */
  now = 0;
  readonly tallies = {
    grantedHits: new Counter('granted'),
    usedHits: new Counter('used'),
    returnedHits: new Counter('returned'),
    unusedHits: new Counter('unused'),
    savedCalls: new Counter('saved'),
  };
  readonly leases: Leases;
  readonly #key: string;
  #usual = 1;
  readonly #sent: Operation[] = [];
  #maintain = (): void => undefined;

  constructor(readonly limit: Limit = LIMIT) {
    const { algorithm } = limit;
    this.#key = algorithm === undefined ? `d_k_v_${START / 1000}` : `{_d_k_v_}${algorithm.name}_10`;
    this.leases = new Leases({ isAuto: true, now: () => this.now, wallClock: () => START + this.now, ...this.tallies });
    this.leases.connect({
      send: (operations) => this.#sent.push(...operations),
      later: (maintain) => (this.#maintain = maintain),
    });
  }

  get held(): number {
    return this.leases.heldOf(this.#key);
  }

  operation(hits: number, limit = this.limit): Operation {
    return new Operation(limit, this.#key, hits);
  }

  /** A call, which is sent unless it is decided here. */
  call(hits: number): Operation {
    const operation = this.operation(hits);
    if (this.leases.decide([operation], undefined).length > 0) this.leases.prepare([operation]);
    return operation;
  }

  /** Whether a call is decided here. */
  decides(hits: number): boolean {
    const { isKnownOver, countAfter, outcome } = this.call(hits);
    return isKnownOver || countAfter >= 0 || outcome !== undefined;
  }

  /** The store has counted so much, and grants so much. */
  answer(operation: Operation, stored: number, granted = 0): void {
    const { algorithm } = this.limit;
    if (algorithm !== undefined) {
      const empty = algorithm.empty((START + this.now) * 1000);
      operation.outcome = algorithm.decide(algorithm.decide(empty, stored).state, 0);
    }
    if (operation.lease !== undefined) operation.lease.granted = granted;
    this.leases.answered([operation], [operation.outcome?.state ?? stored]);
  }

  /**
   * Calls of 5 hits a millisecond up to a time, of which each is answered after a trip, in which is another. The first
   * request is granted ten calls, so that the key has credit; others are granted nothing.
   */
  busy(until: number, trip = 0): this {
    const every = Math.max(10, trip);
    this.#usual = 5 * (trip > 0 ? every / 2 : every);
    while (this.now < until) {
      const sent = this.usual();
      this.now += trip / 2;
      if (trip > 0) this.usual();
      this.now += trip / 2;
      const isFirst = this.tallies.grantedHits.value === 0 && (sent.lease?.wants ?? 0) > 0;
      if (sent.lease !== undefined) this.answer(sent, 0, isFirst ? 10 * this.#usual : 0);
      this.now += every - trip;
    }
    this.taken();
    for (const tally of Object.values(this.tallies)) tally.add(-tally.value);
    return this;
  }

  /** One more of these calls. */
  usual(): Operation {
    return this.call(this.#usual);
  }

  /** The hits that are sent by themselves: 0 asks for more, negative ones are given back. */
  sent(): readonly number[] {
    return this.taken().map(({ hits }) => hits);
  }

  /** Operations that are sent by themselves, since it was called last. */
  taken(): readonly Operation[] {
    return this.#sent.splice(0);
  }

  maintain(at: number): this {
    this.now = at;
    this.#maintain();
    return this;
  }
}

/** Compares a number that is nearly reached, and rounded down. */
function nearly(most: number): unknown {
  return { asymmetricMatch: (value: number) => value <= most && value >= most - 1, toString: () => `nearly ${most}` };
}

describe('a key of 5 hits a millisecond', () => {
  it.each<[what: string, played: Leasing, wants: number]>([
    ['what is used in 100 ms', new Leasing().busy(2_000), 500],
    ['what is used in four trips, if these take longer', new Leasing().busy(5_000, 50), 1_000],
    ['what is used in the rest of its window', new Leasing().busy(9_950), 250],
    ['the same less a trip', new Leasing().busy(9_900, 50), 250],
    ['what is used in the rest of a sliding window', new Leasing(sliding()).busy(9_950), 245],
    ['the same of a bucket in any window', new Leasing(bucket()).busy(9_950), 500],
  ])('asks for %s', (_, played, wants) => {
    expect(played.usual().lease!.wants).toEqual(nearly(wants));
  });

  it('averages trips over eight of them', () => {
    const played = new Leasing().busy(2_000);
    const sent = played.call(1_200);
    played.now += 240;
    played.answer(sent, 0);
    expect(played.call(1_200).lease!.wants).toEqual(nearly(5 * 4 * 30));
  });

  it('asks while what would be granted is enough for a call, and no longer', () => {
    for (const limit of [LIMIT, sliding(), bucket()]) {
      // A sixteenth of what is left after the call that asks, which has 50 hits.
      const wants = [17 * 50, 17 * 50 - 1].map((left) => {
        const played = new Leasing(limit).busy(2_000);
        played.answer(played.usual(), 1_000_000 - left);
        return played.usual().lease!.wants > 0;
      });
      expect(wants).toEqual([true, false]);
    }
  });

  it.each([
    ['60 % of what was granted', 0, 400, 240],
    ['60 ms, if that is less', 0, 600, 300],
    ['a trip and a half, and one hit', 50, 600, 376],
  ])('asks for more when less is left than %s', (_, trip, granted, least) => {
    const played = new Leasing().busy(5_000, trip);
    played.answer(played.usual(), 0, granted);
    played.taken();
    // The grant has come without a trip, which is an eighth of the average.
    const expected = trip === 0 ? least : Math.ceil(5 * 1.5 * trip * (7 / 8)) + 1;
    expect(played.decides(granted - expected)).toBe(true);
    expect([played.held, played.sent()]).toEqual([expected, []]);
    expect([played.decides(1), played.sent()]).toEqual([true, [0]]);
  });

  it.each([
    ['250 ms', 0, 250, 250],
    ['eight trips, if these take longer', 50, 400, 401],
  ])('uses what was granted for %s, of which the store reserves a quarter more', (_, trip, longest, after) => {
    const played = new Leasing().busy(5_000, trip);
    const sent = played.usual();
    expect(sent.lease!.milliseconds).toBeCloseTo(longest * 1.25, 1);
    const asked = played.now;
    played.now += trip;
    played.answer(sent, 1, 600);
    const decided = [longest - 1, after].map((passed) => {
      played.now = asked + passed;
      return played.decides(1);
    });
    expect([decided, played.held, played.sent().filter((hits) => hits < 0)]).toEqual([[true, false], 0, [-599]]);
  });

  it.each([
    ['50 ms', 0, 50],
    ['four trips, if these take longer', 50, 200],
  ])(
    'is given back after %s without a call, and forgotten after a quarter of a second or four times as long',
    (_, trip, rest) => {
      const played = new Leasing().busy(5_000, trip);
      const sent = played.call(1);
      const used = played.now;
      played.now += trip;
      played.answer(sent, 1, 600);
      expect(played.maintain(used + rest - 1).sent()).toEqual([]);
      expect(played.maintain(used + rest).sent()).toEqual([-600]);
      const forgotten = used + Math.max(250, 4 * rest);
      expect([played.maintain(forgotten - 1).leases.size, played.maintain(forgotten).leases.size]).toEqual([1, 0]);
    },
  );

  it('takes all that it holds, first what ends first, and nothing of what has ended', () => {
    const played = new Leasing().busy(2_000);
    played.answer(played.usual(), 0, 300);
    expect([played.decides(150), played.held]).toEqual([true, 150]);
    played.now += 10;
    const [more] = played.taken() as [Operation];
    played.leases.prepare([more]);
    played.answer(more, 300, 400);
    // The first ones end at that time.
    played.now += 240;
    expect([played.decides(400), played.held]).toEqual([true, 150]);
    expect([played.maintain(played.now).held, played.sent().filter((hits) => hits < 0)]).toEqual([0, [-150]]);
    const { grantedHits, usedHits, returnedHits, savedCalls } = played.tallies;
    expect([grantedHits, usedHits, returnedHits, savedCalls].map(({ value }) => value)).toEqual([700, 550, 150, 2]);
  });

  it.each([
    ['its window', LIMIT, 10_000],
    // The store may have counted at once, and answered late; and its millisecond may be nearly over.
    ['the sliding window of the store', sliding(), 9_995],
  ])('neither uses nor gives back what is left when %s has ended', (_, limit, end) => {
    const played = new Leasing(limit).busy(9_980);
    const sent = played.usual();
    played.now += 4;
    played.answer(sent, 0, 50);
    const decided = [end - 1, end].map((at) => {
      played.now = at;
      return played.decides(1);
    });
    expect([decided, played.held, played.sent().filter((hits) => hits < 0)]).toEqual([[true, false], 0, []]);
    expect(played.tallies.unusedHits.value).toBe(49);
  });

  it.each([
    ['anywhere in its fixed window', LIMIT, undefined],
    ['only to the sliding window in which it was taken', sliding(), START / 10_000],
    ['only to a bucket in the time for which it was taken', bucket(), (START + 2_000) * 1_000 + 312_500],
  ])('is given back %s, also when the answer comes later', (_, limit, window) => {
    const played = new Leasing(limit).busy(2_000);
    const { leases } = played;
    const { key } = played.operation(0);
    played.answer(played.usual(), 0, 300);
    const late = played.operation(1);
    leases.prepare([late]);
    leases.giveBack([key]);
    played.answer(late, 300, 200);
    const returns = played.taken().map(({ hits, onlyInWindow }) => [hits, onlyInWindow]);
    expect(returns).toEqual([
      [-300, window],
      [-200, window],
    ]);
  });

  it('counts a call with more hits than it holds in the store, as a whole', () => {
    const played = new Leasing().busy(2_000);
    played.answer(played.usual(), 0, 300);
    const call = played.call(301);
    expect([call.hits, call.countAfter, played.held, played.sent()]).toEqual([301, -1, 0, [-300]]);
    expect(played.tallies.usedHits.value).toBe(0);
  });

  it('takes nothing for a call with another limit, which begins its own lease, and gives back what the answer brings', () => {
    const played = new Leasing().busy(2_000);
    const other = leasedLimit(500_000, 10);
    const { leases } = played;
    const sent = played.usual();
    const late = played.operation(50, other);
    leases.prepare([late]);
    expect([late.lease, leases.decide([late], undefined).length]).toEqual([undefined, 1]);
    leases.prepare([late]);
    expect(late.lease?.wants).toBeGreaterThan(0);
    played.answer(sent, 0, 300);
    expect([played.held, played.sent()]).toEqual([0, [-300]]);
  });

  it('shows operators a counter without what is held of it', () => {
    const played = new Leasing().busy(2_000);
    const { leases } = played;
    expect(leases.without(700, played.operation(0))).toBe(700);
    played.answer(played.usual(), 0, 600);
    expect([5, 700, 9_000_000].map((stored) => leases.without(stored, played.operation(0)))).toEqual([0, 100, 999_400]);
    const [limit, now] = [bucket(), START * 1000];
    const { algorithm } = limit;
    const filled = new Leasing(limit).busy(2_000);
    filled.answer(filled.usual(), 0, 600);
    const stored = algorithm!.decide(algorithm!.empty(now), 700).state;
    expect(filled.leases.without(stored, filled.operation(0))).toEqual(
      algorithm!.decide(algorithm!.empty(now), 100).state,
    );
  });

  it.each([
    ['60 ms', 0, 60],
    ['four trips, if these take longer', 50, 200],
  ])('lets calls wait for what was asked for, for %s', (_, trip, wait) => {
    const played = new Leasing().busy(5_000, trip);
    const { leases } = played;
    const asked = played.usual();
    const waited: unknown[] = [];
    played.now += wait - 1;
    leases.queueFor([played.operation(0), played.operation(1)])!.push((error) => waited.push(error));
    expect(leases.queueFor([played.operation(0), played.operation(1, leasedLimit(7, 10))])).toBeUndefined();
    played.now += 1;
    expect(leases.queueFor([played.operation(1)])).toBeUndefined();
    expect(waited).toEqual([]);
    const failure = new DecisionError('store_failed', 'down');
    leases.answered([asked], failure);
    expect(waited).toEqual([failure]);
    leases.answered([played.usual()], [0]);
    expect(leases.queueFor([played.operation(1)])).toBeUndefined();
  });
});

it.each([
  ['it was not called for 200 ms', 1, [100, 199, 200]],
  ['less than 15 commands a second are left of its rate', 15, [350, 360, 370, 380, 390]],
])('a key that is not called any more is forgotten when %s', (_, calls, times) => {
  const played = new Leasing();
  expect(played.leases.isIdle).toBe(true);
  for (let call = 0; call < calls; call += 1, played.now += 10) played.call(2);
  expect(times.map((at) => played.maintain(at).leases.isIdle)).toEqual(times.map((at) => at === times.at(-1)));
});

it.each([
  ['250 ms', 2_000, undefined, 250],
  ['the rest of its window', 9_900, undefined, 100],
  ['20 ms in a sliding window', 2_000, sliding(), 20],
  ['20 ms in a bucket', 2_000, bucket(), 20],
])('a key that is over its limit denies calls for %s', (_, until, limit, milliseconds) => {
  const played = new Leasing(limit).busy(until);
  const { now } = played;
  played.answer(played.call(1), 1_000_000);
  const denied = [milliseconds - 1, milliseconds].map((passed) => {
    played.now = now + passed;
    return played.call(900_000).isKnownOver;
  });
  expect(denied).toEqual([true, false]);
});

it.each([undefined, sliding(), bucket()])('a key with one hit left is not over its limit', (limit) => {
  const played = new Leasing(limit).busy(2_000);
  played.answer(played.call(1), 999_999);
  expect(played.decides(2)).toBe(false);
});

it('at most 16,384 keys have a lease, and of as many is the rate known', () => {
  const played = new Leasing();
  /** 100 times a second. */
  function areCalled(...keys: readonly string[]): void {
    for (let round = 0; round < 15; round += 1, played.now += 10) {
      const operations = keys.map((key) => new Operation(LIMIT, `d_k_${key}_${START / 1000}`, 500));
      played.leases.prepare(operations);
      for (const { lease } of operations) if (lease !== undefined && lease.wants > 0) lease.granted = 500;
      played.leases.answered(operations, new Array<number>(keys.length).fill(500));
    }
  }
  const keys = Array.from({ length: 16_384 }, (_, index) => String(index));
  areCalled(...keys, 'more');
  expect(played.leases.size).toBe(16_384);
  // Rates are forgotten sooner than leases of which something is held.
  for (const at of [1_000, 2_000, 2_025]) played.maintain(at);
  areCalled('more');
  expect(played.leases.size).toBe(16_384);
  played.leases.giveBackAll();
  areCalled('more');
  expect(played.leases.size).toBe(1);
});

it('a rate that has moved to the key of the next window is not that of the old one', () => {
  const rates = new RateEstimator();
  const rate = rates.of(new Operation(LIMIT, 'old', 2), 0)!;
  rates.move(rate, 'old', 'next');
  const found = ['old', 'next'].map((key) => rates.of(new Operation(LIMIT, key, 1), 0));
  expect(found).toEqual([undefined, rate]);
});

it('of many leases, 1,024 are maintained at a time, and the others next', () => {
  const played = new Leasing();
  const operations = Array.from({ length: 1_500 }, (_, key) => new Operation(LIMIT, `${key}_${START / 1000}`, 2));
  for (let call = 0; call < 20; call += 1, played.now += 10) {
    played.leases.prepare(operations);
    for (const each of operations) if (each.lease !== undefined) played.answer(each, 0);
  }
  const before = played.leases.size;
  played.now += 10_000;
  // The first time ends what was left of a turn.
  const sizes = [1, 2, 3].map(() => {
    return played.maintain(played.now).leases.size;
  });
  expect([before, sizes.at(-1)]).toEqual([1_500, 0]);
  expect(sizes[0]).toBeGreaterThanOrEqual(1_500 - 1_024);
});

it('keys of up to 512 characters have a lease', () => {
  const sizes = [512, 513].map((length) => {
    const played = new Leasing();
    const key = `${START / 1000}`.padStart(length, '_');
    for (let call = 0; call < 20; call += 1, played.now += 10) played.leases.prepare([new Operation(LIMIT, key, 1)]);
    return played.leases.size;
  });
  expect(sizes).toEqual([1, 0]);
});

it('a key has a lease from 30 calls a second on, however many hits they have', () => {
  for (const hits of [1, 500]) {
    const wants = [31, 29].map((callsASecond) => {
      const played = new Leasing(bucket());
      for (let call = 0; call < 100; call += 1) {
        played.answer(played.call(hits), 0);
        played.now += 1_000 / callsASecond;
      }
      return played.call(hits).lease?.wants;
    });
    expect(wants).toEqual([hits === 1 ? 3 : 2 * hits, undefined]);
  }
});

it('a call that was to bring hits, and fails, leaves its key to the next one', () => {
  const played = new Leasing().busy(2_000);
  const sent = played.usual();
  expect(played.usual().lease!.wants).toBe(0);
  played.leases.answered([sent], new DecisionError('store_failed', 'down'));
  expect(played.call(1).lease!.wants).toBeGreaterThan(400);
});

it.each([
  ['its counter', undefined, undefined],
  ['its window', sliding(), START / 10_000],
  ['its time', bucket(), (START + 2_312.5) * 1000],
])('a grant whose lease is over when it arrives is given back, in %s', (_, limit, window) => {
  const played = new Leasing(limit).busy(2_000);
  const sent = played.usual();
  played.leases.giveBack([sent.key]);
  expect(played.sent()).toEqual([]);
  played.answer(sent, 0, 300);
  const [returned] = played.taken() as [Operation];
  expect([returned.hits, returned.onlyInWindow, played.held]).toEqual([-300, window, 0]);
  // One without hits is not.
  sent.outcome = undefined;
  played.answer(sent, 0);
  expect(played.sent()).toEqual([]);
});

function sliding(): Limit {
  return leasedLimit(1_000_000, 10, { algorithm: 'sliding_window' });
}

/** Into which few tokens flow during a test. */
function bucket(): Limit {
  return leasedLimit(1_000, 10, { algorithm: 'token_bucket', burst: 1_000_000 });
}
