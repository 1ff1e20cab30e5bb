import type { Limits } from './limits';
import type { Refusal } from './refusals';
import { TokenBucket } from './token-bucket';

/**
 * What one connection may still cost us without giving anything in return. Each method charges one thing; the first
 * charge that is not covered ends the connection through `exhausted`, with ENHANCE_YOUR_CALM.
 */
export class AbuseLimits {
  readonly #limits: Limits;
  readonly #exhausted: (refusal: Refusal, message: string) => void;
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

  constructor(limits: Limits, exhausted: (refusal: Refusal, message: string) => void) {
    this.#limits = limits;
    this.#exhausted = exhausted;
    this.#resets = new TokenBucket(limits.resets);
    this.#faults = new TokenBucket(limits.faults);
    this.#settings = new TokenBucket(limits.settings);
    this.#smallData = new TokenBucket(limits.smallData);
  }

  /** The peer opened a stream. */
  opened(): void {
    this.#streams += 1;
  }

  /** We answered a call to its end. */
  answered(): void {
    this.#resets.giveBack(1);
  }

  /** We sent HEADERS. */
  sentHeaders(): void {
    this.#sentSincePing = true;
  }

  sentData(): void {
    this.#sentSincePing = true;
    this.#dataFrames += 1;
  }

  /** The peer reset a stream whose work had not begun (CVE-2023-44487). */
  chargeReset(now: number): void {
    if (!this.#resets.take(now)) this.#exhausted('rapid_reset', 'too many streams reset');
  }

  /** An error that stays on its stream, or a frame that costs work and carries none (CVE-2025-8671, CVE-2019-9518). */
  chargeFault(now: number): void {
    if (!this.#faults.take(now)) this.#exhausted('faults', 'too many faults');
  }

  /** A frame that is allowed and means nothing here: PRIORITY, an unknown type, a setting nobody knows. */
  chargeIdleFrame(now: number): void {
    if (++this.#idleFrames > this.#limits.idleFrames + this.#streams) this.chargeFault(now);
  }

  chargeSettings(now: number): void {
    if (!this.#settings.take(now)) this.#exhausted('settings_flood', 'too many SETTINGS');
  }

  /** Envoy's formula: what the streams opened and the DATA sent can explain. */
  chargeWindowUpdate(): void {
    const units = this.#streams + 10 * this.#dataFrames;
    if (++this.#windowUpdates > this.#limits.windowUpdates + this.#limits.windowUpdatesPerUnit * units) {
      this.#exhausted('window_update_flood', 'too many WINDOW_UPDATEs');
    }
  }

  /** Keepalive policy as gRPC has it (its proposal A8): what we send clears the strikes. */
  chargePing(now: number): void {
    if (this.#sentSincePing) this.#pingStrikes = 0;
    else if (now - this.#lastPingAt < this.#limits.minPingMs) this.#pingStrikes += 1;
    this.#sentSincePing = false;
    this.#lastPingAt = now;
    // Clients that know the policy double their keepalive time on exactly these bytes.
    if (this.#pingStrikes > this.#limits.pingStrikes) this.#exhausted('ping_flood', 'too_many_pings');
  }

  /** A DATA frame that ends neither message nor stream. Returns what it cost, for {@link refundSmallData}. */
  chargeSmallData(now: number, length: number): number {
    const lacking = this.#limits.smallDataBytes - length;
    if (lacking <= 0) return 0;
    if (!this.#smallData.take(now, lacking)) this.#exhausted('data_dribble', 'messages in too small pieces');
    return lacking;
  }

  refundSmallData(charged: number): void {
    this.#smallData.giveBack(charged);
  }
}
