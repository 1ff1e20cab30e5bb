import { startReplyTimer } from '../../../net/reply-timer';

/**
 * The time limit of a piece of work as a whole, however many steps it takes: a window (KVSTORE_TIMEOUT), a handshake, a check. Notifies
 * everything that the work waits for when it passes, but not before the replies were read that have arrived in time.
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

  /** Runs work within a time limit, which ends with it. */
  static async within<T>(milliseconds: number, work: (deadline: Deadline) => Promise<T>): Promise<T> {
    const deadline = new Deadline(milliseconds);
    try {
      return await work(deadline);
    } finally {
      deadline.end();
    }
  }

  /** Calls `onPassed` when the deadline passes, unless the returned function is called first. */
  watch(onPassed: () => void): () => void {
    this.#watchers.add(onPassed);
    return () => this.#watchers.delete(onPassed);
  }

  /** The work is done: the deadline no longer passes. */
  end(): void {
    this.#stopTimer?.();
    this.#watchers.clear();
  }

  #notify(): void {
    for (const onPassed of this.#watchers) onPassed();
    this.#watchers.clear();
  }
}
