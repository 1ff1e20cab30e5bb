import { DecisionError } from '../../src/counting/decision-error';
import { Demands } from '../../src/counting/demands';
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
    granted: new Counter('granted'),
    used: new Counter('used'),
    returned: new Counter('returned'),
    unused: new Counter('unused'),
    saved: new Counter('saved'),
  };
  readonly leases: Leases;
  readonly #key: string;
  #usual = 1;

  constructor(readonly limit: Limit = LIMIT) {
    const { algorithm } = limit;
    this.#key = algorithm === undefined ? `d_k_v_${START / 1000}` : `{_d_k_v_}${algorithm.name}_10`;
    this.leases = new Leases({ now: () => this.now, wallClock: () => START + this.now, ...this.tallies });
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
    if (this.leases.use([operation]).length > 0) this.leases.prepare([operation]);
    return operation;
  }

  /** Whether a call is decided here. */
  decides(hits: number): boolean {
    const { isKnownOver, after, outcome } = this.call(hits);
    return isKnownOver || after >= 0 || outcome !== undefined;
  }

  /** The store has counted so much, and grants so much. */
  answer(operation: Operation, stored: number, granted = 0): void {
    const { algorithm } = this.limit;
    if (algorithm !== undefined) {
      const empty = algorithm.empty((START + this.now) * 1000);
      operation.outcome = algorithm.decide(algorithm.decide(empty, stored).state, 0);
    }
    if (operation.lease !== undefined) operation.lease.granted = granted;
    this.leases.answered(operation, operation.outcome?.state ?? stored);
  }

  /** Calls of 5 hits a millisecond up to a time, of which each is answered after a trip, without a grant. */
  busy(until: number, trip = 0): this {
    const every = Math.max(10, trip);
    this.#usual = 5 * every;
    while (this.now < until) {
      const sent = this.usual();
      this.now += trip;
      this.answer(sent, 0);
      this.now += every - trip;
    }
    return this;
  }

  /** One more of these calls. */
  usual(): Operation {
    return this.call(this.#usual);
  }

  /** The hits that are sent by themselves: 0 asks for more, negative ones are given back. */
  sent(): readonly number[] {
    return this.leases.takeToSend().map(({ hits }) => hits);
  }

  tend(at: number): this {
    this.now = at;
    this.leases.tend();
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
    const sent = played.call(4_000);
    played.now += 800;
    played.answer(sent, 0);
    expect(played.call(4_000).lease!.wants).toEqual(nearly(5 * 4 * 100));
  });

  it('asks while two hits would be granted, and no longer', () => {
    for (const limit of [LIMIT, sliding(), bucket()]) {
      const wants = [32, 31].map((left) => {
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
    played.leases.takeToSend();
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
    expect(sent.lease!.milliseconds).toBeCloseTo(longest * 1.25);
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
      expect(played.tend(used + rest - 1).sent()).toEqual([]);
      expect(played.tend(used + rest).sent()).toEqual([-600]);
      const forgotten = used + Math.max(250, 4 * rest);
      expect([played.tend(forgotten - 1).leases.size, played.tend(forgotten).leases.size]).toEqual([1, 0]);
    },
  );

  it('takes all that it holds, first what ends first, and nothing of what has ended', () => {
    const played = new Leasing().busy(2_000);
    played.answer(played.usual(), 0, 300);
    expect([played.decides(150), played.held]).toEqual([true, 150]);
    played.now += 10;
    const [more] = played.leases.takeToSend() as [Operation];
    played.leases.prepare([more]);
    played.answer(more, 300, 400);
    // The first ones end at that time.
    played.now += 240;
    expect([played.decides(400), played.held]).toEqual([true, 150]);
    expect([played.tend(played.now).held, played.sent().filter((hits) => hits < 0)]).toEqual([0, [-150]]);
    const { granted, used, returned, saved } = played.tallies;
    expect([granted, used, returned, saved].map(({ value }) => value)).toEqual([700, 550, 150, 2]);
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
    expect(played.tallies.unused.value).toBe(49);
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
    leases.giveBack(key);
    played.answer(late, 300, 200);
    const returns = leases.takeToSend().map(({ hits, onlyInWindow }) => [hits, onlyInWindow]);
    expect(returns).toEqual([
      [-300, window],
      [-200, window],
    ]);
  });

  it('counts a call with more hits than it holds in the store, as a whole', () => {
    const played = new Leasing().busy(2_000);
    played.answer(played.usual(), 0, 300);
    const call = played.call(301);
    expect([call.hits, call.after, played.held, played.sent()]).toEqual([301, -1, 0, [-300]]);
    expect(played.tallies.used.value).toBe(0);
  });

  it('takes nothing for a call with another limit, which begins its own lease, and gives back what the answer brings', () => {
    const played = new Leasing().busy(2_000);
    const other = leasedLimit(500_000, 10);
    const { leases } = played;
    const sent = played.usual();
    const late = played.operation(50, other);
    leases.prepare([late]);
    expect([late.lease, leases.use([late]).length]).toEqual([undefined, 1]);
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
    expect(leases.takeToResume()).toEqual([]);
    const failure = new DecisionError('store_failed', 'down');
    leases.answered(asked, failure);
    for (const call of leases.takeToResume()) call();
    expect([waited, leases.takeToResume()]).toEqual([[failure], []]);
    leases.answered(played.usual(), 0);
    expect(leases.queueFor([played.operation(1)])).toBeUndefined();
  });
});

it.each([
  ['less than 10 hits a second are left of its demand', [100, 150, 160]],
  ['that is so, and it has been known for 100 ms', [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]],
])('a key that is not called any more is forgotten when %s', (_, times) => {
  const played = new Leasing();
  expect(played.leases.isIdle).toBe(true);
  played.call(2);
  expect(times.map((at) => played.tend(at).leases.isIdle)).toEqual(times.map((at) => at === times.at(-1)));
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

it('at most 16,384 keys have a lease, and of as many is the demand known', () => {
  const played = new Leasing();
  function isCalled(...keys: readonly string[]): void {
    played.leases.prepare(keys.map((key) => new Operation(LIMIT, `d_k_${key}_${START / 1000}`, 500)));
  }
  const keys = Array.from({ length: 16_384 }, (_, index) => String(index));
  isCalled(...keys, 'more');
  played.now = 10;
  isCalled('more', ...keys);
  expect(played.leases.size).toBe(16_384);
  // The demand of some is forgotten sooner than their leases.
  played.tend(130);
  isCalled('more');
  played.now = 140;
  isCalled('more');
  expect(played.leases.size).toBe(16_384);
  played.leases.giveBackAll();
  isCalled('more');
  expect(played.leases.size).toBe(1);
});

it('a demand that has moved to the key of the next window is not that of the old one', () => {
  const demands = new Demands();
  const demand = demands.of(new Operation(LIMIT, 'old', 2), 0)!;
  demands.move(demand, 'old', 'next');
  const found = ['old', 'next'].map((key) => demands.of(new Operation(LIMIT, key, 1), 0));
  expect(found).toEqual([undefined, demand]);
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

it('a key has a lease from 20 hits a second on', () => {
  const wants = [20, 19].map((hits) => {
    const played = new Leasing(bucket());
    for (let second = 0; second < 4; second += 1) {
      played.answer(played.call(hits), 0);
      played.now += 1_000;
    }
    return played.call(hits).lease?.wants;
  });
  expect(wants).toEqual([2, 0]);
});

it('a call that was to bring hits, and fails, leaves its key to the next one', () => {
  const played = new Leasing().busy(2_000);
  const sent = played.usual();
  expect(played.usual().lease!.wants).toBe(0);
  played.leases.answered(sent, new DecisionError('store_failed', 'down'));
  expect(played.call(1).lease!.wants).toBeGreaterThan(400);
});

it.each([
  ['its counter', undefined, undefined],
  ['its window', sliding(), START / 10_000],
  ['its time', bucket(), (START + 2_312.5) * 1000],
])('a grant whose lease is over when it arrives is given back, in %s', (_, limit, window) => {
  const played = new Leasing(limit).busy(2_000);
  const sent = played.usual();
  played.leases.giveBack(sent.key);
  expect(played.sent()).toEqual([]);
  played.answer(sent, 0, 300);
  const [returned] = played.leases.takeToSend() as [Operation];
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
