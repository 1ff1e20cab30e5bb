import { startReplyTimer } from '../../../net/reply-timer';

/**
 * The time limit of a piece of work as a whole, however many steps it takes: a window (KVSTORE_TIMEOUT), a handshake, a check. Notifies
 * everything that the work waits for when it passes, but not before the replies were read that have arrived in time.
 */
export class Deadline {
  /** Whether the time is over: nothing more is to be sent, but a reply may still be read. */
  hasPassed = false;
  /** Whether a part of the work has begun, which is to be set by who does it. */
  hasBegun = false;
  #stopTimer: (() => void) | undefined;
  /** With whether they wait to begin. */
  readonly #watchers = new Map<() => void, boolean>();

  /** @param milliseconds 0: never passes */
  constructor(milliseconds: number) {
    if (milliseconds > 0) this.passWithin(milliseconds);
  }

  /** Lets it pass so many milliseconds from now on, at the latest. */
  passWithin(milliseconds: number): void {
    const stopEarlier = this.#stopTimer;
    const stop = startReplyTimer(
      milliseconds,
      () => this.#notify(),
      () => (this.hasPassed = true),
    );
    this.#stopTimer =
      stopEarlier === undefined
        ? stop
        : () => {
            stopEarlier();
            stop();
          };
  }

  /**
   * Calls `onPassed` when the deadline passes, unless the returned function is called first.
   *
   * @param isWaiting also when the work is abandoned, because it waits to begin
   */
  watch(onPassed: () => void, isWaiting = false): () => void {
    this.#watchers.set(onPassed, isWaiting);
    return () => this.#watchers.delete(onPassed);
  }

  /** Nothing waits for the work any more: what has begun goes on until the deadline, but nothing else begins. */
  abandon(): void {
    this.hasPassed = true;
    for (const [onPassed, isWaiting] of this.#watchers) if (isWaiting) onPassed();
  }

  /** The work is done: the deadline no longer passes. */
  end(): void {
    this.#stopTimer?.();
    this.#watchers.clear();
  }

  #notify(): void {
    for (const onPassed of this.#watchers.keys()) onPassed();
    this.#watchers.clear();
  }
}
