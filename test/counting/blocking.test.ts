import type { AlgorithmLimit, Block, BlockableState, CountedState } from '../../src/counting/algorithms/algorithm';
import { Batch } from '../../src/counting/batch';
import { ExpiringCounts, TimedCounts } from '../../src/counting/counts';
import { algorithmOf } from '../../src/counting/limit';
import type { Operation } from '../../src/counting/operation';
import { run, simulate } from '../../src/counting/simulate';
import { ALGORITHMS } from '../../src/rules/rule-config';
import type { BlockConfig } from '../../src/rules/unit';
import { allOrNothingGroup, grouped, operation } from '../support/data/operations';
import { TestCall } from '../support/data/calls';
import fc from '../support/data/properties';
import { modelOf } from './algorithm-models';

/** Unix milliseconds. */
const START = 1_764_000_000_000;
const SECOND = 1_000_000n;

/** Blocks by their definition, in whole numbers of any size: all that it knows are calls, and times that are denied. */
class BlocksModel {
  readonly #blocks: { readonly from: bigint; readonly to: bigint }[] = [];
  readonly #limit: AlgorithmLimit;
  readonly #blockFor: BlockConfig;
  #counter;

  constructor(limit: AlgorithmLimit, blockFor: BlockConfig) {
    this.#limit = limit;
    this.#blockFor = blockFor;
    this.#counter = modelOf(limit);
  }

