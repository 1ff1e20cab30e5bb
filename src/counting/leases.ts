import type { Outcome } from './algorithms/algorithm';
import { DecisionError } from './decision-error';
import { DEMAND_TIME, type Demand, Demands, LEAST_RATE, MOST_KEYS } from './demands';
import { Lease, type Parcel, type WaitingCall } from './lease';
import type { Limit } from './limit';
import {
  type Counted,
  LEAST_GRANT,
  type LeaseRequest,
  Operation,
  type Result,
  SHARE_OF_LEFT,
  type Stored,
} from './operation';

// A lease is hits that this process has taken from a counter before they are asked for, so that calls on the key are
// decided here. In the store it is an addition that is larger than the hits of its calls: never more pass than the
// limit.

/** A lease is what is used in {@link DEMAND_TIME}, or in so many trips to the store. */
const SIZE_TRIPS = 4;
/** A lease ends so many milliseconds after it was asked for, or so many trips. */
const [LONGEST, LONGEST_TRIPS] = [250, 8];
/**
 * The store reserves more time for it, of which this is that part: what is left has to arrive before the time is over.
 */
const USED_PART = 0.8;
/** After so many milliseconds, or trips, without a call it is given back. */
const [REST, REST_TRIPS] = [50, 4];
/** A key that is over its limit is not asked for again for so long, in milliseconds. */
const DENIED = 250;
/** The same of an algorithm, in which room comes back all the time. */
const DENIED_SHORTLY = 20;
/** The next lease is asked for when what is left is used up in so many trips. */
const TRIPS_AHEAD = 1.5;
/**
 * And when it is used up in so many milliseconds, for which the store may stall, but not before this part of the last
 * one is left.
 */
const [STALL, PART_AHEAD] = [60, 0.6];
/** How often leases are tended while there are any, in milliseconds. */
export const TENDED_EVERY = 25;
const NOTHING: readonly Operation[] = [];
const NO_CALLS: readonly (() => void)[] = [];

/** A number that grows. */
interface Tally {
  add(amount: number): void;
}

export interface LeasesOptions {
  /** Milliseconds of a clock that is never set back. */
  readonly now: () => number;
  /** Unix time in milliseconds. */
  readonly wallClock: () => number;
  /** Hits that were taken from counters. */
  readonly granted: Tally;
  /** Those of calls that were decided with them. */
  readonly used: Tally;
  /** Those given back to their counters. */
  readonly returned: Tally;
  /** Those that were left when their window ended. */
  readonly unused: Tally;
  /** Calls that were decided without the store. */
  readonly saved: Tally;
}

