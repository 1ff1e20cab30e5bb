import type { LimitState } from './algorithms/algorithm';
import { DecisionError } from './decision-error';
import { type Grant, Lease, type WaitingCall, isLeasable } from './lease';
import type { Limit } from './limit';
import { BUCKET_LEASE_MS, type LeaseRequest, USABLE_SHARE } from './grant';
import { type Counted, type CountedLimit, Operation, type Result, type Stored } from './operation';
import { MAX_KEYS, RATE_MS, type Rate, RateEstimator } from './rate-estimator';

// A lease is hits that this process has taken from a counter before they are asked for, so that calls on the key are
// decided here. In the store it is an addition that is larger than the hits of its calls: never more pass than the
// limit.
//
// A lease may not cost more commands than it saves. A request rides on a command that is sent anyway. Commands for
// leases alone, to request more before a lease is used up, and to return what is not used, are sent on the credit of
// the key: the commands that its leases have saved.

/** A lease is what is used in {@link RATE_MS}, or in this number of trips to the store if they take longer. */
const SIZE_TRIPS = 4;
/** A lease ends this time after it was requested: the longer of both. */
const [LIFETIME_MS, LIFETIME_TRIPS] = [250, 8];
/** A lease that no call uses is returned after the longer of both. */
const [IDLE_MS, IDLE_TRIPS] = [50, 4];
/** A lease is kept so long where no credit pays for its return, for the next calls, but not beyond its window. */
const UNPAID_MS = 60_000;
/** A key that is over its limit is denied here for this time. */
const DENIED_MS = 250;
/** Sliding windows and token buckets regain room all the time, so the store is asked sooner. */
const DENIED_ALGORITHM_MS = 20;
/** More is requested when what is held is used up in this number of trips. */
const AHEAD_TRIPS = 1.5;
/**
 * More is requested, too, when what is held is used up in {@link STALL_MS}, for which the store may stall, but not
 * while more than this share of the last grant is left.
 */
const AHEAD_SHARE = 0.6;
const STALL_MS = 60;
/** A request ahead leaves credit for two returns: of what is held, and of what is requested. */
const CREDIT_AHEAD = 3;
/** How often leases are maintained while there are leases or rates. */
const MAINTAINED_EVERY_MS = 25;

/** Bounds the leases that are maintained at a time, in turn: each takes about 0.25 µs. */
const MAINTAINED_AT_ONCE = 1_024;

/** A number that grows. */
interface Tally {
  add(amount: number): void;
}

/** What leases need to know of rules; compared by identity. */
export interface LeasingRules {
  /** The rules with `lease: true`. */
  readonly leased: { readonly count: number };
}

export interface LeasesOptions {
  /** LEASES=auto: limits without `lease: true` are leased, too. */
  readonly isAuto: boolean;
  /** Milliseconds of a clock that is never set back. */
  readonly now: () => number;
  /** Unix time in milliseconds. */
  readonly wallClock: () => number;
  /** Counts hits taken from counters. */
  readonly grantedHits: Tally;
  /** Counts hits decided from a lease, without the store. */
  readonly usedHits: Tally;
  /** Counts hits given back to their counters. */
  readonly returnedHits: Tally;
  /** Counts hits that were left when their window ended. */
  readonly unusedHits: Tally;
  /** Counts calls that were decided without the store. */
  readonly savedCalls: Tally;
}

/** How leases reach the store, and the time. */
export interface LeaseOutlet {
  /** Sends operations of no call, and calls back when they are counted or have failed. */
  readonly send: (operations: readonly Operation[], ended: () => void) => void;
  /** Calls back after so many milliseconds. */
  readonly later: (work: () => void, milliseconds: number) => void;
}

