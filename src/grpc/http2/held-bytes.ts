import { LIMITS, type Limits } from './limits';
import type { Stream } from './stream';

/** A request that receives fewer bytes than this in {@link LIMITS.heldStallMs} makes no progress. */
const PROGRESS_BYTES = 16 * 1_024;
/** The part of the pool above which requests that make no progress are ended. */
const SCARCE = 1 / 2;
/** The part of {@link LIMITS.heldStallMs} that a request has while the pool is full. */
const STALL_WHEN_FULL = 1 / 4;

/** How many requests are examined for one that gives way, so that this takes constant time. */
const MAX_EXAMINED = 16;

/**
 * The memory for requests that are kept beyond a turn, shared by all connections. While it is full, a request that
 * needs more displaces an incomplete one that makes no progress or holds more: of those whose progress is the least
 * recent, the first.
 */
export class HeldBytes {
  /** The bytes that all connections hold. */
  total = 0;
  readonly #max: number;
  /** The incomplete requests, those with the least recent progress first. */
  readonly #incomplete = new Set<Stream>();

  constructor({ maxHeldBytes }: Pick<Limits, 'maxHeldBytes'>) {
    this.#max = maxHeldBytes;
  }

  /** Returns false, and changes nothing, if the bytes must not be kept. The stream may be closed afterwards. */
  hold(stream: Stream, bytes: number, now: number): boolean {
    while (this.total + bytes > this.#max) {
      if (!this.#displaceFor(stream, stream.held + bytes, now - LIMITS.heldStallMs * STALL_WHEN_FULL)) return false;
      // The connection may have ended together with the displaced request.
      if (stream.isClosed) return true;
    }
    this.total += bytes;
    stream.held += bytes;
    if (!stream.isRequestComplete) this.#noteProgress(stream, bytes, now);
    return true;
  }

  release(stream: Stream, bytes: number): void {
    this.total -= bytes;
    stream.held -= bytes;
    if (stream.held === 0) this.#incomplete.delete(stream);
  }

  /** The request is complete: what it holds, now and later, is not taken away any more. */
  complete(stream: Stream): void {
    stream.isRequestComplete = true;
    if (stream.held > 0) this.#incomplete.delete(stream);
  }

  /** Ends the requests that make no progress while memory is scarce. Must be called several times a second. */
  check(now: number): void {
    for (const stream of this.#incomplete) {
      if (this.total <= this.#max * SCARCE || stream.progressAt > now - LIMITS.heldStallMs) return;
      this.#displace(stream);
    }
  }

  /**
   * Ends a request that has made no progress since `time` or holds more than `wanted` bytes. Returns false if there is
   * none.
   */
  #displaceFor(stream: Stream, wanted: number, time: number): boolean {
    let examined = 0;
    for (const other of this.#incomplete) {
      if (other !== stream && (other.progressAt <= time || other.held > wanted)) {
        this.#displace(other);
        return true;
      }
      if ((examined += 1) === MAX_EXAMINED) return false;
    }
    return false;
  }

  #displace(stream: Stream): void {
    this.#incomplete.delete(stream);
    stream.call?.stop('memory');
  }

  #noteProgress(stream: Stream, bytes: number, now: number): void {
    const isFirst = stream.held === bytes;
    stream.progressBytes += bytes;
    if (!isFirst && stream.progressBytes < PROGRESS_BYTES) return;
    stream.progressBytes = 0;
    stream.progressAt = now;
    this.#incomplete.delete(stream);
    this.#incomplete.add(stream);
  }
}
