import type { Algorithm, BucketState, CountedState, LimitState, WindowsState } from './algorithms/algorithm';
import { TokenBucket } from './algorithms/bucket';
import { algorithmOf } from './limit';
import type { CountedLimit } from './operation';

/**
 * Where what a reservation has taken by an algorithm may be given back, so that no more passes than without it:
 *
 * - Of a sliding window, its own: the number of that.
 * - Of a token bucket, what has not flowed back by itself. The microseconds that were taken, the time at which the
 *   bucket would then be full, and what had been given back to it before: what others give back later is gone.
 */
export type Hold = readonly number[];

/** The algorithm whose state a limit has in the store; fixed windows are counted, also those that one decides. */
export function deciderOf({ algorithm }: CountedLimit): Algorithm | undefined {
  return algorithm?.name === 'fixed_window' ? undefined : algorithm;
}

/** @param givenBack to a bucket, in microseconds */
export function holdOf(algorithm: Algorithm, state: LimitState, hits: number, givenBack: number): Hold {
  if (algorithm.name === 'max_concurrent') return [];
  if (!(algorithm instanceof TokenBucket)) return [algorithm.windowAt(state, 0)!.number!];
  const taken = algorithm.spanOf(hits).whole;
  return [taken, state.now + (state as BucketState).whole + taken, givenBack];
}

/**
 * Gives hits back: of a bucket, `amount` is in microseconds.
 *
 * @param givenBack to the bucket since it has open reservations
 * @returns the state after it, and how much was given back
 */
export function returned(
  algorithm: Algorithm,
  state: LimitState,
  { amount, hold, givenBack }: { readonly amount: number; readonly hold: Hold; readonly givenBack: number },
): { readonly state: LimitState; readonly amount: number } {
  if (algorithm instanceof TokenBucket) {
    const bucket = state as BucketState;
    const [, full, before] = hold as [number, number, number];
    const rest = full - Math.max(0, givenBack - before) - bucket.now;
    const own = Math.max(0, Math.min(amount, rest, bucket.whole));
    return own === 0 ? { state, amount: 0 } : { state: { ...bucket, whole: bucket.whole - own }, amount: own };
  }
  const windows = state as WindowsState;
  const age = algorithm.windowAt(state, 0)!.number! - hold[0]!;
  const name = age === 0 ? 'current' : 'previous';
  const own = age === 0 || age === 1 ? Math.min(amount, windows[name]) : 0;
  return own === 0 ? { state, amount: 0 } : { state: { ...windows, [name]: windows[name] - own }, amount: own };
}

/** What is given back when so many hits are, in the unit of {@link returned}. */
export function amountOf(algorithm: Algorithm, hits: number): number {
  return algorithm instanceof TokenBucket ? algorithm.spanOf(hits).whole : hits;
}

/** How many whole hits that is. */
export function hitsOf(algorithm: Algorithm, amount: number): number {
  return algorithm instanceof TokenBucket ? Math.floor(amount / algorithm.microsecondsPerHit) : amount;
}

/** What a step has found, and holds, as a text: numbers, each behind a slash. */
export function foundText(state: LimitState, hold: Hold): string {
  // Nothing is reserved of a limit that blocks.
  const counted = state as CountedState;
  const [first, second] = 'whole' in counted ? [counted.whole, counted.part] : [counted.current, counted.previous];
  return ['', first, second, state.now, ...hold].join('/');
}

/** @returns undefined when the limit cannot have what such a text says */
export function foundIn(text: string, algorithm: Algorithm): LimitState | undefined {
  const [, first = NaN, second = NaN, now = NaN] = text.split('/').map(Number);
  const state =
    algorithm instanceof TokenBucket
      ? { whole: first, part: second, parts: algorithm.parts, now }
      : { current: first, previous: second, now };
  return algorithm.isPossible(state) && Number.isSafeInteger(now) ? state : undefined;
}

/** The {@link Hold} in such a text, as a text. */
export function holdText(text: string): string {
  const hold = text.split('/').slice(4);
  return hold.length === 0 ? '' : `/${hold.join('/')}`;
}

export function holdIn(text: string): Hold {
  return text.split('/').slice(1).map(Number);
}

/** A limit from data: an algorithm has functions. */
export function revived<Of extends { readonly limit: CountedLimit }>(of: Of): Of {
  const { algorithm } = of.limit;
  return algorithm === undefined ? of : { ...of, limit: { ...of.limit, algorithm: algorithmOf(algorithm) } };
}
