import type { Limits } from './limits';
import type { Rejection } from './rejections';
import { TokenBucket } from './token-bucket';

/**
 * Limits on what a peer may cost the server without using it: floods of frames that RFC 9113 permits. One instance per
 * connection. Each method charges one kind of cost; the first charge over its limit calls `exceeded`, which ends the
 * connection with ENHANCE_YOUR_CALM.
 */
export class AbuseLimits {
  readonly #limits: Limits;
  readonly #exceeded: (rejection: Rejection, message: string) => void;
  readonly #resets: TokenBucket;
  readonly #faults: TokenBucket;
  readonly #settings: TokenBucket;
  readonly #smallData: TokenBucket;
  #windowUpdates = 0;
  #idleFrames = 0;
  #streams = 0;
  #dataFrames = 0;
  #pingStrikes = 0;
  #lastPingAt = -Infinity;
  #sentSincePing = true;

  constructor(limits: Limits, exceeded: (rejection: Rejection, message: string) => void) {
    this.#limits = limits;
    this.#exceeded = exceeded;
    this.#resets = new TokenBucket(limits.resets);
    this.#faults = new TokenBucket(limits.faults);
    this.#settings = new TokenBucket(limits.settings);
    this.#smallData = new TokenBucket(limits.smallData);
  }

  /** The peer opened a stream. */
  streamOpened(): void {
    this.#streams += 1;
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
  chargeReset(now: number): void {
    if (!this.#resets.take(now)) this.#exceeded('rapid_reset', 'too many streams reset');
  }

  /** A stream error, or a frame that costs work without carrying any (CVE-2025-8671, CVE-2019-9518). */
  chargeFault(now: number): void {
    if (!this.#faults.take(now)) this.#exceeded('faults', 'too many faults');
  }

  /** A frame that is permitted and has no effect here: PRIORITY, an unknown frame type, an unknown setting. */
  chargeIdleFrame(now: number): void {
    this.#idleFrames += 1;
    if (this.#idleFrames > this.#limits.idleFrames + this.#streams) this.chargeFault(now);
  }

  chargeSettings(now: number): void {
    if (!this.#settings.take(now)) this.#exceeded('settings_flood', 'too many SETTINGS');
  }

  /** As Envoy counts them: the streams opened and the DATA frames sent justify a number of WINDOW_UPDATEs. */
  chargeWindowUpdate(): void {
    const units = this.#streams + 10 * this.#dataFrames;
    this.#windowUpdates += 1;
    if (this.#windowUpdates > this.#limits.windowUpdates + this.#limits.windowUpdatesPerUnit * units) {
      this.#exceeded('window_update_flood', 'too many WINDOW_UPDATEs');
    }
  }

  /** The keepalive policy of gRPC (its proposal A8): HEADERS or DATA that we send clear the strikes. */
  chargePing(now: number): void {
    if (this.#sentSincePing) this.#pingStrikes = 0;
    else if (now - this.#lastPingAt < this.#limits.minPingMs) this.#pingStrikes += 1;
    this.#sentSincePing = false;
    this.#lastPingAt = now;
    // Clients that implement the policy double their keepalive interval on exactly this text.
    if (this.#pingStrikes > this.#limits.pingStrikes) this.#exceeded('ping_flood', 'too_many_pings');
  }

  /** A DATA frame that ends neither a message nor the stream. Returns the charge, to be given to {@link refundSmallData}. */
  chargeSmallData(now: number, length: number): number {
    const lacking = this.#limits.smallDataBytes - length;
    if (lacking <= 0) return 0;
    if (!this.#smallData.take(now, lacking)) this.#exceeded('data_dribble', 'messages in too small pieces');
    return lacking;
  }

  refundSmallData(charged: number): void {
    this.#smallData.giveBack(charged);
  }
}
