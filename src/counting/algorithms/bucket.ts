import { MAX_FILL_SECONDS } from '../../rules/unit';
import { isWholeNumber } from '../../text/plain-number';
import { BUCKET_LEASE_MS } from '../grant';
import type { Algorithm, AlgorithmLimit, BucketState, Outcome, Purpose, Returnable, Span } from './algorithm';

const MICROSECONDS = 1_000_000;
/** A bucket takes tokens back that is full only after this time, in microseconds: see {@link TokenBucket.windowAt}. */
export const LEAST_RETURNABLE = 2_000 * BUCKET_LEASE_MS;
/**
 * For how long reports close a bucket at most, or for a window if that is longer: a bound on a wrong report, and at ten
 * times the rate still no more passes than the rate.
 */
const LONGEST_DEBT_SECONDS = 86_400;

/**
 * A bucket of `burst` tokens, into which `requestsPerUnit` flow in each window, in equal distances. Each hit takes one;
 * a call is denied when there are not as many. So at most `burst` and what has flown in can pass in any interval.
 * (GCRA, with exact arithmetic: all numbers are integers below 2^53.)
 */
export class TokenBucket implements Algorithm {
  readonly name = 'token_bucket';
  readonly requestsPerUnit: number;
  readonly lengthSeconds: number;
  readonly burst: number | undefined;
  readonly capacity: number;
  /** How many parts of a microsecond are told apart: 1 where a hit takes whole ones. */
  readonly parts: number;
  readonly postpaid: boolean;
  /** From empty to full. */
  readonly span: Span;
  /** The longest that it can take to be full: longer than {@link span} where reports count beyond the limit. */
  readonly ceiling: Span;
  readonly lifetime: number;
  /** What one hit takes, rounded to a double. */
  readonly microsecondsPerHit: number;
  /** What one hit takes, exactly: in parts of a microsecond. */
  readonly #partsPerHit: number;
  readonly #hit: Span;
  /** More hits make no difference. */
  readonly #mostHits: number;

  constructor({ requestsPerUnit, lengthSeconds, burst, postpaid = false }: AlgorithmLimit) {
    const window = lengthSeconds * MICROSECONDS;
    const rate = Math.max(1, requestsPerUnit);
    const common = greatestCommonDivisor(window, rate);
    this.requestsPerUnit = requestsPerUnit;
    this.lengthSeconds = lengthSeconds;
    this.burst = burst;
    this.postpaid = postpaid;
    this.#partsPerHit = window / common;
    this.parts = rate / common;
    this.microsecondsPerHit = window / rate;
    // An override may have a lower rate than the burst of its rule was checked with.
    const most = Math.max(1, Math.floor((MAX_FILL_SECONDS / lengthSeconds) * rate));
    this.capacity = requestsPerUnit === 0 ? 0 : Math.min(burst ?? requestsPerUnit, most);
    this.#hit = { whole: Math.floor(this.#partsPerHit / this.parts), part: this.#partsPerHit % this.parts };
    this.#mostHits = this.capacity;
    this.span = this.spanOf(this.capacity);
    this.lifetime = Math.ceil((this.span.whole + 1) / MICROSECONDS);
    const debt = postpaid && this.capacity > 0 ? Math.max(LONGEST_DEBT_SECONDS, lengthSeconds) * MICROSECONDS : 0;
    this.ceiling = { whole: this.span.whole + debt, part: this.span.part };
    if (debt > 0) this.#mostHits = Math.ceil((this.ceiling.whole + 1) / this.microsecondsPerHit) + 1;
  }

  empty(now: number): BucketState {
    return { whole: 0, part: 0, parts: this.parts, now };
  }

  at({ whole, part, parts, now: before }: BucketState, now: number): BucketState {
    // Parts of another rate are rounded up.
    const left = whole + before - now + (parts !== this.parts && part > 0 ? 1 : 0);
    const rest = parts === this.parts ? part : 0;
    if (left < 0) return this.empty(now);
    const { whole: kept, part: keptPart } = this.#cut({ whole: left, part: rest });
    return { whole: kept, part: keptPart, parts: this.parts, now };
  }

  /**
   * Tokens flow in while hits are held: they count as if they were used at the end of their time, so that no more pass
   * than the bucket allows. In whole microseconds, rounded so that no more is lent than there is: the script of Redis
   * has no numbers for exact parts of many hits.
   */
  reservable(state: BucketState, milliseconds: number): number {
    const room = this.span.whole - 2 - fullIn(state, milliseconds);
    return Math.max(0, Math.floor(room / this.microsecondsPerHit));
  }

  reserve(state: BucketState, hits: number, milliseconds: number): BucketState {
    if (hits === 0) return state;
    const whole = fullIn(state, milliseconds) + Math.ceil(hits * this.microsecondsPerHit) + 1;
    return { whole, part: 0, parts: this.parts, now: state.now };
  }

  /**
   * The last microsecond of a lease, if the bucket takes long to be full. What {@link reserve} counts while tokens flow
   * in, up to the end of a lease, no lease of before may get back: the bucket would be full without these tokens, and
   * once more with them. No other lease counts an end before that of this one if the bucket takes twice as long to be
   * full when it is taken, and whenever tokens come back.
   */
  windowAt({ whole, now }: BucketState, milliseconds: number): Returnable {
    const last = now + Math.ceil(milliseconds * 1000);
    return { number: whole < LEAST_RETURNABLE ? undefined : last, rest: milliseconds };
  }

