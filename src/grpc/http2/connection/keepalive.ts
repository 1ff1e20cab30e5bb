import type { FrameWriter } from '../frames/frame-writer';
import type { Limits } from '../limits/limits';

/** The payload of keepalive PINGs. */
const KEEPALIVE_PING = Buffer.from('weiralve', 'latin1');

/** Sends a PING to a peer that has been silent for {@link Limits.keepaliveMs}. Any byte counts as an answer. */
export class Keepalive {
  readonly #writer: FrameWriter;
  readonly #limits: Limits;
  #lastRead: number;
  #answerDeadline = Infinity;

  constructor(writer: FrameWriter, limits: Limits, lastRead: number) {
    this.#writer = writer;
    this.#limits = limits;
    this.#lastRead = lastRead;
  }

  /** The earliest time at which {@link isAlive} must be called. */
  get deadline(): number {
    return this.#answerDeadline === Infinity ? this.#lastRead + this.#limits.keepaliveMs : this.#answerDeadline;
  }

  /** Bytes have been received from the peer. */
  received(now: number): void {
    this.#lastRead = now;
  }

  /**
   * Sends a PING if one is due. Returns false if the peer has not answered one in time. `isPaused`: reading is paused, so that
   * no answer can be received.
   */
  isAlive(now: number, isPaused: boolean): boolean {
    if (now >= this.#answerDeadline) {
      const isSilent = this.#lastRead < this.#answerDeadline - this.#limits.keepaliveTimeoutMs;
      if (isSilent && !isPaused) return false;
      this.#answerDeadline = Infinity;
    }
    if (this.#answerDeadline === Infinity && now >= this.#lastRead + this.#limits.keepaliveMs && !isPaused) {
      this.#answerDeadline = now + this.#limits.keepaliveTimeoutMs;
      this.#writer.ping(false, KEEPALIVE_PING);
    }
    return true;
  }
}
