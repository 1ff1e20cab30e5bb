import type { FrameWriter } from './frame-writer';
import { LIMITS, type Limits } from './limits';
import { ErrorCode, MAX_31_BITS } from './protocol';
import type { StreamTable } from './stream-table';

/**
 * The payload of the PING after the first GOAWAY. Its acknowledgement proves that the peer has received that GOAWAY.
 */
const GOAWAY_PING = Buffer.from('weirgone', 'latin1');
/** The payload of keepalive PINGs. */
const KEEPALIVE_PING = Buffer.from('weiralve', 'latin1');
/**
 * The age at which a connection is shut down varies by this fraction in either direction, so that clients do not
 * reconnect simultaneously.
 */
const AGE_JITTER = 0.1;

const Phase = {
  OPEN: 0,
  /** The first GOAWAY has been sent. New streams are served until the peer must have received it. */
  ANNOUNCED: 1,
  /** The final GOAWAY has been sent. New streams are ignored; the open ones finish. */
  FINAL: 2,
} as const;
type Phase = (typeof Phase)[keyof typeof Phase];

/**
 * The clock of a connection, everything that it waits for, and its graceful shutdown (RFC 9113, section 6.8): a GOAWAY
 * that permits all streams; once the peer must have received it, a GOAWAY with the last stream that is served; then the
 * open streams finish. Times are milliseconds of the server's monotonic clock.
 */
export class ConnectionDeadlines {
  /** The time at the beginning of this turn. */
  now: number;
  /**
   * The final GOAWAY of an end that is not graceful has been sent, or the transport is closed: no more input is read.
   */
  hasEnded = false;
  /** No deadline is earlier. */
  nextWake = 0;

  /** When the first SETTINGS of the peer, and its acknowledgement of ours, must have been received. */
  preface: number;
  settingsAck: number;
  /** When an incomplete header block must be complete. */
  headerBlock = Infinity;
  /** The earliest {@link Stream.expiresAt}. */
  expiry = Infinity;
  /** When the earliest output that waits for a window is overdue. */
  response = Infinity;
  /**
   * When the socket must have accepted some output: two peers that both stop reading until their own output is read
   * would wait forever.
   */
  unread = Infinity;
  /** When the connection is too old. */
  age: number;
  /** When the final GOAWAY follows. */
  final = Infinity;
  /** When the streams that are still open are ended. */
  abort = Infinity;
  /** When the transport is destroyed, after the connection has ended. */
  linger = Infinity;
  /** When something was last received. */
  lastRead: number;
  /** When the peer must have answered a keepalive PING. */
  #pingAnswer = Infinity;

  /** The debug data of GOAWAY. */
  reason = '';
  /** The server stops: calls that stay open are stopped at the final GOAWAY. */
  isDraining = false;
  /** {@link begin} has been called. */
  hasBegun = false;
  #phase: Phase = Phase.OPEN;

  /** @param prefaceMs the part of {@link LIMITS.prefaceMs} that is left */
  constructor(now: number, { maxAgeMs }: Limits, prefaceMs: number) {
    this.now = now;
    this.preface = now + prefaceMs;
    this.settingsAck = now + prefaceMs + LIMITS.settingsAckMs;
    this.age = now + maxAgeMs * (1 - AGE_JITTER + 2 * AGE_JITTER * Math.random());
    this.lastRead = now;
  }

  /** The earliest time at which anything is due. */
  next(): number {
    return Math.min(
      this.preface,
      this.settingsAck,
      this.headerBlock,
      this.expiry,
      this.response,
      this.unread,
      this.age,
      this.final,
      this.abort,
      this.linger,
      this.#pingAnswer === Infinity ? this.lastRead + LIMITS.keepaliveMs : this.#pingAnswer,
    );
  }

  /** Must be called for each deadline that is set between two ticks. */
  wakeAt(time: number): void {
    if (time < this.nextWake) this.nextWake = time;
  }

  // ---------------------------------------------------------------- keepalive

  /** Bytes have been received from the peer: any byte counts as the answer to a PING. */
  received(now: number): void {
    this.now = now;
    this.lastRead = now;
  }

  /**
   * Sends a PING to a peer that has been silent for {@link LIMITS.keepaliveMs}. Returns false if it has not answered
   * one in time. `isPaused`: reading is paused, so that no answer can be received.
   */
  keepsAlive(writer: FrameWriter, isPaused: boolean): boolean {
    const { now } = this;
    if (now >= this.#pingAnswer) {
      const isSilent = this.lastRead < this.#pingAnswer - LIMITS.keepaliveTimeoutMs;
      if (isSilent && !isPaused) return false;
      this.#pingAnswer = Infinity;
    }
    if (this.#pingAnswer === Infinity && now >= this.lastRead + LIMITS.keepaliveMs && !isPaused) {
      this.#pingAnswer = now + LIMITS.keepaliveTimeoutMs;
      writer.ping(false, KEEPALIVE_PING);
    }
    return true;
  }

  // ---------------------------------------------------------------- graceful shutdown

  get isFinal(): boolean {
    return this.#phase === Phase.FINAL;
  }

  /** Sends the first GOAWAY. `graceMs`: how long streams may take after the final GOAWAY before they are ended. */
  begin(writer: FrameWriter, reason: string, graceMs: number): void {
    this.hasBegun = true;
    this.reason = reason;
    this.age = Infinity;
    if (this.isFinal) {
      // The peer has sent GOAWAY, and ours, the final one, has been sent in answer.
      this.abort = this.now + graceMs;
      return this.wakeAt(this.abort);
    }
    this.#phase = Phase.ANNOUNCED;
    writer.goaway(MAX_31_BITS, ErrorCode.NO_ERROR, reason);
    writer.ping(false, GOAWAY_PING);
    this.final = this.now + LIMITS.goawayMs;
    this.abort = this.final + graceMs;
    this.wakeAt(this.final);
  }

  /**
   * Whether a PING that the peer acknowledges shows that it has received the first GOAWAY: {@link Streams.finalize}
   * must then be called.
   */
  isAnnounced(acknowledged: Uint8Array): boolean {
    return this.#phase === Phase.ANNOUNCED && GOAWAY_PING.equals(acknowledged);
  }

  /** Sends the final GOAWAY. */
  finalize(writer: FrameWriter, table: StreamTable): void {
    this.#phase = Phase.FINAL;
    table.stopAccepting();
    // The grace starts with the final GOAWAY, which is sent early if the peer answered the PING.
    if (this.final !== Infinity) this.abort += this.now - this.final;
    this.final = Infinity;
    this.wakeAt(this.abort);
    writer.goaway(table.lastProcessed, ErrorCode.NO_ERROR, this.reason);
  }
}