  takesBack(hits: number, last: number, { whole, now }: BucketState): boolean {
    return now <= last && whole + this.spanOf(-hits).whole >= LEAST_RETURNABLE;
  }

  isPossible(state: BucketState): boolean {
    const { whole, part, parts } = state;
    return (
      isWholeNumber(whole) &&
      isWholeNumber(part) &&
      parts === this.parts &&
      part < parts &&
      !isLonger(state, this.ceiling)
    );
  }

  decide(state: BucketState, hits: number, purpose?: Purpose): Outcome {
    if (purpose !== undefined) {
      const left = this.#left(state, this.#plus(state, this.spanOf(hits)));
      if (!isLonger(this.#plus(state, this.#hit), this.span)) return this.#outcome(left, true, secondsOf(left));
      return this.#denied(left, secondsOf(this.#minus(this.#plus(left, this.#hit), this.span)));
    }
    if (hits > this.capacity)
      return this.#denied(state, this.requestsPerUnit === 0 ? this.lengthSeconds : secondsOf(state));
    const after = this.#plus(state, this.spanOf(hits));
    if (hits > 0 && isLonger(after, this.span)) return this.#denied(state, secondsOf(this.#minus(after, this.span)));
    const left = this.#left(state, after);
    return this.#outcome(left, true, secondsOf(left));
  }

  /** What hits take from the bucket, or give back: then negative microseconds, and a positive part. */
  spanOf(hits: number): Span {
    const { parts } = this;
    const { whole: perHit, part: rest } = this.#hit;
    const count = Math.min(Math.abs(hits), this.#mostHits);
    if (count >= 2 ** 32) {
      const product = BigInt(count) * BigInt(this.#partsPerHit);
      const long = { whole: Number(product / BigInt(parts)), part: Number(product % BigInt(parts)) };
      return hits >= 0 ? long : this.#minus(NOTHING, long);
    }
    // Products of up to 64 bits: in halves of 16 bits, each is exact.
    const high = Math.floor(count / 65_536) * rest;
    const low = (high % parts) * 65_536 + (count % 65_536) * rest;
    const whole = count * perHit + Math.floor(high / parts) * 65_536 + Math.floor(low / parts);
    const span = { whole, part: low % parts };
    return hits >= 0 ? span : this.#minus(NOTHING, span);
  }

  #denied(state: BucketState, secondsUntilReset: number): Outcome {
    return this.#outcome(state, false, Math.max(1, secondsUntilReset));
  }

  #outcome(state: BucketState, isAllowed: boolean, secondsUntilReset: number): Outcome {
    const remaining = Math.max(0, Math.min(this.capacity, this.#tokensIn(this.#minus(this.span, state))));
    const { whole } = this.#minus(this.#plus(state, this.spanOf(1)), this.span);
    return {
      isAllowed,
      used: this.capacity - remaining + this.#overdrawn(state),
      remaining,
      secondsUntilReset,
      retryAfterSeconds: remaining > 0 ? 0 : Math.floor(whole / MICROSECONDS),
      state,
    };
  }

  /** The hits beyond the capacity, of which a part counts as one. */
  #overdrawn(state: Span): number {
    const debt = this.#minus(state, this.span);
    if (debt.whole < 0) return 0;
    const hits = this.#tokensIn(debt);
    return isLonger(debt, this.spanOf(hits)) ? hits + 1 : hits;
  }

  /** How many hits a time is enough for; not more than 0 if it is negative. */
  #tokensIn(time: Span): number {
    // A product of doubles is off by one at most.
    const about = Math.floor((time.whole * this.parts + time.part) / this.#partsPerHit) + 1;
    let tokens = Math.min(this.#mostHits, about);
    while (tokens > 0 && isLonger(this.spanOf(tokens), time)) tokens -= 1;
    return tokens;
  }

  /** What a state becomes; the same object if it is that. Not spread: that takes microseconds. */
  #left(state: BucketState, after: Span): BucketState {
    const { whole, part } = this.#cut(after);
    return whole === state.whole && part === state.part ? state : { whole, part, parts: this.parts, now: state.now };
  }

  /** At least nothing, at most the ceiling. */
  #cut(span: Span): Span {
    return span.whole < 0 ? NOTHING : isLonger(span, this.ceiling) ? this.ceiling : span;
  }

  #plus(one: Span, other: Span): Span {
    const part = one.part + other.part;
    return part < this.parts
      ? { whole: one.whole + other.whole, part }
      : { whole: one.whole + other.whole + 1, part: part - this.parts };
  }

  #minus(one: Span, other: Span): Span {
    const part = one.part - other.part;
    return part >= 0
      ? { whole: one.whole - other.whole, part }
      : { whole: one.whole - other.whole - 1, part: part + this.parts };
  }
}

const NOTHING: Span = { whole: 0, part: 0 };

/** The microseconds until a bucket is full, at least so many milliseconds. */
function fullIn({ whole, part }: Span, milliseconds: number): number {
  return Math.max(part > 0 ? whole + 1 : whole, Math.ceil(milliseconds * 1000));
}

function isLonger(one: Span, other: Span): boolean {
  return one.whole > other.whole || (one.whole === other.whole && one.part > other.part);
}

/** Rounded up. */
function secondsOf({ whole, part }: Span): number {
  return Math.ceil((part > 0 ? whole + 1 : whole) / MICROSECONDS);
}

function greatestCommonDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestCommonDivisor(other, one % other);
}
