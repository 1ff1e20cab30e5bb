import type { FrameWriter } from '../frames/frame-writer';
import type { Limits } from '../limits/limits';

/** Tells the answer apart from that to other PINGs of ours. */
const KEEPALIVE_PING = Buffer.from('weiralve', 'latin1');

/** Asks a silent peer by PING whether it is there. Any byte is an answer. */
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

  /** The time at which {@link isAlive} has something to do. */
  get deadline(): number {
    return this.#answerDeadline === Infinity ? this.#lastRead + this.#limits.keepaliveMs : this.#answerDeadline;
  }

  /** Bytes came from the peer. */
  heard(now: number): void {
    this.#lastRead = now;
  }

  /** False when the peer was asked and has not answered in time. `isPaused`: we do not read, so no answer can reach us. */
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
