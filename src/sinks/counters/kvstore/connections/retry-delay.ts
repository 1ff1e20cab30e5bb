import { type Backoff, backoff } from '../../../../streams/backoff';

/** Doubles from `initial` to `max` milliseconds; each wait is drawn from the upper half. */
export function connectBackoff(initial: number, max: number): Backoff {
  return backoff({ initial, max, drawn: (wait) => [wait / 2, wait] });
}

/** For connections that are lost after start-up. */
export const RECONNECT: Backoff = connectBackoff(50, 1000);

/** The delays of an instance: its own until the first connection (KVSTORE_STARTUP_*), then {@link RECONNECT}. */
export class StartupDelay {
  #current: Backoff;

  constructor(startup: Backoff) {
    this.#current = startup;
  }

  readonly next: Backoff = (attempt) => this.#current(attempt);

  /** The first connection is established. */
  end(): void {
    this.#current = RECONNECT;
  }
}