  /** Whether a call passes, and in a block how long that lasts. */
  decide(hits: number, now: bigint): string {
    const last = this.#blocks.at(-1);
    if (last !== undefined && now < last.to) return decided(hits < 0, this.#left(last.to, now));
    const { isAllowed } = this.#counter.decide(BigInt(hits), now);
    if (isAllowed) return decided(true);
    const { first, factor, most, forgottenAfter } = this.#blockFor;
    const isKnown = last !== undefined && now < last.to + BigInt(forgottenAfter) * SECOND;
    const longer = isKnown ? (last.to - last.from) * BigInt(factor) : BigInt(first) * SECOND;
    const longest = BigInt(most) * SECOND;
    const to = now + (longer < longest ? longer : longest);
    this.#blocks.push({ from: now, to });
    this.#counter = modelOf(this.#limit);
    return decided(false, this.#left(to, now));
  }

  #left(to: bigint, now: bigint): number {
    return Number((to - now + SECOND - 1n) / SECOND);
  }
}

/** `ok`, or `denied 10` in a block of which 10 seconds are left. */
function decided(isAllowed: boolean, left?: number): string {
  return (isAllowed ? 'ok' : 'denied') + (left === undefined ? '' : ` ${left}`);
}

function table(): TimedCounts {
  return new TimedCounts(new ExpiringCounts({ maxKeys: 100 }));
}

function blocking(limit: AlgorithmLimit, hits: number, name = 'k', algorithm = algorithmOf(limit)): Operation {
  const { requestsPerUnit, lengthSeconds } = limit;
  const made = operation(name, hits, { limit: requestsPerUnit, lengthSeconds, algorithm });
  made.blockKey = `${name}_blocked`;
  return made;
}

function decisionOf({ outcome }: Operation): string {
  const { isAllowed, blockedUntil, secondsUntilReset } = outcome!;
  return decided(isAllowed, blockedUntil === undefined ? undefined : secondsUntilReset);
}

const TEN: BlockConfig = { first: 10, factor: 1, most: 10, forgottenAfter: 0 };
const GROWING: BlockConfig = { first: 10, factor: 2, most: 60, forgottenAfter: 100 };
const TWO = { name: 'fixed_window', requestsPerUnit: 2, lengthSeconds: 10, burst: undefined } as const;

const anyBlock = fc
  .record({ first: fc.integer({ min: 60, max: 100 }), factor: fc.integer({ min: 1, max: 10 }), more: fc.nat(500) })
  .map(({ first, factor, more }): BlockConfig => {
    return { first, factor, most: factor === 1 ? first : first + more, forgottenAfter: factor === 1 ? 0 : more };
  });
/** In milliseconds. */
const anyPause = fc.oneof(fc.constantFrom(0, 0, 1, 60_000, 59_999, 120_000), fc.nat(700_000));
const anyCalls = fc.array(fc.tuple(anyPause, fc.constantFrom(1, 1, 1, 2, 0, -1, 9)), { minLength: 5, maxLength: 60 });

describe.each(ALGORITHMS)('a limit that blocks, of the algorithm %s,', (name) => {
  const limit = { name, requestsPerUnit: 3, lengthSeconds: 60, burst: undefined };

  it('decides as the definition says, call by call and merged', () => {
    fc.assert(
      fc.property(anyBlock, anyCalls, (blockFor, calls) => {
        const [model, alone, together] = [new BlocksModel(limit, blockFor), table(), table()];
        let now = START;
        for (const [pause, hits] of calls) {
          now += pause;
          [alone.now, together.now] = [now, now];
          const expected = [0, 1, 2].map(() => model.decide(hits, BigInt(now) * 1000n));
          const single = expected.map(() => {
            const call = blocking({ ...limit, blockFor }, hits);
            simulate([call], alone);
            return decisionOf(call);
          });
          expect(single).toEqual(expected);
          const algorithm = algorithmOf({ ...limit, blockFor });
          const merged = expected.map(() => blocking({ ...limit, blockFor }, hits, 'k', algorithm));
          const batch = new Batch(merged.map((call) => new TestCall([call])));
          batch.settle(run(batch.operations, together));
          expect([batch.operations.length, merged.map(decisionOf)]).toEqual([1, expected]);
        }
      }),
      { numRuns: 150 },
    );
  });
});

describe('a block', () => {
  /** Plays calls of 1 hit, each after so many seconds: `ok`, or how many seconds are left of the block. */
  function play(blockFor: BlockConfig, pauses: readonly number[], counters = table()) {
    return pauses.map((pause) => {
      counters.now = (counters.now || START) + pause * 1000;
      const call = blocking({ ...TWO, blockFor }, 1);
      simulate([call], counters);
      return call.outcome!.isAllowed ? 'ok' : call.outcome!.secondsUntilReset;
    });
  }

  it('lasts from the first call over the limit, whatever comes, and begins again from an empty counter', () => {
    expect(play(TEN, [0, 0, 0, 4, 5.5, 0.5, 0, 0])).toEqual(['ok', 'ok', 10, 6, 1, 'ok', 'ok', 10]);
  });

  it('is longer than the one before it, up to a maximum, unless that is forgotten', () => {
    const growing = [0, 0, 0, 10, 0, 0, 20, 0, 0, 40, 0, 0, 160, 0, 0];
    const expected = ['ok', 'ok', 10, 'ok', 'ok', 20, 'ok', 'ok', 40, 'ok', 'ok', 60, 'ok', 'ok', 10];
    expect(play(GROWING, growing)).toEqual(expected);
    expect(play(GROWING, [0, 0, 0, 109, 0, 0])).toEqual(['ok', 'ok', 10, 'ok', 'ok', 20]);
  });

  it('lasts at most its length when the clock goes back', () => {
    const counters = table();
    expect(play(TEN, [0, 0, 0, -3600, 5, 5], counters)).toEqual(['ok', 'ok', 10, 10, 5, 'ok']);
  });

  it('does not begin for 0 hits or hits that are given back, which always pass', () => {
    const counters = table();
    counters.now = START;
    const calls = [2, 0, -5, 3, -9, 0].map((hits) => {
      const call = blocking({ ...TWO, blockFor: TEN }, hits);
      simulate([call], counters);
      return decisionOf(call);
    });
    expect(calls).toEqual(['ok', 'ok', 'ok', 'denied 10', 'ok 10', 'denied 10']);
  });

  it('of one of several limits that are decided together begins for each that denies, and keeps all from counting', () => {
    const counters = table();
    counters.now = START;
    function call() {
      const group = allOrNothingGroup();
      const pair = [
        blocking({ ...TWO, blockFor: TEN }, 1, 'a'),
        blocking({ ...TWO, requestsPerUnit: 3, blockFor: TEN }, 1, 'b'),
      ];
      simulate(grouped(group, ...pair), counters);
      return pair.map(({ outcome }) => (outcome!.isAllowed ? outcome!.used : 'denied')).join(' ');
    }
    expect([call(), call(), call(), call()]).toEqual(['1 1', '2 2', 'denied 2', 'denied 2']);
    counters.now += 10_000;
    expect([call(), call()]).toEqual(['1 3', '1 denied']);
  });

  it('takes a key of its own, and leaves none of the counter', () => {
    const counters = table();
    play(TEN, [0, 0], counters);
    expect(counters.counts.size).toBe(1);
    play(TEN, [0, 0], counters);
    expect(counters.counts.size).toBe(1);
    counters.counts.removeOutside(START + 10_000 * 4, START + 10_000 * 4);
    expect(counters.counts.size).toBe(0);
  });

  it('is possible in whole microseconds, from a time that is not to come, on a counter that is possible', () => {
    const { algorithm } = blocking({ ...TWO, blockFor: TEN }, 1).limit;
    const now = START * 1000;
    const empty = algorithm!.empty(now) as BlockableState;
    function isPossible(block: Partial<Block>, more: Partial<BlockableState> = {}): boolean {
      return algorithm!.isPossible({ ...empty, block: { end: now + 10, length: 10, ...block }, ...more });
    }
    expect([isPossible({}), isPossible({ end: 0 }), isPossible({ end: now + 11, length: 12 })]).toEqual([
      true,
      true,
      true,
    ]);
    expect(isPossible({ end: now + 11 })).toBe(false);
    expect([isPossible({ end: now + 0.5 }), isPossible({ length: 10.5 }), isPossible({ end: NaN })]).toEqual([
      false,
      false,
      false,
    ]);
    expect(isPossible({}, { counted: { ...empty.counted, previous: 0, current: 1.5 } as CountedState })).toBe(false);
  });

  it('ends by an operation of an operator', () => {
    const counters = table();
    play(TEN, [0, 0, 0], counters);
    const change = blocking({ ...TWO, blockFor: TEN }, 0);
    change.calls = [-5, 1];
    change.endsBlock = true;
    expect(run([change], counters)).toMatchObject([{ block: { length: 10_000_000 } }]);
    expect(play(TEN, [0, 0], counters)).toEqual(['ok', 10]);
  });
});
