import type { AlgorithmLimit, Outcome } from '../../../src/counting/algorithms/algorithm';

type Shown = Omit<Outcome, 'state'>;

/** One limit with an algorithm on one key, in whole numbers of any size: times are in Unix microseconds. */
interface Model {
  decide(hits: bigint, now: bigint): Shown;
}

export function modelOf(limit: AlgorithmLimit): Model {
  return limit.name === 'token_bucket' ? new BucketModel(limit) : new WindowsModel(limit);
}

const SECOND = 1_000_000n;

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

/** Tokens are counted in parts: as many as flow in a microsecond times the length of the window. */
class BucketModel implements Model {
  readonly #limit: AlgorithmLimit;
  readonly #window: bigint;
  readonly #rate: bigint;
  readonly #capacity: bigint;
  /** Of tokens, times the microseconds of the window. */
  #missing = 0n;
  #at = 0n;

  constructor(limit: AlgorithmLimit) {
    this.#limit = limit;
    this.#window = BigInt(limit.windowSeconds) * SECOND;
    this.#rate = BigInt(limit.requestsPerUnit);
    this.#capacity = this.#rate === 0n ? 0n : BigInt(limit.burst ?? limit.requestsPerUnit);
  }

  decide(hits: bigint, now: bigint): Shown {
    this.#missing = atLeast(0n, this.#missing - (now - this.#at) * this.#rate);
    this.#at = now;
    const after = atLeast(0n, this.#missing + hits * this.#window);
    const isAllowed = hits <= 0n || after <= this.#capacity * this.#window;
    let reset: bigint;
    if (isAllowed) reset = this.#secondsTo((this.#missing = after));
    else if (hits <= this.#capacity) reset = atLeast(1n, this.#secondsTo(after - this.#capacity * this.#window));
    else reset = this.#rate === 0n ? BigInt(this.#limit.windowSeconds) : atLeast(1n, this.#secondsTo(this.#missing));
    const remaining = floor(this.#capacity * this.#window - this.#missing, this.#window);
    const untilOne = this.#missing + this.#window - this.#capacity * this.#window;
    const closed = this.#rate === 0n || untilOne <= 0n ? 0n : untilOne / this.#rate / SECOND;
    return {
      isAllowed,
      used: Number(this.#capacity - remaining),
      remaining: Number(remaining),
      secondsUntilReset: Number(reset),
      retryAfterSeconds: Number(closed),
    };
  }

  #secondsTo(missing: bigint): bigint {
    return missing === 0n ? 0n : ceil(missing, this.#rate * SECOND);
  }
}

/** As long as a product of hits and milliseconds is below 2^53, no rounding shows in the numbers of weir. */
class WindowsModel implements Model {
  readonly #window: bigint;
  readonly #limit: bigint;
  readonly #hits = new Map<bigint, bigint>();

  constructor({ windowSeconds, requestsPerUnit }: AlgorithmLimit) {
    this.#window = BigInt(windowSeconds) * 1000n;
    this.#limit = BigInt(requestsPerUnit);
  }

  decide(hits: bigint, now: bigint): Shown {
    const clock = now / 1000n;
    const number = clock / this.#window;
    const isAllowed = hits <= 0n || this.#used(clock) + hits <= this.#limit;
    if (hits >= 0n && isAllowed) this.#set(number, this.#of(number) + hits);
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
          : atLeast(1n, ceil(this.#firstFit(hits, clock) - clock, 1000n)),
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
