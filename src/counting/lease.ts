import type { LimitState } from './algorithms/algorithm';
import type { DecisionError } from './decision-error';
import type { Demand } from './demands';
import type { Limit } from './limit';

/** Continues a call that has waited for what was asked for; with the error, if the store has not answered. */
export type WaitingCall = (error?: DecisionError) => void;

/** Hits of one grant. */
export interface Parcel {
  held: number;
  /** When they may not be used any more, by the clock of the leases. */
  readonly until: number;
  /** When it is too late to give them back. */
  readonly lostAt: number;
  /** To which alone they are given back: see `Algorithm.windowAt`. */
  readonly window: number | undefined;
}

/** The leases on one key. */
export class Lease {
  /** In the order of their ends. */
  parcels: Parcel[] = [];
  /** What they hold together. */
  held = 0;
  /** What was granted last. */
  granted = 0;
  /** More is asked for when less is held. */
  least = 0;
  /**
   * The count, or the state of the algorithm, at the last answer of the store, with all that is held; undefined before
   * the first.
   */
  stored: number | LimitState | undefined = undefined;
  /** When that was, by the clock of the leases. */
  storedAt = 0;
  /** `due`: the next operation on the key asks for more; `asked`: one does. */
  state: 'idle' | 'due' | 'asked' = 'idle';
  /** When it was asked last. */
  askedAt = 0;
  deniedUntil = 0;
  /** When its window ends, by the clock of the leases; Infinity for an algorithm, whose key has no window. */
  readonly windowEnd: number;
  /** Calls that wait for the answer to what was asked for. */
  waiting: WaitingCall[] = [];
  lastUse: number;
  /** Hits of calls since they were last added to the demand. */
  newHits = 0;

  constructor(
    readonly limit: Limit,
    readonly demand: Demand,
    { now, windowEnd }: { readonly now: number; readonly windowEnd: number },
  ) {
    this.lastUse = now;
    this.windowEnd = windowEnd;
  }

  /** Takes hits, or nothing when there are not as many. */
  take(hits: number, now: number): boolean {
    const { parcels } = this;
    const first = parcels[0];
    if (first !== undefined && first.held >= hits && first.until > now) {
      first.held -= hits;
      this.held -= hits;
      return true;
    }
    let usable = 0;
    for (const { held, until } of parcels) if (until > now) usable += held;
    if (usable < hits) return false;
    let left = hits;
    for (const parcel of parcels) {
      if (parcel.until <= now) continue;
      const taken = Math.min(parcel.held, left);
      parcel.held -= taken;
      left -= taken;
    }
    while (parcels[0]?.held === 0) parcels.shift();
    this.held -= hits;
    return true;
  }

  /** The state of the algorithm at a time, with all that is held. */
  stateAt(now: number): LimitState {
    const stored = this.stored as LimitState;
    return this.limit.algorithm!.at(stored, stored.now + Math.floor((now - this.storedAt) * 1000));
  }

  /** How long its window lasts, in milliseconds. */
  restAt(now: number): number {
    const { algorithm } = this.limit;
    if (algorithm === undefined || this.stored === undefined) return this.windowEnd - now;
    return algorithm.windowAt(this.stateAt(now).now, Infinity)?.rest ?? Infinity;
  }

  /** What is left of the limit, as far as it is known. */
  leftAt(now: number): number {
    if (this.stored === undefined) return Infinity;
    if (typeof this.stored === 'number') return this.limit.requestsPerUnit - this.stored;
    return this.limit.algorithm!.decide(this.stateAt(now), 0).remaining;
  }
}
