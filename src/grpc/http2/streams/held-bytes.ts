import type { Limits } from '../limits/limits';
import type { Stream } from './stream';

/** A connection, as a holder of bytes of incomplete requests. */
export interface Holder<S> {
  /** The bytes that it holds. */
  held: number;
  /** Of these, the bytes that it must give up when others need them: those of requests that are not complete. */
  reclaimable: number;
  /** Where it is in the order of {@link HeldBytes}, which alone writes it. */
  heldClass: number;
  /** The request that holds the most of {@link reclaimable}. */
  largestHolding(): Stream<S> | undefined;
  /** Ends an incomplete request, and thereby releases its bytes. */
  displace(stream: Stream<S>): void;
}

type HeldLimits = Pick<Limits, 'maxHeldBytes' | 'maxHeldBytesPerConnection' | 'heldStallMs'>;

/** The holders are ordered by this fraction of {@link Limits.maxHeldBytesPerConnection}. */
const CLASSES = 1_024;
/** A request that receives fewer bytes than this in {@link Limits.heldStallMs} makes no progress. */
const PROGRESS_BYTES = 16 * 1_024;
/** The part of the pool above which requests that make no progress are ended. */
const SCARCE = 1 / 2;
/** The part of {@link Limits.heldStallMs} that a request has while the pool is full. */
const STALL_WHEN_FULL = 1 / 4;

/**
 * The memory for requests that are kept beyond a turn, shared by all connections. While it is full, a connection that needs
 * more displaces a request of the connection that holds the most, as long as it would still hold less; and otherwise the
 * request that has made no progress for the longest time. So every connection can use an equal share, and a connection that
 * sends its requests at once can use more than that. All operations take constant time.
 */
export class HeldBytes<S> {
  /** The bytes that all connections hold. */
  total = 0;
  readonly #limits: HeldLimits;
  readonly #classBytes: number;
  /** The holders by {@link Holder.heldClass}. Those of class 0, which hold next to nothing, are in no set. */
  readonly #classes: (Set<Holder<S>> | undefined)[] = [];
  /** No holder has a higher class. */
  #highest = 0;
  /** The incomplete requests, those with the least recent progress first. */
  readonly #byProgress = new Set<Stream<S>>();

  constructor(limits: HeldLimits) {
    this.#limits = limits;
    this.#classBytes = Math.ceil(limits.maxHeldBytesPerConnection / CLASSES);
  }

  /** Returns false, and changes nothing, if the bytes must not be kept. */
  hold(holder: Holder<S>, stream: Stream<S>, bytes: number, now: number): boolean {
    // An empty message holds nothing, and must not be among those that can be displaced: displacing it would release nothing.
    if (bytes === 0) return true;
    const limits = this.#limits;
    if (holder.held + bytes > limits.maxHeldBytesPerConnection) return false;
    while (this.total + bytes > limits.maxHeldBytes) {
      const displaced = this.#findRoom(holder, holder.held + bytes, now);
      if (displaced === undefined || displaced === stream) return false;
      displaced.connection.displace(displaced);
      // The connection may have ended together with the displaced request.
      if (stream.isClosed) return true;
    }
    this.total += bytes;
    stream.held += bytes;
    holder.held += bytes;
    if (!stream.isRequestComplete) {
      holder.reclaimable += bytes;
      this.#classify(holder);
      this.#noteProgress(stream, bytes, now);
    }
    return true;
  }

  release(holder: Holder<S>, stream: Stream<S>, bytes: number): void {
    this.total -= bytes;
    stream.held -= bytes;
    holder.held -= bytes;
    if (stream.isRequestComplete) return;
    holder.reclaimable -= bytes;
    this.#classify(holder);
    if (stream.held === 0) this.#byProgress.delete(stream);
  }

  /** The request is complete: what it holds, now and later, is not taken away any more. */
  complete(holder: Holder<S>, stream: Stream<S>): void {
    if (stream.held === 0) return;
    holder.reclaimable -= stream.held;
    this.#classify(holder);
    this.#byProgress.delete(stream);
  }

  /** Ends the requests that make no progress while memory is scarce. Must be called several times a second. */
  check(now: number): void {
    const { maxHeldBytes, heldStallMs } = this.#limits;
    while (this.total > maxHeldBytes * SCARCE) {
      const stalled = this.#stalledSince(now - heldStallMs);
      if (stalled === undefined) return;
      stalled.connection.displace(stalled);
    }
  }

  /** The request to displace, so that `holder` can hold `wanted` bytes altogether. */
  #findRoom(holder: Holder<S>, wanted: number, now: number): Stream<S> | undefined {
    const largest = this.#largestExcept(holder);
    if (largest !== undefined && largest.reclaimable > wanted) return largest.largestHolding();
    return this.#stalledSince(now - this.#limits.heldStallMs * STALL_WHEN_FULL);
  }

  #largestExcept(holder: Holder<S>): Holder<S> | undefined {
    while (this.#highest > 0 && (this.#classes[this.#highest]?.size ?? 0) === 0) this.#highest -= 1;
    for (const candidate of this.#classes[this.#highest] ?? []) if (candidate !== holder) return candidate;
    return undefined;
  }

  #stalledSince(time: number): Stream<S> | undefined {
    for (const stream of this.#byProgress) return stream.progressAt <= time ? stream : undefined;
    return undefined;
  }

  #classify(holder: Holder<S>): void {
    const next = Math.floor(holder.reclaimable / this.#classBytes);
    if (next === holder.heldClass) return;
    this.#classes[holder.heldClass]?.delete(holder);
    holder.heldClass = next;
    if (next === 0) return;
    (this.#classes[next] ??= new Set()).add(holder);
    this.#highest = Math.max(this.#highest, next);
  }

  #noteProgress(stream: Stream<S>, bytes: number, now: number): void {
    const isFirst = stream.held === bytes;
    stream.progressBytes += bytes;
    if (!isFirst && stream.progressBytes < PROGRESS_BYTES) return;
    stream.progressBytes = 0;
    stream.progressAt = now;
    this.#byProgress.delete(stream);
    this.#byProgress.add(stream);
  }
}
