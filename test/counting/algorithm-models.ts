import type { AlgorithmLimit, Outcome, Purpose } from '../../src/counting/algorithms/algorithm';
import { algorithmOf } from '../../src/counting/limit';
import fc from '../support/data/properties';

type Shown = Omit<Outcome, 'state'>;

/** An outcome without the state, which models do not have. */
export function shown({ isAllowed, used, remaining, secondsUntilReset, retryAfterSeconds }: Outcome): Shown {
  return { isAllowed, used, remaining, secondsUntilReset, retryAfterSeconds };
}

/** One limit with an algorithm on one key, in whole numbers of any size: times are in Unix microseconds. */
interface Model {
  decide(hits: bigint, now: bigint, purpose?: Purpose): Shown;
}

export function modelOf(limit: AlgorithmLimit): Model {
  if (limit.name === 'fixed_window') return new FixedModel(limit);
  return limit.name === 'token_bucket' ? new BucketModel(limit) : new WindowsModel(limit);
}

/** Limits from 0 to 2^32 − 1, in windows from a second to a year. */
export function anyLimit(name: AlgorithmLimit['name']): fc.Arbitrary<AlgorithmLimit> {
  return fc
    .record({
      requestsPerUnit: fc.oneof(
        fc.integer({ min: 0, max: 12 }),
        fc.integer({ min: 1, max: 2 ** 32 - 1 }),
        fc.constantFrom(100, 1000, 7_000, 3_000_000, 2 ** 32 - 1),
      ),
      lengthSeconds: fc.constantFrom(1, 60, 300, 3600, 86_400, 31_536_000),
      share: fc.constantFrom(0.001, 0.1, 0.5, 0.9, 1, 1.01, 1.5, 3),
    })
    .map(({ requestsPerUnit, lengthSeconds, share }) => {
      const most = Math.floor((3_153_600_000 / lengthSeconds) * requestsPerUnit);
      const burst = Math.max(1, Math.min(2 ** 32 - 1, most, Math.ceil(requestsPerUnit * share)));
      const hasBurst = name === 'token_bucket' && requestsPerUnit > 0;
      return { name, requestsPerUnit, lengthSeconds, burst: hasBurst ? burst : undefined };
    });
}

/** A pause in windows, and the calls that follow at once. */
export const anyStep = fc.record({
  pause: fc.oneof(fc.constantFrom(0, 1, 0.5, 1.5, 2, 3), fc.double({ min: 0, max: 0.2, noNaN: true })),
  calls: fc.array(
    fc.oneof(
      fc.record({ of: fc.constantFrom(0.01, 0.3, 0.5, 0.9, 1), sign: fc.constantFrom(1, 1, 1, -1) }),
      fc.constantFrom(...[1, 1, 2, 0, -1, 2 ** 53 - 1, 1 - 2 ** 53].map((hits) => ({ hits }))),
    ),
    { minLength: 1, maxLength: 6 },
  ),
});

type StepOf<T> = T extends fc.Arbitrary<infer Step> ? Step : never;

/** The hits of the calls of a step: as they are, or parts of what the limit allows. */
export function hitsOf({ calls }: StepOf<typeof anyStep>, limit: AlgorithmLimit): readonly number[] {
  const { capacity } = algorithmOf(limit);
  return calls.map((call) => ('hits' in call ? call.hits : call.sign * Math.ceil(call.of * capacity)));
}

/** Unix milliseconds. */
export const anyStart = fc.integer({ min: 0, max: 1000 }).map((step) => 1_764_000_000_000 + step * 977);

const SECOND = 1_000_000n;
const MOST_IN_WINDOW = 2n ** 32n - 1n;

function ceil(numerator: bigint, denominator: bigint): bigint {
  return -floor(-numerator, denominator);
}

function floor(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  return numerator % denominator < 0n ? quotient - 1n : quotient;
}

function atLeast(least: bigint, value: bigint): bigint {
  return value > least ? value : least;
}

/** One window, whose end the caller knows. */
class FixedModel implements Model {
  readonly #limit: bigint;
  #used = 0n;

  constructor({ requestsPerUnit }: AlgorithmLimit) {
    this.#limit = BigInt(requestsPerUnit);
  }

