import type { Limits } from '../limits/limits';
import type { ConnectionControl, Transport } from '../streams/connection-control';
import type { SendQueue } from '../streams/send-queue';

export interface BackPressureParts {
  readonly control: Pick<ConnectionControl, 'now' | 'wakeAt'>;
  readonly limits: Limits;
  readonly sendQueue: Pick<SendQueue<unknown>, 'accepted'>;
  readonly transport: Transport;
}

/** Pauses reading while the peer does not read our output. */
export class BackPressure {
  readonly #control: BackPressureParts['control'];
  readonly #limits: Limits;
  readonly #sendQueue: BackPressureParts['sendQueue'];
  readonly #transport: Transport;
  isPaused = false;
  /** When {@link isStuck} must be called: two peers that both stop reading until their own output is read would wait forever. */
  deadline = Infinity;
  #acceptedBefore = 0;

  constructor({ control, limits, sendQueue, transport }: BackPressureParts) {
    this.#control = control;
    this.#limits = limits;
    this.#sendQueue = sendQueue;
    this.#transport = transport;
  }

  /** Too much output waits for the socket. */
  pause(): void {
    if (this.isPaused) return;
    this.isPaused = true;
    this.#transport.pause();
    this.#acceptedBefore = this.#sendQueue.accepted;
    this.deadline = this.#control.now + this.#limits.unreadOutputMs;
    this.#control.wakeAt(this.deadline);
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.#transport.resume();
  }

  /** The socket has sent everything that was written. */
  drained(): void {
    this.deadline = Infinity;
  }

  /** Whether the peer has read nothing for {@link Limits.unreadOutputMs}: the connection must then be destroyed. */
  isStuck(now: number): boolean {
    if (now < this.deadline) return false;
    const { accepted } = this.#sendQueue;
    if (accepted === this.#acceptedBefore) return true;
    this.#acceptedBefore = accepted;
    this.deadline = now + this.#limits.unreadOutputMs;
    return false;
  }
}
