import type { LimitState } from './algorithms/algorithm';
import type { DecisionError } from './decision-error';
import type { Limit } from './limit';
import { BUCKET_LEASE_MS, LEAST_GRANT, SHARE_OF_LEFT, USABLE_SHARE } from './grant';
import { MIN_COMMANDS_PER_MS, type Rate } from './rate-estimator';

/** Continues a call that has waited for a grant; with the error, if the store has not answered the request for it. */
export type WaitingCall = (error?: DecisionError) => void;

/** Calls on a key within this time count as one command, in ms: without leases, a pipeline window would merge them. */
const MERGED_MS = 1;
/** A process that has no credit takes hits for this many of the largest commands at most. */
const UNPROVEN_COMMANDS = 2;

/** Hits that the store has granted at once. */
export interface Grant {
  held: number;
  /** From when on the hits may not be used, by the clock of the leases. */
  readonly until: number;
  /** From when on the hits cannot be returned, by the clock of the leases. */
  readonly lostAt: number;
  /** The window of the store to which alone the hits can be returned: see `Algorithm.windowAt`. */
  readonly window: number | undefined;
}

/** The hits that this process holds of one key. */
export class Lease {
  /** In the order of their ends. */
  grants: Grant[] = [];
  /** The sum of the hits of {@link grants}. */
  held = 0;
  /** The hits of the last grant. */
  granted = 0;
  /** More is requested when fewer hits are held. */
  refillBelow = 0;
  /**
   * The count, or the state of the algorithm, at the last answer of the store, in which all that is held counts;
   * undefined before the first.
   */
  stored: number | LimitState | undefined = undefined;
  /** When {@link stored} arrived, by the clock of the leases. */
  storedAt = 0;
  /** `due`: the next operation on the key requests more; `requested`: one in flight does. */
  state: 'idle' | 'due' | 'requested' = 'idle';
  requestedAt = 0;
  /** Until when calls are denied without the store, by the clock of the leases. */
  deniedUntil = 0;
  /** When the window ends, by the clock of the leases; Infinity for an algorithm, whose key has no window. */
  readonly windowEnd: number;
  /** Calls that wait for the answer to a request. */
  waiting: WaitingCall[] = [];
  lastUse: number;
  /** Hits and commands that are not part of the rate yet. */
  #newHits = 0;
  #newCommands = 0;
  /** When the last command was saved or sent. */
  #commandAt = -Infinity;
  #isSaved = false;

  constructor(
    readonly limit: Limit,
    readonly rate: Rate,
    { now, windowEnd }: { readonly now: number; readonly windowEnd: number },
  ) {
    this.lastUse = now;
    this.windowEnd = windowEnd;
  }

  /** Whether there were calls since the last {@link measure}. */
  get isUsed(): boolean {
    return this.#newHits > 0;
  }

  /** A call was sent to the store. */
  sent(hits: number, now: number): void {
    // A call that was decided just before it would have been part of the command.
    if (this.#isSaved && now - this.#commandAt < MERGED_MS) this.rate.credit -= 1;
    this.#isSaved = false;
    this.#newHits += hits;
    this.#newCommands += 1;
    this.#commandAt = now;
    this.lastUse = now;
  }

  /** A call was decided without the store. */
  saved(hits: number, now: number): void {
    this.#newHits += hits;
    this.lastUse = now;
    if (now - this.#commandAt < MERGED_MS) return;
    this.#commandAt = now;
    this.#isSaved = true;
    this.#newCommands += 1;
    this.rate.credit += 1;
  }

  measure(now: number): void {
    this.rate.add(this.#newHits, this.#newCommands, now);
    this.#newHits = 0;
    this.#newCommands = 0;
  }

  /** Takes hits, or nothing when fewer are held. */
  take(hits: number, now: number): boolean {
    const { grants } = this;
    const first = grants[0];
    if (first !== undefined && first.held >= hits && first.until > now) {
      first.held -= hits;
      this.held -= hits;
      return true;
    }
    let usable = 0;
    for (const { held, until } of grants) if (until > now) usable += held;
    if (usable < hits) return false;
    let left = hits;
    for (const grant of grants) {
      if (grant.until <= now) continue;
      const taken = Math.min(grant.held, left);
      grant.held -= taken;
      left -= taken;
    }
    while (grants[0]?.held === 0) grants.shift();
    this.held -= hits;
    return true;
  }

  /**
   * The hits to request; 0 when the key is used too little, or too little is left.
   *
   * @param milliseconds for which the hits have to be enough
   * @param hits of the command that carries the request
   */
  wanted(milliseconds: number, hits: number, now: number): number {
    const least = leastUseful(this.rate);
    const wanted = hitsIn(milliseconds, this.rate);
    if (wanted < least || this.leftAt(now) - hits < least * SHARE_OF_LEFT) return 0;
    if (this.rate.credit > 0) return wanted;
    // The store may grant less than a call needs while it is unknown what is left.
    return this.stored === undefined ? 0 : Math.min(wanted, UNPROVEN_COMMANDS * least);
  }

  /** The state of the algorithm at a time, in which all that is held counts. */
  stateAt(now: number): LimitState {
    const stored = this.stored as LimitState;
    return this.limit.algorithm!.at(stored, stored.now + Math.floor((now - this.storedAt) * 1000));
  }

  /** Milliseconds until the window ends, or a lease of a bucket that is taken now. */
  restAt(now: number): number {
    const { algorithm } = this.limit;
    if (algorithm === undefined || this.stored === undefined) return this.windowEnd - now;
    return algorithm.windowAt(this.stateAt(now), BUCKET_LEASE_MS * USABLE_SHARE)?.rest ?? Infinity;
  }

  /** The hits that are left of the limit, as far as this process knows. */
  leftAt(now: number): number {
    if (this.stored === undefined) return Infinity;
    if (typeof this.stored === 'number') return this.limit.requestsPerUnit - this.stored;
    return this.limit.algorithm!.decide(this.stateAt(now), 0).remaining;
  }
}

/** Whether a lease of what a key uses in so many milliseconds would save commands. */
export function isLeasable(milliseconds: number, rate: Rate): boolean {
  return hitsIn(milliseconds, rate) >= leastUseful(rate);
}

/** The hits that a key uses in so many milliseconds; 0 if a lease would not save commands. */
function hitsIn(milliseconds: number, { hitsPerMs, commandsPerMs }: Rate): number {
  return commandsPerMs < MIN_COMMANDS_PER_MS ? 0 : Math.floor(hitsPerMs * milliseconds);
}

/** Fewer hits may not be enough for a single call. */
function leastUseful({ largestCommand }: Rate): number {
  return Math.max(LEAST_GRANT, Math.ceil(largestCommand));
}
