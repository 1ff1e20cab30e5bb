import { LIMITS, type Limits, type Rate, type Rejection } from './limits';

/**
 * Limits on what a peer may cost the server without using it: floods of frames that RFC 9113 permits. One instance per
 * connection. Each method charges one kind of cost and returns false if that is over its limit: {@link exceeded} then
 * names the first limit that was, and the connection must end with ENHANCE_YOUR_CALM.
 */
export class AbuseLimits {
  readonly #pingStrikesPermitted: number;
  readonly #resets = new TokenBucket(LIMITS.resets);
  readonly #faults = new TokenBucket(LIMITS.faults);
  readonly #settings = new TokenBucket(LIMITS.settings);
  readonly #smallData = new TokenBucket(LIMITS.smallData);
  /** Created with the first message: few connections have one. */
  #messages: TokenBucket | undefined;
  /** Streams that the peer has opened. */
  streams = 0;
  #windowUpdates = 0;
  #idleFrames = 0;
  #dataFrames = 0;
  #pingStrikes = 0;
  #lastPingAt = -Infinity;
  #sentSincePing = true;
  exceeded: Rejection | undefined;
  /** The debug data of GOAWAY. */
  message = '';

  constructor({ pingStrikes }: Pick<Limits, 'pingStrikes'>) {
    this.#pingStrikesPermitted = pingStrikes;
  }

  /** A response was sent completely. */
  responseSent(): void {
    this.#resets.giveBack(1);
  }

  /** A HEADERS frame was sent. */
  headersSent(): void {
    this.#sentSincePing = true;
  }

  /** A DATA frame was sent. */
  dataSent(): void {
    this.#sentSincePing = true;
    this.#dataFrames += 1;
  }

  /** The peer reset a stream whose work had not begun (CVE-2023-44487). */
  chargeReset(now: number): boolean {
    return this.#resets.take(now) || this.exceed('rapid_reset', 'too many streams reset');
  }

  /** A stream error, or a frame that costs work without carrying any (CVE-2025-8671, CVE-2019-9518). */
  chargeFault(now: number): boolean {
    return this.#faults.take(now) || this.exceed('faults', 'too many faults');
  }

  /** A frame that is permitted and has no effect here: PRIORITY, an unknown frame type, an unknown setting. */
  chargeIdleFrame(now: number): boolean {
    this.#idleFrames += 1;
    return this.#idleFrames <= LIMITS.idleFrames + this.streams || this.chargeFault(now);
  }

  chargeSettings(now: number): boolean {
    return this.#settings.take(now) || this.exceed('settings_flood', 'too many SETTINGS');
  }

  /** As Envoy counts them: the streams opened and the DATA frames sent justify a number of WINDOW_UPDATEs. */
  chargeWindowUpdate(): boolean {
    const units = this.streams + 10 * this.#dataFrames;
    this.#windowUpdates += 1;
    if (this.#windowUpdates <= LIMITS.windowUpdates + LIMITS.windowUpdatesPerUnit * units) return true;
    return this.exceed('window_update_flood', 'too many WINDOW_UPDATEs');
  }

  /** The keepalive policy of gRPC (its proposal A8): HEADERS or DATA that we send clear the strikes. */
  chargePing(now: number): boolean {
    if (this.#sentSincePing) this.#pingStrikes = 0;
    else if (now - this.#lastPingAt < LIMITS.minPingMs) this.#pingStrikes += 1;
    this.#sentSincePing = false;
    this.#lastPingAt = now;
    // Clients that implement the policy double their keepalive interval on exactly this text.
    return this.#pingStrikes <= this.#pingStrikesPermitted || this.exceed('ping_flood', 'too_many_pings');
  }

  /**
   * A DATA frame that ends neither a message nor the stream. Returns the charge, to be given to
   * {@link refundSmallData}.
   */
  chargeSmallData(now: number, length: number): number {
    const lacking = LIMITS.smallDataBytes - length;
    if (lacking <= 0) return 0;
    if (!this.#smallData.take(now, lacking)) this.exceed('data_dribble', 'messages in too small pieces');
    return lacking;
  }

  refundSmallData(charged: number): void {
    this.#smallData.giveBack(charged);
  }

  /**
   * A message of a call that may send any number of them. If false is returned, that call must end, not the connection.
   */
  takeMessage(now: number): boolean {
    return (this.#messages ??= new TokenBucket(LIMITS.messages)).take(now);
  }

  exceed(limit: Rejection, message: string): false {
    if (this.exceeded === undefined) this.message = message;
    this.exceeded ??= limit;
    return false;
  }
}

/** Allows a burst and then a steady rate. Times are milliseconds of a monotonic clock. */
class TokenBucket {
  readonly #rate: Rate;
  #tokens: number;
  #refilledAt = -Infinity;

  constructor(rate: Rate) {
    this.#rate = rate;
    this.#tokens = rate.burst;
  }

  /** Takes tokens. Returns false, and takes none, if there are not enough. */
  take(now: number, tokens = 1): boolean {
    if (this.#tokens < tokens) {
      const refilled = ((now - this.#refilledAt) / 1_000) * this.#rate.perSecond;
      this.#tokens = Math.min(this.#rate.burst, this.#tokens + refilled);
      this.#refilledAt = now;
    } else if (this.#tokens === this.#rate.burst) this.#refilledAt = now;
    if (this.#tokens < tokens) return false;
    this.#tokens -= tokens;
    return true;
  }

  giveBack(tokens: number): void {
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + tokens);
  }
}
