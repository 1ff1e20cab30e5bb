import { startReplyTimer } from '../../../../net/reply-timer';

/**
 * The time limit of one window as a whole, however many steps it takes (KVSTORE_TIMEOUT). Notifies everything that the
 * window waits for when it passes, but not before the replies were read that have arrived in time.
 */
export class Deadline {
  /** Whether the time is over: nothing more is to be sent, but a reply may still be read. */
  hasPassed = false;
  readonly #stopTimer: (() => void) | undefined;
  readonly #watchers = new Set<() => void>();

  /** @param milliseconds 0: never passes */
  constructor(milliseconds: number) {
    if (milliseconds <= 0) return;
    this.#stopTimer = startReplyTimer(
      milliseconds,
      () => this.#notify(),
      () => (this.hasPassed = true),
    );
  }

  /** Calls `onPassed` when the deadline passes, unless {@link unwatch} is called with the same callback first. */
  watch(onPassed: () => void): void {
    this.#watchers.add(onPassed);
  }

  unwatch(onPassed: () => void): void {
    this.#watchers.delete(onPassed);
  }

  /** The window is done: the deadline no longer passes. */
  end(): void {
    this.#stopTimer?.();
    this.#watchers.clear();
  }

  #notify(): void {
    for (const onPassed of this.#watchers) onPassed();
    this.#watchers.clear();
  }
}
