import type { Counter } from '../statistics/counter';
import { ownText, tableKey, textBytes } from '../text/table-key';
import { windowEnd } from '../counting/windows';
import { type Counted, type CountedLimit, LARGEST_COUNT, Operation, type Result } from '../counting/operation';
import { simulate } from '../counting/simulate';
import { DecisionError } from '../counting/decision-error';
import { ExpiringCounts, KEY_OVERHEAD_BYTES, TimedCounts } from '../counting/counts';

/** The estimated memory of the counts, and again of the hits to be added later, in bytes: some 45,000 keys each. */
const MAX_BYTES = 8 * 2 ** 20;
/** Counts up to this part of their limit are not kept, so that keys which are used once take no room. */
const KEPT_ABOVE = 1 / 8;
/** Most keys that are added to the store at a time. */
const KEYS_PER_BATCH = 256;
/**
 * Seconds that ended windows are kept, for requests that have waited for the store; and by which the clock may go back
 * unnoticed.
 */
const [GRACE, TOLERANCE] = [2, 60];

export interface LocalCountsOptions {
  /** How many instances share what is left of each limit now: STORE_FAILURE_LOCAL_SHARE, of each worker. */
  readonly share: () => number;
  /** STORE_FAILURE_RECONCILE: whether hits that were not sent to the store are added to it later */
  readonly reconciles: boolean;
  /** The server of the store that counts an operation at present. */
  readonly serverOf: (counter: Counted) => object;
  /**
   * Counts the most hits that can be missing: there is no room for their key, or it is not known whether they were
   * added.
   */
  readonly dropped: Counter;
}

/** Hits of a key that were not sent to the store, as one operation. */
class UnsentHits extends Operation {
  declare limit: CountedLimit;
  declare hits: number;
  /** When the last window ends in which they were counted, in Unix seconds; the limit is that of this window. */
  end: number;

  constructor({ limit, hits }: Operation, key: string, end: number) {
    super(limit, key, hits);
    this.end = end;
  }
}

/**
 * Counts for the policy `local`, which stands in for a store that does not count: the last counts of the store, and the
 * hits since. Each hit of this instance counts `share` times, for those that the other instances let pass, so that all
 * together let pass what is left of the limit: the share of it, rounded up. Hits that were not sent to the store are
 * kept until they can be added to it.
 */
export class LocalCounts {
  readonly #options: LocalCountsOptions;
  readonly #counts = new ExpiringCounts({ maxKeys: Infinity, maxBytes: MAX_BYTES });
  /** By server and {@link tableKey}. */
  readonly #unsent = new Map<object, Map<string, UnsentHits>>();
  #unsentBytes = 0;
  /** When ended windows were removed, in Unix seconds. */
  #swept = 0;
  readonly #table: ScaledCounts;

  constructor(options: LocalCountsOptions) {
    this.#options = options;
    this.#table = new ScaledCounts(this.#counts, options.share);
  }

