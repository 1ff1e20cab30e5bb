import type { AlgorithmName } from '../../rules/rule-config';
import type { BlockConfig } from '../../rules/unit';

/** A duration: whole microseconds and, as not every rate has hits of whole ones, parts of one. */
export interface Span {
  readonly whole: number;
  readonly part: number;
}

/** How long a token bucket takes to be full, at a time. */
export interface BucketState extends Span {
  /** How many parts a microsecond has. */
  readonly parts: number;
  /** Unix time of the store, in microseconds. */
  readonly now: number;
}

/** The hits of the current window of the clock and of the one before, at a time. Fixed windows have none before. */
export interface WindowsState {
  readonly previous: number;
  readonly current: number;
  /** As {@link BucketState.now}. */
  readonly now: number;
}

/** What a counter has. */
export type CountedState = BucketState | WindowsState;

/** A time in which all calls are denied, the present one or the last one. */
export interface Block {
  /** The first microsecond after it, in Unix time of the store. */
  readonly end: number;
  /** In microseconds; 0: there is none. */
  readonly length: number;
}

/** What a limit with `block_for` has, in two keys of the store. */
export interface BlockableState {
  readonly counted: CountedState;
  readonly block: Block;
  /** As {@link BucketState.now}. */
  readonly now: number;
}

/** What a store has of a limit, as the algorithm of the limit reads it. Plain data. */
export type LimitState = CountedState | BlockableState;

/** A call that an algorithm has decided. */
export interface Outcome {
  readonly isAllowed: boolean;
  /**
   * The hits that count towards the limit after the call. Those of a call that is denied never do, unless it is a
   * report, which may exceed the capacity.
   */
  readonly used: number;
  readonly remaining: number;
  /**
   * If no others follow: denied, until the same hits would be allowed, of an ask or a report until one would be, at
   * least 1; allowed, until no hits count.
   */
  readonly secondsUntilReset: number;
  /** Whole seconds in which a single hit is denied, too; rounded down. */
  readonly retryAfterSeconds: number;
  /** In a block, its end, in Unix microseconds of the store; otherwise undefined. */
  readonly blockedUntil?: number;
  /** Whether the call has started the block. */
  readonly startsBlock?: boolean;
  /** After the call: the same object if it has changed nothing. */
  readonly state: LimitState;
}

/** See {@link Algorithm.windowAt}. */
export interface Returnable {
  readonly number: number | undefined;
  readonly rest: number;
}
/**
 * What a call is for that does not count if it fits: `ask` counts nothing, and is over when nothing is left; `report`
 * counts with all of its hits, and is over when nothing was left before them.
 */
export type Purpose = 'ask' | 'report';

/** A report of more hits counts as one of so many, so that sums of counts stay exact. */
export const MOST_REPORTED = 2 ** 52;

/** The numbers of a limit that an algorithm decides. */
export interface AlgorithmLimit {
  /** Fixed windows are one only in a rule with `all_or_nothing`. */
  readonly name: AlgorithmName | 'fixed_window';
  /** From 0 to 2^32 − 1; of fixed windows, to `LARGEST_LIMIT`. */
  readonly requestsPerUnit: number;
  readonly lengthSeconds: number;
  /** The hits that a full token bucket allows at once. Undefined: `requestsPerUnit`; otherwise from 1 to 2^32 − 1. */
  readonly burst: number | undefined;
  /** Whether hits are reported after their calls, so that they count also beyond the limit. */
  readonly postpaid?: boolean | undefined;
  /** Undefined: a call that is denied changes nothing. */
  readonly blockFor?: BlockConfig | undefined;
}

/**
 * How the calls on one counter are decided. The same functions serve the counters in memory, and the calls that were
 * merged into one operation on another store, whose scripts have the same arithmetic. A call counts with all of its
 * hits or with none, a report always with all.
 */
export interface Algorithm extends AlgorithmLimit {
  /** The most hits that can count at once. */
  readonly capacity: number;
  /** For how many seconds a state may differ from an absent one. */
  readonly lifetime: number;
  /** The state in which no hits count. @param now of the store, in Unix microseconds */
  empty(now: number): LimitState;
  /** A state at another time: a clock may also go back. */
  at(state: LimitState, now: number): LimitState;
  /**
   * The most hits that a lease of so many milliseconds can have of a counter; of a bucket, it may be one less.
   */
  reservable(state: LimitState, milliseconds: number): number;
  /** Counts the hits of a lease, as if calls used them in its last moment. */
  reserve(state: LimitState, hits: number, milliseconds: number): LimitState;
  /**
   * Where the hits of a lease of so many milliseconds may be given back, from the state after it: a number, undefined
   * for nowhere, and the milliseconds left. Undefined: it is part of the key.
   */
  windowAt(state: LimitState, milliseconds: number): Returnable | undefined;
  /** Whether a counter takes so many hits back, that may be given back at this number. */
  takesBack(hits: number, window: number, state: LimitState): boolean;
  /** Whether a counter of the limit can have a state, whatever the types say: one that a store has sent. */
  isPossible(state: LimitState): boolean;
  /** Decides a call at the time of the state. @param hits negative: they are given back; 0: nothing changes */
  decide(state: LimitState, hits: number, purpose?: Purpose): Outcome;
}
