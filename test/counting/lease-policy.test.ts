import { DecisionError } from '../../src/counting/decision-error';
import { RateEstimator } from '../../src/counting/rate-estimator';
import { Leases } from '../../src/counting/leases';
import type { Limit } from '../../src/counting/limit';
import { Operation } from '../../src/counting/operation';
import { Counter } from '../../src/statistics/counter';
import { leasedLimit } from './lease-bounds';

// What leases hold in memory, and that no grant is lost. How much is leased, and what that costs: lease-trips.test.ts.

/** The start of a window of 10 seconds. */
const START = 1_700_000_000_000;
const LIMIT = leasedLimit(1_000_000, 10);

/** The leases of one key at a time that a test sets, and a store whose answers it gives. */
class Leasing {
  /** Milliseconds of the window of 10 seconds that have passed. */
  now = 0;
  readonly #granted = new Counter('granted');
  /** Hits that were held when their window ended. */
  readonly unused = new Counter('unused');
  readonly leases: Leases;
  readonly #key: string;
  readonly #sent: Operation[] = [];
  #maintain = (): void => undefined;

  constructor(readonly limit: Limit = LIMIT) {
    const { algorithm } = limit;
    this.#key = algorithm === undefined ? `d_k_v_${START / 1000}` : `{_d_k_v_}${algorithm.name}_10`;
    const others = new Counter('others');
    const tallies = { usedHits: others, returnedHits: others, unusedHits: this.unused, savedCalls: others };
    this.leases = new Leases({
      ...{ isAuto: true, now: () => this.now, wallClock: () => START + this.now },
      ...{ ...tallies, grantedHits: this.#granted },
    });
    this.leases.connect({
      send: (operations) => this.#sent.push(...operations),
      later: (maintain) => (this.#maintain = maintain),
    });
  }

  get held(): number {
    return this.leases.heldOf(this.#key);
  }

  /** A call, which is sent unless it is decided here. */
  call(hits: number): Operation {
    const operation = new Operation(this.limit, this.#key, hits);
    if (this.leases.decide([operation], undefined).length > 0) this.leases.prepare([operation]);
    return operation;
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
   * Calls of 50 hits each 10 ms until a time. The first request is granted ten calls, so that the key has credit;
   * others are granted nothing.
   */
  busy(until = 2_000): this {
    for (; this.now < until; this.now += 10) {
      const sent = this.call(50);
      const isFirst = this.#granted.value === 0 && (sent.lease?.wants ?? 0) > 0;
      if (sent.lease !== undefined) this.answer(sent, 0, isFirst ? 500 : 0);
    }
    this.taken();
    return this;
  }

  /** Operations that are sent by themselves, since it was called last: 0 hits ask for more, negative ones return. */
  taken(): readonly Operation[] {
    return this.#sent.splice(0);
  }

  maintain(at: number): this {
    this.now = at;
    this.#maintain();
    return this;
  }
}

it.each([undefined, sliding(), bucket()])('a key with one hit left is not over its limit', (limit) => {
  const played = new Leasing(limit).busy();
  played.answer(played.call(1), 999_999);
  expect(played.call(2)).toMatchObject({ isKnownOver: false, countAfter: -1, outcome: undefined });
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
  const sizes = [1, 2, 3].map(() => played.maintain(played.now).leases.size);
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

it('a call that was to bring hits, and fails, leaves its key to the next one', () => {
  const played = new Leasing().busy();
  const sent = played.call(50);
  expect(played.call(50).lease!.wants).toBe(0);
  played.leases.answered([sent], new DecisionError('store_failed', 'down'));
  expect(played.call(1).lease!.wants).toBeGreaterThan(400);
});

it('a call takes all that is held, first what ends first, and nothing of what has ended', () => {
  const played = new Leasing().busy();
  played.answer(played.call(50), 0, 300);
  played.call(150);
  expect(played.held).toBe(150);
  played.now += 10;
  const [more] = played.taken() as [Operation];
  played.leases.prepare([more]);
  played.answer(more, 300, 400);
  // The first ones end at that time.
  played.now += 240;
  played.call(400);
  expect(played.held).toBe(150);
  expect([played.maintain(played.now).held, played.taken().filter(({ hits }) => hits < 0)]).toMatchObject([
    0,
    [{ hits: -150 }],
  ]);
});

it.each([
  ['its window', LIMIT, 10_000],
  // The store may have counted at once, and answered late; and its millisecond may be nearly over.
  ['the sliding window of the store', sliding(), 9_995],
])('what is left when %s has ended is neither used nor given back', (_, limit, end) => {
  const played = new Leasing(limit).busy(9_980);
  const sent = played.call(50);
  played.now += 4;
  played.answer(sent, 0, 50);
  const decided = [end - 1, end].map((at) => {
    played.now = at;
    const { countAfter, outcome } = played.call(1);
    return countAfter >= 0 || outcome !== undefined;
  });
  expect([decided, played.held, played.taken().filter(({ hits }) => hits < 0)]).toEqual([[true, false], 0, []]);
  expect(played.unused.value).toBe(49);
});

it.each([
  ['anywhere in its fixed window', LIMIT, undefined],
  ['only to the sliding window in which it was taken', sliding(), START / 10_000],
  ['only to a bucket in the time for which it was taken', bucket(), (START + 2_000) * 1_000 + 312_500],
])('what is held is given back %s, also when the answer comes later', (_, limit, window) => {
  const played = new Leasing(limit).busy();
  const asked = played.call(50);
  played.answer(asked, 0, 300);
  const late = new Operation(limit, asked.key, 1);
  played.leases.prepare([late]);
  played.leases.giveBack([asked.key]);
  played.answer(late, 300, 200);
  expect(played.taken().map(({ hits, onlyInWindow }) => [hits, onlyInWindow])).toEqual([
    [-300, window],
    [-200, window],
  ]);
});

it.each([
  ['its counter', undefined, undefined],
  ['its window', sliding(), START / 10_000],
  ['its time', bucket(), (START + 2_312.5) * 1000],
])('a grant whose lease is over when it arrives is given back, in %s', (_, limit, window) => {
  const played = new Leasing(limit).busy();
  const sent = played.call(50);
  played.leases.giveBack([sent.key]);
  expect(played.taken()).toEqual([]);
  played.answer(sent, 0, 300);
  const [returned] = played.taken() as [Operation];
  expect([returned.hits, returned.onlyInWindow, played.held]).toEqual([-300, window, 0]);
  // One without hits is not.
  sent.outcome = undefined;
  played.answer(sent, 0);
  expect(played.taken()).toEqual([]);
});

function sliding(): Limit {
  return leasedLimit(1_000_000, 10, { algorithm: 'sliding_window' });
}

/** Into which few tokens flow during a test. */
function bucket(): Limit {
  return leasedLimit(1_000, 10, { algorithm: 'token_bucket', burst: 1_000_000 });
}