/**
 * The leases of this process, by key. A lease belongs to a key and its limit, is used only for a short time, and is
 * given back when it is not: so never more than the limit passes, and little is denied while others hold hits that they
 * do not use.
 */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #leases = new Map<string, Lease>();
  readonly #demands = new Demands();
  /** How long a trip to the store takes, in milliseconds. */
  #trip = 1;
  #toSend: Operation[] = [];
  #toResume: (() => void)[] = [];

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /** Whether there is something to take. */
  get hasDue(): boolean {
    return this.#toSend.length > 0 || this.#toResume.length > 0;
  }

  /** How many keys have leases. */
  get size(): number {
    return this.#leases.size;
  }

  /** Whether there is nothing to {@link tend}. */
  get isIdle(): boolean {
    return this.#leases.size === 0 && this.#demands.isEmpty;
  }

  /** The hits that are held of a key. */
  heldOf(key: string): number {
    return this.#leases.get(key)?.held ?? 0;
  }

  /** What is stored in a counter, without what is held of it here. */
  without(stored: Stored, { key, limit }: Counted): Stored {
    const lease = this.#leases.get(key);
    if (lease === undefined || lease.held === 0) return stored;
    if (typeof stored !== 'number') return limit.algorithm!.decide(stored, -lease.held).state;
    // What is held was taken from below the limit, whatever denied calls have counted since.
    return Math.max(0, Math.min(stored, lease.limit.requestsPerUnit) - lease.held);
  }

  /** Takes the operations that are to be sent, before those of the call for which they were made. */
  takeToSend(): readonly Operation[] {
    if (this.#toSend.length === 0) return NOTHING;
    const taken = this.#toSend;
    this.#toSend = [];
    return taken;
  }

  /**
   * The calls that wait for the answer to what was asked for one of these keys, which comes before that of an operation
   * which is sent now; undefined: nothing was asked for, or it takes so long that calls are sent as without leases.
   *
   * @param operations those that {@link use} has left
   */
  queueFor(operations: readonly Operation[]): WaitingCall[] | undefined {
    if (this.#leases.size === 0) return undefined;
    for (const { key, limit, hits } of operations) {
      if (limit.lease !== true || hits <= 0) continue;
      const lease = this.#leases.get(key);
      if (lease?.state !== 'asked' || lease.limit !== limit) continue;
      if (this.#options.now() - lease.askedAt < Math.max(STALL, SIZE_TRIPS * this.#trip)) return lease.waiting;
    }
    return undefined;
  }

  /** Takes the calls whose wait is over. */
  takeToResume(): readonly (() => void)[] {
    if (this.#toResume.length === 0) return NO_CALLS;
    const taken = this.#toResume;
    this.#toResume = [];
    return taken;
  }

  /** Decides those operations of a call that leases are enough for. Returns the others, which need the store. */
  use(operations: readonly Operation[]): readonly Operation[] {
    if (this.#leases.size === 0) return operations;
    let left: Operation[] | undefined;
    for (let index = 0; index < operations.length; index += 1) {
      const operation = operations[index] as Operation;
      const isDecided = this.#decide(operation);
      if (isDecided) left ??= operations.slice(0, index);
      else left?.push(operation);
    }
    return left ?? operations;
  }

  /** A batch is about to be sent: lets its operations take leases with them, if their keys are used enough. */
  prepare(operations: readonly Operation[]): void {
    const now = this.#options.now();
    for (const operation of operations) {
      if (operation.limit.lease === true && operation.hits >= 0) this.#prepare(operation, now);
    }
  }

  /** The store has answered an operation that was {@link prepare}d. */
  answered(operation: Operation, result: Result): void {
    const { lease: request, key, limit } = operation;
    if (request === undefined) return;
    const lease = this.#leases.get(key);
    // Given back since it was sent.
    if (lease === undefined || lease.limit !== limit) return this.#returnUnknown(operation, request);
    const now = this.#options.now();
    if (request.wants > 0) {
      lease.state = 'idle';
      this.#resume(lease, result instanceof DecisionError && !result.isTryAgain ? result : undefined);
    }
    if (result instanceof DecisionError) return;
    this.#trip += (now - request.sentAt - this.#trip) / 8;
    const { granted } = request;
    const { algorithm } = limit;
    const state = operation.outcome?.state;
    lease.stored =
      state === undefined ? (result as number) + granted : algorithm!.lend(state, granted, request.milliseconds);
    lease.storedAt = now;
    const window = state && algorithm?.windowAt(state.now, request.milliseconds);
    if (granted > 0) {
      this.#options.granted.add(granted);
      lease.held += granted;
      lease.granted = granted;
      lease.least = this.#leastOf(lease);
      // The store has granted it after it was asked for.
      const lostAt = Math.min(lease.windowEnd, request.sentAt + (window?.rest ?? Infinity));
      const until = Math.min(lostAt, request.sentAt + request.milliseconds * USED_PART);
      lease.parcels.push({ held: granted, until, lostAt, window: window?.number });
    }
    if (lease.held === 0) lease.deniedUntil = now + deniedFor(operation, result, lease.restAt(now));
  }

  /**
   * What is to be done at present: asks for more, for all keys at once that would ask before the next time, gives back
   * what is not used, and forgets what is over. To be called every {@link TENDED_EVERY}.
   */
  tend(): void {
    const now = this.#options.now();
    const rest = Math.max(REST, REST_TRIPS * this.#trip);
    for (const [key, lease] of this.#leases) {
      const isUsed = lease.newHits > 0;
      this.#measure(lease, now);
      if (lease.windowEnd - now < 2 * TENDED_EVERY) this.#demands.move(lease.demand, key, nextKey(key, lease.limit));
      // Not when less than half is left: others may use it sooner.
      const isDue = isUsed && lease.held < this.#leastOf(lease, TENDED_EVERY);
      if (isDue && lease.leftAt(now) >= lease.limit.capacity / 2) this.#ask(key, lease, now);
      if (lease.held > 0) this.#giveBack(key, lease, now - lease.lastUse >= rest ? Infinity : now);
      else if (lease.state !== 'asked' && now - lease.lastUse >= Math.max(DENIED, 4 * rest)) this.#leases.delete(key);
    }
    this.#demands.forgetUnused(now);
  }

  /** Gives back what is held of a key, before its counter is changed in another way. */
  giveBack(key: string): void {
    const lease = this.#leases.get(key);
    if (lease === undefined) return;
    this.#giveBack(key, lease, Infinity);
    this.#resume(lease);
    this.#leases.delete(key);
  }

  /** Gives back everything: the process ends, or other rules apply. */
  giveBackAll(): void {
    for (const key of this.#leases.keys()) this.giveBack(key);
  }

  #prepare(operation: Operation, now: number): void {
    const { key, limit, hits } = operation;
    let lease = this.#leases.get(key);
    // A caller that only reads takes nothing.
    if (hits === 0 && lease?.state !== 'due') return;
    if (lease === undefined) {
      const demand = this.#demands.of(operation, now);
      demand?.add(hits, now);
      if (demand === undefined || this.#sizeFor(demand) < LEAST_GRANT || this.#leases.size >= MOST_KEYS) return;
      this.#leases.set(key, (lease = this.#begin(operation, demand, now)));
    } else if (lease.limit !== limit) return;
    else if (hits > 0) this.#isUsed(lease, hits, now);
    const milliseconds = Math.max(LONGEST, LONGEST_TRIPS * this.#trip) / USED_PART;
    const wants = lease.state === 'asked' ? 0 : this.#wantedFor(lease, now);
    if (wants > 0) [lease.state, lease.askedAt] = ['asked', now];
    operation.lease = { wants, milliseconds, sentAt: now, granted: 0 };
  }

  #resume(lease: Lease, error?: DecisionError): void {
    for (const call of lease.waiting) this.#toResume.push(error === undefined ? call : () => call(error));
    lease.waiting = [];
  }

  #decide(operation: Operation): boolean {
    const { key, limit, hits } = operation;
    const lease = this.#leases.get(key);
    if (lease === undefined) return false;
    // Another limit on the same key: it is counted exactly.
    if (lease.limit !== limit) {
      this.giveBack(key);
      return false;
    }
    if (lease.stored === undefined || hits <= 0) return false;
    const now = this.#options.now();
    if (now < lease.deniedUntil && isStillOver(operation, lease, now)) operation.isKnownOver = true;
    else if (lease.take(hits, now)) {
      this.#options.used.add(hits);
      // The count has hits of denied calls, too, but these were taken from below the limit.
      if (typeof lease.stored === 'number')
        operation.after = Math.min(lease.stored - lease.held, lease.limit.requestsPerUnit);
      else this.#decideBy(operation, lease, now);
    } else {
      // A call counts here or there as a whole.
      this.#giveBack(key, lease, Infinity);
      return false;
    }
    this.#options.saved.add(1);
    this.#isUsed(lease, hits, now);
    if (lease.held < lease.least) this.#ask(key, lease, now);
    return true;
  }

  /** Asks for more, unless that is done, the key is not used enough, or too little is left. */
  #ask(key: string, lease: Lease, now: number): void {
    if (lease.state !== 'idle' || now < lease.deniedUntil || this.#wantedFor(lease, now) === 0) return;
    lease.state = 'due';
    this.#toSend.push(new Operation(lease.limit, key, 0));
  }

  /**
   * More is asked for when less than this is held, before it is used up. @param ahead milliseconds until it is looked
   * at again
   */
  #leastOf({ granted, demand: { rate } }: Lease, ahead = 0): number {
    const inStall = Math.min(rate * (STALL + ahead), granted * (PART_AHEAD + ahead / DEMAND_TIME));
    return Math.max(rate * (this.#trip * TRIPS_AHEAD + ahead) + 1, inStall);
  }

  #decideBy(operation: Operation, lease: Lease, now: number): void {
    const outcome: Outcome = lease.limit.algorithm!.decide(lease.stateAt(now), -lease.held);
    operation.outcome = outcome;
    operation.after = outcome.used;
  }

  #isUsed(lease: Lease, hits: number, now: number): void {
    lease.newHits += hits;
    lease.lastUse = now;
  }

  /** The hits to ask for; 0 when the key is not used enough, or little is left. */
  #wantedFor(lease: Lease, now: number): number {
    this.#measure(lease, now);
    const wants = this.#sizeFor(lease.demand, lease.restAt(now) - this.#trip);
    return wants < LEAST_GRANT || lease.leftAt(now) < LEAST_GRANT * SHARE_OF_LEFT ? 0 : wants;
  }

  /** @param rest milliseconds in which it can be used */
  #sizeFor({ rate }: Demand, rest = Infinity): number {
    return rate < LEAST_RATE ? 0 : Math.floor(rate * Math.min(rest, Math.max(DEMAND_TIME, SIZE_TRIPS * this.#trip)));
  }

  #measure(lease: Lease, now: number): void {
    lease.demand.add(lease.newHits, now);
    lease.newHits = 0;
    lease.least = this.#leastOf(lease);
  }

  #begin({ key, limit }: Operation, demand: Demand, now: number): Lease {
    const rest =
      limit.algorithm === undefined ? endOfKey(key, limit as Limit) * 1000 - this.#options.wallClock() : Infinity;
    return new Lease(limit as Limit, demand, { now, windowEnd: now + rest });
  }

  /** Gives back the parcels that may not be used at a time; Infinity: all of them. */
  #giveBack(key: string, lease: Lease, now: number): void {
    const { limit } = lease;
    const kept: Parcel[] = [];
    for (const parcel of lease.parcels) {
      const { held, until, lostAt, window } = parcel;
      if (held === 0) continue;
      if (until > now) {
        kept.push(parcel);
        continue;
      }
      lease.held -= held;
      if (lostAt <= this.#options.now()) {
        this.#options.unused.add(held);
        continue;
      }
      this.#options.returned.add(held);
      if (typeof lease.stored === 'number') lease.stored -= held;
      else if (lease.stored !== undefined) lease.stored = limit.algorithm!.decide(lease.stored, -held).state;
      this.#return({ key, limit }, held, window);
    }
    lease.parcels = kept;
  }

  /** Gives back what was granted to a lease that is over. */
  #returnUnknown({ key, limit, outcome }: Operation, { granted, milliseconds }: LeaseRequest): void {
    if (granted === 0) return;
    const window = outcome && limit.algorithm?.windowAt(outcome.state.now, milliseconds);
    this.#return({ key, limit }, granted, window?.number);
  }

  #return({ key, limit }: Counted, hits: number, window: number | undefined): void {
    const operation = new Operation(limit, key, -hits);
    operation.onlyInWindow = window;
    this.#toSend.push(operation);
  }
}

/**
 * Whether a key that was over its limit denies an operation; with an algorithm, by its state, which says for how long.
 */
function isStillOver(operation: Operation, lease: Lease, now: number): boolean {
  const outcome = lease.limit.algorithm?.decide(lease.stateAt(now), operation.hits);
  if (outcome?.isAllowed === true) return false;
  operation.outcome = outcome;
  return true;
}

/** That of the next window. */
function nextKey(key: string, limit: Limit): string {
  return `${key.slice(0, key.lastIndexOf('_') + 1)}${endOfKey(key, limit)}`;
}

/** When the window ends that is part of a key, in Unix seconds. */
function endOfKey(key: string, limit: Limit): number {
  return limit.endOfWindow(Number(key.slice(key.lastIndexOf('_') + 1)));
}

/** For how long a key is known to be over its limit, in milliseconds. */
function deniedFor({ limit, outcome }: Operation, result: Result, rest: number): number {
  if (outcome !== undefined) return outcome.remaining > 0 ? 0 : DENIED_SHORTLY;
  return (result as number) < limit.requestsPerUnit ? 0 : Math.min(DENIED, rest);
}
