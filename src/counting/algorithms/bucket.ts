import { MAX_FILL_SECONDS } from '../../rules/unit';
import { isWholeNumber } from '../../text/plain-number';
import { BUCKET_LEASE_MS } from '../grant';
import type { Algorithm, AlgorithmLimit, BucketState, Outcome, Returnable, Span } from './algorithm';

const MICROSECONDS = 1_000_000;
/** A bucket takes tokens back that is full only after this time, in microseconds: see {@link TokenBucket.windowAt}. */
export const LEAST_RETURNABLE = 2_000 * BUCKET_LEASE_MS;

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
  /** From empty to full. */
  readonly span: Span;
  readonly lifetime: number;
  /** What one hit takes, rounded to a double. */
  readonly microsecondsPerHit: number;
  /** What one hit takes, exactly: in parts of a microsecond. */
  readonly #partsPerHit: number;

  constructor({ requestsPerUnit, lengthSeconds, burst }: AlgorithmLimit) {
    const window = lengthSeconds * MICROSECONDS;
    const rate = Math.max(1, requestsPerUnit);
    const common = greatestCommonDivisor(window, rate);
    this.requestsPerUnit = requestsPerUnit;
    this.lengthSeconds = lengthSeconds;
    this.burst = burst;
    this.#partsPerHit = window / common;
    this.parts = rate / common;
    this.microsecondsPerHit = window / rate;
    // An override may have a lower rate than the burst of its rule was checked with.
    const most = Math.max(1, Math.floor((MAX_FILL_SECONDS / lengthSeconds) * rate));
    this.capacity = requestsPerUnit === 0 ? 0 : Math.min(burst ?? requestsPerUnit, most);
    this.span = this.spanOf(this.capacity);
    this.lifetime = Math.ceil((this.span.whole + 1) / MICROSECONDS);
  }

  empty(now: number): BucketState {
    return { whole: 0, part: 0, parts: this.parts, now };
  }

  at({ whole, part, parts, now: before }: BucketState, now: number): BucketState {
    // Parts of another rate are rounded up.
    const left = whole + before - now + (parts !== this.parts && part > 0 ? 1 : 0);
    const rest = parts === this.parts ? part : 0;
    if (left < 0) return this.empty(now);
    const span = isLonger({ whole: left, part: rest }, this.span) ? this.span : { whole: left, part: rest };
    // Not spread: that takes microseconds.
    return { whole: span.whole, part: span.part, parts: this.parts, now };
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
      isWholeNumber(whole) && isWholeNumber(part) && parts === this.parts && part < parts && !isLonger(state, this.span)
    );
  }

  decide(state: BucketState, hits: number): Outcome {
    const { now } = state;
    if (hits > this.capacity)
      return this.#denied(state, this.requestsPerUnit === 0 ? this.lengthSeconds : secondsOf(state));
    const after = this.#plus(state, this.spanOf(hits));
    if (hits > 0 && isLonger(after, this.span)) return this.#denied(state, secondsOf(this.#minus(after, this.span)));
    const left = after.whole < 0 ? NOTHING : after;
    const isSame = left.whole === state.whole && left.part === state.part;
    return this.#outcome(
      isSame ? state : { whole: left.whole, part: left.part, parts: this.parts, now },
      true,
      secondsOf(left),
    );
  }

  /** What hits take from the bucket, or give back: then negative microseconds, and a positive part. */
  spanOf(hits: number): Span {
    const { parts } = this;
    const count = Math.min(Math.abs(hits), this.capacity);
    // Products of up to 64 bits: in halves of 16 bits, each is exact.
    const perHit = Math.floor(this.#partsPerHit / parts);
    const rest = this.#partsPerHit % parts;
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
    const remaining = this.#tokensIn(this.#minus(this.span, state));
    const { whole } = this.#minus(this.#plus(state, this.spanOf(1)), this.span);
    return {
      isAllowed,
      used: this.capacity - remaining,
      remaining,
      secondsUntilReset,
      retryAfterSeconds: remaining > 0 ? 0 : Math.floor(whole / MICROSECONDS),
      state,
    };
  }

  /** How many hits a time is enough for. */
  #tokensIn(time: Span): number {
    // A product of doubles is off by one at most.
    let tokens = Math.min(this.capacity, Math.floor((time.whole * this.parts + time.part) / this.#partsPerHit) + 1);
    while (tokens > 0 && isLonger(this.spanOf(tokens), time)) tokens -= 1;
    return tokens;
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
