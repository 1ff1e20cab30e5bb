import type { FrameWriter } from '../frames/frame-writer';
import { ErrorCode, MAX_31_BITS } from '../protocol';
import type { Limits } from '../limits/limits';
import type { ConnectionControl } from '../streams/connection-control';
import type { Streams } from '../streams/streams';

/** The payload of the PING after the first GOAWAY. Its acknowledgement proves that the peer has received that GOAWAY. */
const GOAWAY_PING = Buffer.from('weirgone', 'latin1');
/** The age at which a connection is shut down varies by this fraction in either direction, so that clients do not reconnect simultaneously. */
const AGE_JITTER = 0.1;

const ShutdownPhase = {
  NOT_BEGUN: 0,
  /** The first GOAWAY has been sent. New streams are served until the peer must have received it. */
  ANNOUNCED: 1,
  /** The final GOAWAY has been sent. New streams are ignored; the open ones finish. */
  FINAL: 2,
} as const;
type ShutdownPhase = (typeof ShutdownPhase)[keyof typeof ShutdownPhase];

export interface GracefulShutdownControl extends ConnectionControl {
  /** Begins a shutdown with {@link GracefulShutdown.begin}, unless one has begun. */
  shutDown(reason: string, graceMs?: number): void;
  /** All streams have finished: ends the connection. */
  end(): void;
}

export interface GracefulShutdownParts<S> {
  readonly control: GracefulShutdownControl;
  readonly limits: Limits;
  readonly streams: Streams<S>;
  readonly writer: FrameWriter;
}

/**
 * The graceful shutdown of a connection (RFC 9113, section 6.8): a GOAWAY that permits all streams; once the peer must have
 * received it, a GOAWAY with the last stream that is served; then the open streams finish.
 */
export class GracefulShutdown<S> {
  readonly #control: GracefulShutdownControl;
  readonly #limits: Limits;
  readonly #streams: Streams<S>;
  readonly #writer: FrameWriter;
  /** The debug data of GOAWAY. */
  reason = '';
  #phase: ShutdownPhase = ShutdownPhase.NOT_BEGUN;
  /** {@link begin} has been called. */
  hasBegun = false;
  #ageDeadline: number;
  #finalDeadline = Infinity;
  #abortDeadline = Infinity;
  #idleSince: number;

  constructor({ control, limits, streams, writer }: GracefulShutdownParts<S>) {
    this.#control = control;
    this.#limits = limits;
    this.#streams = streams;
    this.#writer = writer;
    this.#ageDeadline = control.now + limits.maxAgeMs * (1 - AGE_JITTER + 2 * AGE_JITTER * Math.random());
    this.#idleSince = control.now;
  }

  /** The earliest time at which {@link isAbortDue} and {@link check} must be called. */
  get deadline(): number {
    return Math.min(
      this.#ageDeadline,
      this.#finalDeadline,
      this.#abortDeadline,
      this.#idleSince + this.#limits.maxIdleMs,
    );
  }

  /** Sends the first GOAWAY. `graceMs`: how long streams may take after the final GOAWAY before the connection is aborted. */
  begin(reason: string, graceMs: number): void {
    const control = this.#control;
    this.hasBegun = true;
    this.reason = reason;
    this.#ageDeadline = Infinity;
    if (this.#phase === ShutdownPhase.FINAL) {
      // The peer has sent GOAWAY, and ours, the final one, has been sent in answer.
      this.#abortDeadline = control.now + graceMs;
      control.wakeAt(this.#abortDeadline);
      this.#streams.notifyGoingAway();
      return;
    }
    this.#phase = ShutdownPhase.ANNOUNCED;
    this.#writer.goaway(MAX_31_BITS, ErrorCode.NO_ERROR, reason);
    this.#writer.ping(false, GOAWAY_PING);
    this.#finalDeadline = control.now + this.#limits.goawayMs;
    this.#abortDeadline = this.#finalDeadline + graceMs;
    control.wakeAt(this.#finalDeadline);
  }

  /** The peer has acknowledged a PING. */
  onPingAck(bytes: Uint8Array): void {
    if (this.#phase === ShutdownPhase.ANNOUNCED && GOAWAY_PING.equals(bytes)) this.#finalize();
  }

  /**
   * The peer has sent GOAWAY: it opens no more streams. The open ones finish, without a limit until {@link begin} is called. Its last
   * stream identifier concerns server push, which is not implemented.
   */
  onGoaway(): void {
    if (this.#phase === ShutdownPhase.FINAL) return;
    if (this.#phase === ShutdownPhase.ANNOUNCED) return this.#finalize();
    this.#phase = ShutdownPhase.FINAL;
    this.#streams.ids.stopAccepting();
    this.#writer.goaway(this.#streams.ids.lastProcessed, ErrorCode.NO_ERROR, '');
    this.#endIfIdle();
  }

  /** The last open stream has closed. */
  becameIdle(): void {
    const { now } = this.#control;
    this.#idleSince = now;
    if (this.#limits.maxIdleMs !== Infinity) this.#control.wakeAt(now + this.#limits.maxIdleMs);
    this.#endIfIdle();
  }

  /** Whether the grace is over: the connection must be aborted. */
  isAbortDue(now: number): boolean {
    return now >= this.#abortDeadline;
  }

  /** Begins or continues a shutdown whose time has come. */
  check(now: number): void {
    const control = this.#control;
    const limits = this.#limits;
    if (now >= this.#ageDeadline) control.shutDown('max_age', limits.maxAgeGraceMs);
    else if (this.#streams.size === 0 && now >= this.#idleSince + limits.maxIdleMs) control.shutDown('max_idle');
    if (now >= this.#finalDeadline) this.#finalize();
  }

  #finalize(): void {
    this.#phase = ShutdownPhase.FINAL;
    this.#streams.ids.stopAccepting();
    // The grace starts with the final GOAWAY, which is sent early if the peer answered the PING.
    this.#abortDeadline += this.#control.now - this.#finalDeadline;
    this.#finalDeadline = Infinity;
    this.#control.wakeAt(this.#abortDeadline);
    this.#writer.goaway(this.#streams.ids.lastProcessed, ErrorCode.NO_ERROR, this.reason);
    this.#streams.notifyGoingAway();
    this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (this.#phase === ShutdownPhase.FINAL && this.#streams.size === 0 && !this.#control.hasEnded) this.#control.end();
  }
}