/**
 * The leases of this process, by key. A lease belongs to a key and its limit, is used only for a short time, and is
 * given back when it is not: so never more than the limit passes, and little is denied while others hold hits that they
 * do not use.
 *
 * A decision path asks with {@link decide} before a call is sent, and reports its batches with {@link prepare} and
 * {@link answered}.
 */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #leases = new Map<string, Lease>();
  readonly #rates = new RateEstimator();
  #rules: LeasingRules | undefined;
  /** Whether {@link #rules} have limits that may be leased. */
  #isActive: boolean;
  /** Requests that are not answered. */
  #inFlight = 0;
  /** How long a trip to the store takes, in milliseconds. */
  #trip = 1;
  #outlet: LeaseOutlet | undefined;
  #toSend: Operation[] = [];
  #toResume: (() => void)[] = [];
  #isMaintaining = false;
  /** The leases that are still to be maintained, before all are again. */
  #inTurn = this.#leases.entries();

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#isActive = options.isAuto;
  }

  /** How many keys have leases. */
  get size(): number {
    return this.#leases.size;
  }

  /** Whether nothing is known of any key. */
  get isIdle(): boolean {
    return this.#leases.size === 0 && this.#rates.isEmpty;
  }

  /** To be called once, before the first call. */
  connect(outlet: LeaseOutlet): void {
    this.#outlet = outlet;
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

  /**
   * Decides those operations of a call that leases are enough for. Returns the others, which need the store.
   *
   * @param rules of the call; others than before: everything is given back first
   */
  decide(operations: readonly Operation[], rules: LeasingRules | undefined): readonly Operation[] {
    if (rules !== this.#rules) this.#use(rules);
    if (this.#leases.size === 0) return operations;
    let left: Operation[] | undefined;
    for (let index = 0; index < operations.length; index += 1) {
      const operation = operations[index] as Operation;
      const isDecided = this.#decide(operation);
      if (isDecided) left ??= operations.slice(0, index);
      else left?.push(operation);
    }
    this.#flush();
    return left ?? operations;
  }

  /**
   * The calls that wait for the answer to a request for one of these keys, which comes before that of an operation
   * which is sent now; undefined: nothing was requested, or it takes so long that calls are sent as without leases.
   *
   * @param operations those that {@link decide} has returned
   */
  queueFor(operations: readonly Operation[]): WaitingCall[] | undefined {
    if (this.#leases.size === 0) return undefined;
    for (const { key, limit, hits, purpose } of operations) {
      if (limit.lease !== true || hits <= 0 || purpose !== undefined) continue;
      const lease = this.#leases.get(key);
      if (lease?.state !== 'requested' || lease.limit !== limit) continue;
      if (this.#options.now() - lease.requestedAt < Math.max(STALL_MS, SIZE_TRIPS * this.#trip)) return lease.waiting;
    }
    return undefined;
  }

  /** A batch is about to be sent: lets its operations take leases with them, if their keys are used enough. */
  prepare(operations: readonly Operation[]): void {
    if (!this.#isActive) return;
    const now = this.#options.now();
    for (const operation of operations) {
      if (operation.limit.lease === true && operation.hits >= 0 && operation.purpose !== 'report')
        this.#prepare(operation, now);
    }
    this.#maintainLater();
  }

  /** The store has answered a batch, or not: the error instead of results. */
  answered(operations: readonly Operation[], results: readonly Result[] | DecisionError): void {
    for (let index = 0; this.#inFlight > 0 && index < operations.length; index += 1) {
      const result = results instanceof DecisionError ? results : (results[index] as Result);
      this.#answered(operations[index] as Operation, result);
    }
    this.#flush();
  }

  /**
   * Gives back what is held of some keys, before their counters are changed in another way. Calls back when that is
   * counted, or has failed.
   */
  giveBack(keys: Iterable<string>, ended?: () => void): void {
    for (const key of keys) this.#giveBack(key);
    this.#flush(ended);
  }

  /** Gives back everything: the process ends, or other rules apply. */
  giveBackAll(): void {
    this.giveBack(this.#leases.keys());
  }

  /**
   * Requests more, for all keys at once that would request it before the next time, gives back what is not used, and
   * forgets what is over. Of more than {@link MAINTAINED_AT_ONCE} leases, some at a time.
   */
  #maintain(): void {
    const now = this.#options.now();
    const idle = Math.max(IDLE_MS, IDLE_TRIPS * this.#trip);
    for (let left = MAINTAINED_AT_ONCE; left > 0; left -= 1) {
      const next = this.#inTurn.next();
      if (next.done === true) {
        this.#inTurn = this.#leases.entries();
        break;
      }
      const [key, lease] = next.value;
      const { isUsed, rate, limit } = lease;
      this.#measure(lease, now);
      if (lease.windowEnd - now < 2 * MAINTAINED_EVERY_MS) this.#rates.move(rate, key, nextKey(key, limit));
      // Not when less than half is left: others may use it sooner.
      const isDue = isUsed && lease.held < this.#refillBelow(lease, MAINTAINED_EVERY_MS);
      if (isDue && lease.leftAt(now) >= limit.capacity / 2) this.#request(key, lease, now);
      const unused = now - lease.lastUse;
      if (lease.held > 0) this.#return(key, lease, unused >= (rate.credit > 0 ? idle : UNPAID_MS) ? Infinity : now);
      else if (lease.state !== 'requested' && unused >= Math.max(DENIED_MS, 4 * idle)) this.#leases.delete(key);
    }
    this.#rates.forgetUnused(now);
    this.#flush();
  }

  #maintainLater(): void {
    if (this.#isMaintaining || this.isIdle) return;
    this.#isMaintaining = true;
    this.#outlet!.later(() => {
      this.#isMaintaining = false;
      this.#maintain();
      this.#maintainLater();
    }, MAINTAINED_EVERY_MS);
  }

  /** Sends what is due, before the operations of the call for which it is, and continues calls whose wait is over. */
  #flush(ended?: () => void): void {
    const [operations, calls] = [this.#toSend, this.#toResume];
    if (operations.length > 0) {
      this.#toSend = [];
      this.#outlet!.send(operations, ended ?? noop);
    } else ended?.();
    if (calls.length === 0) return;
    this.#toResume = [];
    for (const call of calls) call();
  }

  #giveBack(key: string): void {
    const lease = this.#leases.get(key);
    if (lease === undefined) return;
    this.#return(key, lease, Infinity);
    this.#resume(lease);
    this.#leases.delete(key);
  }

  #use(rules: LeasingRules | undefined): void {
    this.giveBackAll();
    this.#rules = rules;
    this.#isActive = this.#options.isAuto || (rules?.leased.count ?? 0) > 0;
  }

  #decide(operation: Operation): boolean {
    const { key, limit, hits } = operation;
    const lease = this.#leases.get(key);
    if (lease === undefined) return false;
    // Another limit on the same key: it is counted exactly.
    if (lease.limit !== limit) {
      this.#giveBack(key);
      return false;
    }
    if (lease.stored === undefined || hits <= 0 || operation.purpose !== undefined) return false;
    const now = this.#options.now();
    if (now < lease.deniedUntil && isStillOver(operation, lease, now)) operation.isKnownOver = true;
    else if (lease.take(hits, now)) {
      this.#options.usedHits.add(hits);
      // The count has hits of denied calls, too, but these were taken from below the limit.
      if (typeof lease.stored === 'number')
        operation.countAfter = Math.min(lease.stored - lease.held, lease.limit.requestsPerUnit);
      else {
        operation.outcome = lease.limit.algorithm!.decide(lease.stateAt(now), -lease.held);
        operation.countAfter = operation.outcome.used;
      }
    } else {
      // A call counts here or there as a whole. What is held may be what it lacks there, unless plenty is left.
      const isPaid = lease.rate.credit > 0;
      if (isPaid || lease.leftAt(now) < lease.limit.capacity / 2) this.#return(key, lease, Infinity);
      return false;
    }
    this.#options.savedCalls.add(1);
    lease.saved(hits, now);
    if (lease.held < lease.refillBelow) this.#request(key, lease, now);
    return true;
  }

  #prepare(operation: Operation, now: number): void {
    const { key, limit, hits } = operation;
    let lease = this.#leases.get(key);
    // A caller that only reads takes nothing.
    if (hits === 0 && lease?.state !== 'due') return;
    if (lease === undefined) {
      const rate = this.#rates.of(operation, now);
      rate?.add(hits, 1, now);
      if (rate === undefined || !isLeasable(this.#sizeMs(), rate) || this.#leases.size >= MAX_KEYS) return;
      this.#leases.set(key, (lease = this.#begin(operation, rate, now)));
    } else if (lease.limit !== limit) return;
    else if (hits > 0) lease.sent(hits, now);
    const milliseconds = isBucket(limit)
      ? BUCKET_LEASE_MS
      : Math.max(LIFETIME_MS, LIFETIME_TRIPS * this.#trip) / USABLE_SHARE;
    const wants = lease.state === 'requested' ? 0 : this.#wanted(lease, now, hits);
    if (wants > 0) [lease.state, lease.requestedAt] = ['requested', now];
    this.#inFlight += 1;
    operation.lease = { wants, milliseconds, sentAt: now, granted: 0 };
  }

  #begin({ key, limit }: Operation, rate: Rate, now: number): Lease {
    const rest =
      limit.algorithm === undefined ? endOfKey(key, limit as Limit) * 1000 - this.#options.wallClock() : Infinity;
    return new Lease(limit as Limit, rate, { now, windowEnd: now + rest });
  }

  #answered(operation: Operation, result: Result): void {
    const { lease: request, key, limit } = operation;
    if (request === undefined) return;
    this.#inFlight -= 1;
    const lease = this.#leases.get(key);
    // Given back since it was sent.
    if (lease === undefined || lease.limit !== limit) return this.#returnLate(operation, request);
    const now = this.#options.now();
    if (request.wants > 0) {
      lease.state = 'idle';
      this.#resume(lease, result instanceof DecisionError && !result.isTryAgain ? result : undefined);
    }
    if (result instanceof DecisionError) return;
    this.#trip += (now - request.sentAt - this.#trip) / 8;
    const { granted, milliseconds, sentAt } = request;
    const { algorithm } = limit;
    const state = operation.outcome?.state;
    lease.stored =
      state === undefined ? (result as number) + granted : algorithm!.reserve(state, granted, milliseconds);
    lease.storedAt = now;
    if (granted > 0) {
      this.#options.grantedHits.add(granted);
      lease.held += granted;
      lease.granted = granted;
      lease.refillBelow = this.#refillBelow(lease);
      const window = algorithm?.windowAt(lease.stored as LimitState, milliseconds);
      // The store has granted it after it was requested.
      const end = Math.min(lease.windowEnd, sentAt + (window?.rest ?? Infinity));
      const isUnpaid = lease.rate.credit <= 0;
      const until = Math.min(end, sentAt + (isUnpaid && !isBucket(limit) ? UNPAID_MS : milliseconds * USABLE_SHARE));
      // Tokens that are not returned flow in again.
      let lostAt = isUnpaid && isBucket(limit) ? until : end;
      if (window !== undefined && window.number === undefined) lostAt = now;
      lease.grants.push({ held: granted, until, lostAt, window: window?.number });
    }
    if (lease.held === 0) lease.deniedUntil = now + deniedFor(operation, result, lease.restAt(now));
  }

  #resume(lease: Lease, error?: DecisionError): void {
    for (const call of lease.waiting) this.#toResume.push(error === undefined ? call : () => call(error));
    lease.waiting = [];
  }

  /** Requests more, unless that is done, the key is not used enough, or too little is left. */
  #request(key: string, lease: Lease, now: number): void {
    if (lease.rate.credit < CREDIT_AHEAD || lease.state !== 'idle' || now < lease.deniedUntil) return;
    if (this.#wanted(lease, now) === 0) return;
    lease.rate.credit -= 1;
    lease.state = 'due';
    this.#toSend.push(new Operation(lease.limit, key, 0));
  }

  /** @param hits of the command that carries the request */
  #wanted(lease: Lease, now: number, hits = 0): number {
    this.#measure(lease, now);
    return lease.wanted(Math.min(lease.restAt(now) - this.#trip, this.#sizeMs()), hits, now);
  }

  /** For how long a lease has to be enough, in milliseconds. */
  #sizeMs(): number {
    return Math.max(RATE_MS, SIZE_TRIPS * this.#trip);
  }

  /**
   * More is requested when fewer hits than this are held, before they are used up.
   *
   * @param ahead milliseconds until it is examined again
   */
  #refillBelow({ granted, rate: { hitsPerMs } }: Lease, ahead = 0): number {
    const inStall = Math.min(hitsPerMs * (STALL_MS + ahead), granted * (AHEAD_SHARE + ahead / RATE_MS));
    return Math.max(hitsPerMs * (this.#trip * AHEAD_TRIPS + ahead) + 1, inStall);
  }

  #measure(lease: Lease, now: number): void {
    lease.measure(now);
    lease.refillBelow = this.#refillBelow(lease);
  }

  /** Gives back, with one command, the grants that may not be used at a time; Infinity: all of them. */
  #return(key: string, lease: Lease, at: number): void {
    const { limit } = lease;
    const kept: Grant[] = [];
    let [returned, window] = [0, undefined as number | undefined];
    for (const grant of lease.grants) {
      const { held, until, lostAt } = grant;
      if (held === 0) continue;
      if (until > at) {
        kept.push(grant);
        continue;
      }
      lease.held -= held;
      if (lostAt <= this.#options.now()) this.#options.unusedHits.add(held);
      else {
        returned += held;
        if (grant.window !== undefined) window = Math.min(window ?? Infinity, grant.window);
      }
    }
    lease.grants = kept;
    if (returned === 0) return;
    this.#options.returnedHits.add(returned);
    lease.rate.credit -= 1;
    if (typeof lease.stored === 'number') lease.stored -= returned;
    else if (lease.stored !== undefined) lease.stored = limit.algorithm!.decide(lease.stored, -returned).state;
    this.#sendBack({ key, limit }, returned, window);
  }

  /** Gives back what was granted to a lease that is over. */
  #returnLate({ key, limit, outcome }: Operation, { granted, milliseconds }: LeaseRequest): void {
    if (granted === 0) return;
    const { algorithm } = limit;
    const window =
      outcome && algorithm?.windowAt(algorithm.reserve(outcome.state, granted, milliseconds), milliseconds);
    if (!isBucket(limit) || window?.number !== undefined) this.#sendBack({ key, limit }, granted, window?.number);
  }

  #sendBack({ key, limit }: Counted, hits: number, window: number | undefined): void {
    const operation = new Operation(limit, key, -hits);
    operation.onlyInWindow = window;
    this.#toSend.push(operation);
  }
}

function noop(): void {
  // Nothing waits for what is sent.
}

function isBucket({ algorithm }: CountedLimit): boolean {
  return algorithm?.name === 'token_bucket';
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

/** The key of the same counter in the next window. */
function nextKey(key: string, limit: Limit): string {
  return `${key.slice(0, key.lastIndexOf('_') + 1)}${endOfKey(key, limit)}`;
}

/** When the window ends that is part of a key, in Unix seconds. */
function endOfKey(key: string, limit: Limit): number {
  return limit.endOfWindow(Number(key.slice(key.lastIndexOf('_') + 1)));
}

/** For how long a key is known to be over its limit, in milliseconds. */
function deniedFor({ limit, outcome }: Operation, result: Result, rest: number): number {
  if (outcome !== undefined) return outcome.remaining > 0 ? 0 : DENIED_ALGORITHM_MS;
  return (result as number) < limit.requestsPerUnit ? 0 : Math.min(DENIED_MS, rest);
}