  decide(hits: bigint, _now: bigint, purpose?: Purpose): Shown {
    const fits = hits <= 0n || this.#used + hits <= this.#limit;
    const isAllowed = purpose === undefined ? fits : this.#used < this.#limit;
    if (isAllowed || purpose === 'report') this.#used = atLeast(0n, this.#used + hits);
    const remaining = Number(atLeast(0n, this.#limit - this.#used));
    return { isAllowed, used: Number(this.#used), remaining, secondsUntilReset: 0, retryAfterSeconds: 0 };
  }
}

/** Tokens are counted in parts: as many as flow in a microsecond times the length of the window. */
class BucketModel implements Model {
  readonly #limit: AlgorithmLimit;
  readonly #window: bigint;
  readonly #rate: bigint;
  readonly #capacity: bigint;
  /** The most that reports make of what is missing. */
  readonly #ceiling: bigint;
  /** Of tokens, times the microseconds of the window. */
  #missing = 0n;
  #at = 0n;

  constructor(limit: AlgorithmLimit) {
    this.#limit = limit;
    this.#window = BigInt(limit.lengthSeconds) * SECOND;
    this.#rate = BigInt(limit.requestsPerUnit);
    this.#capacity = this.#rate === 0n ? 0n : BigInt(limit.burst ?? limit.requestsPerUnit);
    const longest = limit.postpaid === true ? BigInt(Math.max(86_400, limit.lengthSeconds)) * SECOND : 0n;
    this.#ceiling = this.#capacity * this.#window + longest * this.#rate;
  }

  decide(hits: bigint, now: bigint, purpose?: Purpose): Shown {
    this.#missing = atLeast(0n, this.#missing - (now - this.#at) * this.#rate);
    this.#at = now;
    const full = this.#capacity * this.#window;
    const after = atLeast(0n, this.#missing + hits * this.#window);
    const isAllowed = purpose === undefined ? hits <= 0n || after <= full : this.#missing + this.#window <= full;
    let reset: bigint;
    if (purpose !== undefined) {
      this.#missing = after < this.#ceiling ? after : this.#ceiling;
      reset = isAllowed
        ? this.#secondsTo(this.#missing)
        : atLeast(1n, this.#secondsTo(this.#missing + this.#window - full));
    } else if (isAllowed) reset = this.#secondsTo((this.#missing = after));
    else if (hits <= this.#capacity) reset = atLeast(1n, this.#secondsTo(after - this.#capacity * this.#window));
    else reset = this.#rate === 0n ? BigInt(this.#limit.lengthSeconds) : atLeast(1n, this.#secondsTo(this.#missing));
    const free = floor(full - this.#missing, this.#window);
    const remaining = atLeast(0n, free);
    const untilOne = this.#missing + this.#window - full;
    const closed = this.#rate === 0n || untilOne <= 0n ? 0n : untilOne / this.#rate / SECOND;
    return {
      isAllowed,
      used: Number(this.#capacity - free),
      remaining: Number(remaining),
      secondsUntilReset: Number(reset),
      retryAfterSeconds: Number(closed),
    };
  }

  #secondsTo(missing: bigint): bigint {
    // Without a rate, nothing ever flows back: the length of the window stands for that.
    return missing === 0n ? 0n : ceil(missing, atLeast(1n, this.#rate) * SECOND);
  }
}

/** As long as a product of hits and milliseconds is below 2^53, no rounding shows in the numbers of weir. */
class WindowsModel implements Model {
  readonly #window: bigint;
  readonly #limit: bigint;
  readonly #hits = new Map<bigint, bigint>();

  constructor({ lengthSeconds, requestsPerUnit }: AlgorithmLimit) {
    this.#window = BigInt(lengthSeconds) * 1000n;
    this.#limit = BigInt(requestsPerUnit);
  }

  decide(hits: bigint, now: bigint, purpose?: Purpose): Shown {
    const clock = now / 1000n;
    const number = clock / this.#window;
    const fits = hits <= 0n || this.#used(clock) + hits <= this.#limit;
    const isAllowed = purpose === undefined ? fits : this.#used(clock) < this.#limit;
    const sum = this.#of(number) + hits;
    if (hits >= 0n && (isAllowed || purpose === 'report'))
      this.#set(number, sum < MOST_IN_WINDOW ? sum : MOST_IN_WINDOW);
    if (hits < 0n) {
      const left = this.#of(number) + hits;
      this.#set(number, atLeast(0n, left));
      if (left < 0n) this.#set(number - 1n, atLeast(0n, this.#of(number - 1n) + left));
    }
    const used = this.#used(clock);
    return {
      isAllowed,
      used: Number(used),
      remaining: Number(atLeast(0n, this.#limit - used)),
      secondsUntilReset: Number(
        isAllowed
          ? ceil(this.#firstEmpty(clock) - clock, 1000n)
          : atLeast(1n, ceil(this.#firstFit(purpose === undefined ? hits : 1n, clock) - clock, 1000n)),
      ),
      retryAfterSeconds: used < this.#limit ? 0 : Number((this.#firstFit(1n, clock) - clock) / 1000n),
    };
  }

  #of(number: bigint): bigint {
    return this.#hits.get(number) ?? 0n;
  }

  #set(number: bigint, hits: bigint): void {
    this.#hits.set(number, hits);
  }

  #used(clock: bigint): bigint {
    const number = clock / this.#window;
    const left = this.#window - (clock % this.#window);
    return ceil(this.#of(number - 1n) * left, this.#window) + this.#of(number);
  }

  /** Nothing that counts is gone before the end of a window. */
  #firstEmpty(from: bigint): bigint {
    const number = from / this.#window;
    return [from, (number + 1n) * this.#window, (number + 2n) * this.#window].find((each) => this.#used(each) === 0n)!;
  }

  /** By search: what counts only falls as time passes within a window, and not at its end. */
  #firstFit(hits: bigint, from: bigint): bigint {
    const number = from / this.#window;
    if (hits > this.#limit)
      return atLeast(this.#limit === 0n ? (number + 1n) * this.#window : 0n, this.#firstEmpty(from));
    for (const last of [(number + 1n) * this.#window - 1n, (number + 2n) * this.#window - 1n]) {
      if (this.#used(last) + hits > this.#limit) continue;
      let [low, high] = [atLeast(from, last - this.#window + 1n), last];
      while (low < high) {
        const middle = (low + high) / 2n;
        if (this.#used(middle) + hits <= this.#limit) high = middle;
        else low = middle + 1n;
      }
      return low;
    }
    return (number + 2n) * this.#window;
  }
}