  /**
   * Takes over what the store has counted. Returns the counts with the hits that are still to be added to them.
   *
   * @param now Unix time in milliseconds
   */
  recordStoreCounts(batch: readonly Operation[], counts: readonly Result[], now: number): readonly Result[] {
    let corrected: Result[] | undefined;
    for (let index = 0; index < counts.length; index += 1) {
      const operation = batch[index] as Operation;
      const stored = counts[index] as Result;
      if (operation.limit.onStoreFailure !== 'local' || typeof stored !== 'number') continue;
      this.#sweep(Math.floor(now / 1000));
      const unsent = this.#unsentBytes === 0 ? 0 : (this.#unsentOf(operation)?.hits ?? 0);
      const known = tableKey(operation.key);
      const withLeased = stored + (operation.lease?.granted ?? 0);
      if (withLeased > operation.limit.requestsPerUnit * KEPT_ABOVE || this.#counts.get(known) > 0) {
        const count = Math.max(0, withLeased + this.#options.share() * unsent);
        this.#counts.set(known, count, now, operation.limit);
      }
      if (unsent !== 0) (corrected ??= [...counts])[index] = Math.min(LARGEST_COUNT, Math.max(0, stored + unsent));
    }
    return corrected ?? counts;
  }

  /**
   * Counts operations of a call that the store has not counted, each into its `countAfter`.
   *
   * @param nowSeconds the time of their request
   */
  count(operations: readonly Operation[], nowSeconds: number): void {
    this.#sweep(nowSeconds);
    this.#table.now = nowSeconds * 1000;
    simulate(operations, this.#table);
    this.keepUnsent(operations, nowSeconds);
  }

  /**
   * Keeps the hits of counted operations that the store has certainly not counted, so that they are added later.
   *
   * @param nowSeconds the time of their request
   */
  keepUnsent(operations: readonly Operation[], nowSeconds: number): void {
    for (const operation of operations) {
      if (!this.#options.reconciles || operation.addedHits === 0 || !isUnsent(operation)) continue;
      this.#keep(operation, windowEnd(operation.limit, nowSeconds));
    }
  }

  /** The count of a key. */
  countOf(cacheKey: string): number {
    return this.#counts.get(tableKey(cacheKey));
  }

  /**
   * The counts of some operations, of which none is to be added to the store, so that {@link count} can be tried on
   * them.
   */
  copyOf(counters: readonly Counted[], nowSeconds: number): LocalCounts {
    const copy = new LocalCounts({ ...this.#options, reconciles: false });
    for (const { key, limit } of counters) {
      copy.#counts.set(tableKey(key), this.countOf(key), nowSeconds * 1000, limit);
    }
    return copy;
  }

  /** Removes a count that an operator has changed in the store. */
  forget(cacheKey: string): void {
    this.#counts.remove(tableKey(cacheKey));
  }

  /** Whether there are hits to add to a server. */
  hasUnsent(server: object): boolean {
    return this.#unsent.has(server);
  }

  /** Takes some of the hits that are to be added to a server; empty: there are none. */
  take(server: object, nowSeconds: number): readonly UnsentHits[] {
    this.#sweep(nowSeconds);
    const taken: UnsentHits[] = [];
    for (const [known, unsent] of this.#unsent.get(server) ?? []) {
      if (taken.length === KEYS_PER_BATCH) break;
      this.#remove(server, known);
      if (unsent.hits !== 0) taken.push(unsent);
    }
    return taken;
  }

  /**
   * Hits that {@link take} returned have been sent. Hits that were certainly not counted are kept; where that is not
   * known they are dropped, because no hit may be counted twice.
   *
   * @param results the counts of the store, or its errors
   * @param now Unix time in milliseconds
   * @returns whether none of them has to be sent again
   */
  sent(taken: readonly UnsentHits[], results: readonly Result[], now: number): boolean {
    let areDone = true;
    for (const [index, unsent] of taken.entries()) {
      const result = results[index];
      if (!(result instanceof DecisionError)) continue;
      if (isUncounted(result)) {
        areDone = false;
        this.#keep(unsent, unsent.end);
      } else this.#drop(unsent);
    }
    this.recordStoreCounts(taken, results, now);
    return areDone;
  }

  /** A server is no longer used: what is to be added to it is added to those that have its keys now. */
  removeServer(server: object): void {
    const unsent = [...(this.#unsent.get(server) ?? [])];
    for (const [known] of unsent) this.#remove(server, known);
    for (const [, each] of unsent) this.#keep(each, each.end);
  }

  /** How many hits are to be added. */
  get unsentHits(): number {
    let hits = 0;
    for (const ofServer of this.#unsent.values()) for (const unsent of ofServer.values()) hits += Math.abs(unsent.hits);
    return hits;
  }

  #unsentOf(operation: Counted): UnsentHits | undefined {
    return this.#unsent.get(this.#options.serverOf(operation))?.get(tableKey(operation.key));
  }

  #keep(operation: Operation, end: number): void {
    const present = this.#unsentOf(operation);
    if (present !== undefined) {
      present.hits += operation.hits;
      if (end > present.end) [present.end, present.limit] = [end, operation.limit];
      return;
    }
    const own = ownText(operation.key);
    const bytes = bytesOf(own);
    if (this.#unsentBytes + bytes > MAX_BYTES) return this.#drop(operation);
    this.#unsentBytes += bytes;
    const server = this.#options.serverOf(operation);
    let ofServer = this.#unsent.get(server);
    if (ofServer === undefined) this.#unsent.set(server, (ofServer = new Map()));
    ofServer.set(tableKey(own), new UnsentHits(operation, own, end));
  }

  #remove(server: object, known: string): void {
    const ofServer = this.#unsent.get(server);
    const unsent = ofServer?.get(known);
    if (ofServer === undefined || unsent === undefined) return;
    this.#unsentBytes -= bytesOf(unsent.key);
    ofServer.delete(known);
    if (ofServer.size === 0) this.#unsent.delete(server);
  }

  #drop({ hits }: Operation): void {
    this.#options.dropped.add(Math.abs(hits));
  }

  #sweep(nowSeconds: number): void {
    if (nowSeconds <= this.#swept && nowSeconds > this.#swept - TOLERANCE) return;
    this.#swept = nowSeconds;
    this.#counts.removeOutside((nowSeconds - GRACE) * 1000, Infinity);
    for (const [server, ofServer] of this.#unsent) {
      for (const [known, { end }] of ofServer) if (end <= nowSeconds) this.#remove(server, known);
    }
  }
}

/**
 * The counts to compare with the limits. The hits of the others are those that they let pass before this one, so that
 * the first hit after the last count of the store is just one more.
 */
class ScaledCounts extends TimedCounts {
  readonly #share: () => number;

  constructor(counts: ExpiringCounts, share: () => number) {
    super(counts);
    this.#share = share;
  }

  override add(counter: Counted, hits: number): number {
    const share = this.#share();
    const after = super.add(counter, hits * share);
    return hits > 0 ? after - share + 1 : after;
  }
}

function bytesOf(own: string): number {
  return KEY_OVERHEAD_BYTES + textBytes(own);
}

/** Whether hits may be added later, because they were certainly not counted. */
function isUnsent({ isSent, failure }: Operation): boolean {
  return !isSent || (failure !== undefined && isUncounted(failure));
}

/** An error of a key remains, so its hits are not sent again. */
function isUncounted({ isUncounted: wasNotCounted, isKeyError }: DecisionError): boolean {
  return wasNotCounted && !isKeyError;
}
