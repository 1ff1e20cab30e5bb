import type { Limits } from '../limits/limits';
import type { SendQueue } from '../streams/send-queue';
import type { ConnectionControl, Transport } from '../streams/connection-control';

/** While a peer does not read what we send, we do not read what it sends. */
export class BackPressure {
  readonly #whole: ConnectionControl;
  readonly #outflow: Pick<SendQueue<unknown>, 'unsent'>;
  readonly #wire: Transport;
  readonly #limits: Limits;
  isPaused = false;
  /** Two peers that both stop reading while their own output is stuck would wait for each other for ever: hence a time. */
  deadline = Infinity;
  #unsentBefore = 0;

  constructor(whole: ConnectionControl, outflow: Pick<SendQueue<unknown>, 'unsent'>, wire: Transport, limits: Limits) {
    this.#whole = whole;
    this.#outflow = outflow;
    this.#wire = wire;
    this.#limits = limits;
  }

  /** Too much output waits for the socket. */
  pause(): void {
    if (this.isPaused) return;
    this.isPaused = true;
    this.#wire.pause();
    this.#unsentBefore = this.#outflow.unsent;
    this.deadline = this.#whole.now + this.#limits.unreadOutputMs;
    this.#whole.wakeAt(this.deadline);
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.#wire.resume();
  }

  /** The socket took all that was written. */
  drained(): void {
    this.deadline = Infinity;
  }

  /** Whether the peer took nothing for so long that it has to be given up. */
  isStuck(now: number): boolean {
    if (now < this.deadline) return false;
    const { unsent } = this.#outflow;
    if (unsent >= this.#unsentBefore) return true;
    this.#unsentBefore = unsent;
    this.deadline = now + this.#limits.unreadOutputMs;
    return false;
  }
}
