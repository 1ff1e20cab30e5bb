import type { FrameWriter } from '../frames/frame-writer';
import type { Limits } from '../limits/limits';
import { ErrorCode, MAX_31_BITS } from '../frames/protocol';
import type { Streams } from '../streams/streams';
import type { ConnectionControl } from '../streams/connection-control';

/** Its answer tells that the peer has seen the first GOAWAY. */
const GOAWAY_PING = Buffer.from('weirgone', 'latin1');
/** The age at which a connection ends varies by so much either way, so that a fleet does not reconnect at once. */
const AGE_JITTER = 0.1;

/** How far the end of a connection has come. */
const ShutdownPhase = {
  STAYING: 0,
  /** The peer knows; new streams are still served until it must have seen it. */
  ANNOUNCED: 1,
  /** New streams are ignored; the open ones finish. */
  FINAL: 2,
} as const;
type ShutdownPhase = (typeof ShutdownPhase)[keyof typeof ShutdownPhase];

export interface GracefulShutdownOwner extends ConnectionControl {
  /** See {@link GracefulShutdown.announce}. */
  leave(reason: string, graceMs?: number): void;
  /** All that was promised has been served. */
  sayGoodbye(): void;
}

/**
 * The graceful end (RFC 9113, section 6.8): GOAWAY that admits everything, GOAWAY that names the last stream once the
 * peer must have seen the first, then the open streams finish.
 */
export class GracefulShutdown<S> {
  readonly #owner: GracefulShutdownOwner;
  readonly #streams: Streams<S>;
  readonly #writer: FrameWriter;
  readonly #limits: Limits;
  /** For the peer's log. */
  reason = '';
  #phase: ShutdownPhase = ShutdownPhase.STAYING;
  #ageDeadline: number;
  #finalDeadline = Infinity;
  #cutDeadline = Infinity;
  #idleSince: number;

  constructor(owner: GracefulShutdownOwner, streams: Streams<S>, writer: FrameWriter, limits: Limits) {
    this.#owner = owner;
    this.#streams = streams;
    this.#writer = writer;
    this.#limits = limits;
    this.#ageDeadline = owner.now + limits.maxAgeMs * (1 - AGE_JITTER + 2 * AGE_JITTER * Math.random());
    this.#idleSince = owner.now;
  }

  get hasBegun(): boolean {
    return this.#phase !== ShutdownPhase.STAYING;
  }

  get deadline(): number {
    return Math.min(
      this.#ageDeadline,
      this.#finalDeadline,
      this.#cutDeadline,
      this.#idleSince + this.#limits.maxIdleMs,
    );
  }

  /** The streams that are left after this, counted from the final GOAWAY, are to be cut. */
  announce(reason: string, graceMs: number): void {
    const owner = this.#owner;
    this.#phase = ShutdownPhase.ANNOUNCED;
    this.reason = reason;
    this.#writer.goaway(MAX_31_BITS, ErrorCode.NO_ERROR, reason);
    this.#writer.ping(false, GOAWAY_PING);
    this.#ageDeadline = Infinity;
    this.#finalDeadline = owner.now + this.#limits.goawayMs;
    this.#cutDeadline = this.#finalDeadline + graceMs;
    owner.wakeAt(this.#finalDeadline);
  }

  /** A PING of ours was answered. */
  onPingAck(bytes: Uint8Array): void {
    if (this.#phase === ShutdownPhase.ANNOUNCED && GOAWAY_PING.equals(bytes)) this.#finalize();
  }

  /** The peer opens nothing more; what is open finishes. Its last-stream-id is about pushes, which we never make. */
  onGoaway(): void {
    if (this.#phase === ShutdownPhase.FINAL) return;
    this.#phase = ShutdownPhase.FINAL;
    this.#finalDeadline = Infinity;
    this.#ageDeadline = Infinity;
    this.#streams.numbers.serveNoMore();
    this.#writer.goaway(this.#streams.numbers.lastServed, ErrorCode.NO_ERROR, '');
    this.#finish();
  }

  /** The last open stream has closed. */
  becameIdle(): void {
    const { now } = this.#owner;
    this.#idleSince = now;
    if (this.#limits.maxIdleMs !== Infinity) this.#owner.wakeAt(now + this.#limits.maxIdleMs);
    this.#finish();
  }

  isCutDue(now: number): boolean {
    return now >= this.#cutDeadline;
  }

  check(now: number): void {
    const owner = this.#owner;
    const limits = this.#limits;
    if (now >= this.#ageDeadline) owner.leave('max_age', limits.maxAgeGraceMs);
    else if (this.#streams.size === 0 && now >= this.#idleSince + limits.maxIdleMs) owner.leave('max_idle');
    if (now >= this.#finalDeadline) this.#finalize();
  }

  #finalize(): void {
    this.#phase = ShutdownPhase.FINAL;
    this.#streams.numbers.serveNoMore();
    // The grace counts from here, however long the peer took.
    this.#cutDeadline += this.#owner.now - this.#finalDeadline;
    this.#finalDeadline = Infinity;
    this.#owner.wakeAt(this.#cutDeadline);
    this.#writer.goaway(this.#streams.numbers.lastServed, ErrorCode.NO_ERROR, this.reason);
    this.#streams.askToLeave();
    this.#finish();
  }

  #finish(): void {
    if (this.#phase === ShutdownPhase.FINAL && this.#streams.size === 0 && !this.#owner.isOver)
      this.#owner.sayGoodbye();
  }
}
