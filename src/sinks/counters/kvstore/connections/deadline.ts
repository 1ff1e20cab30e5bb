/**
 * The time limit of one window as a whole, however many steps it takes (KVSTORE_TIMEOUT). Notifies everything that the
 * window waits for when it passes.
 */
export class Deadline {
  hasPassed = false;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #watchers = new Set<() => void>();

  /** @param milliseconds 0: never passes */
  constructor(milliseconds: number) {
    if (milliseconds > 0) this.#timer = setTimeout(() => this.#pass(), milliseconds);
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
    clearTimeout(this.#timer);
    this.#watchers.clear();
  }

  #pass(): void {
    this.hasPassed = true;
    for (const onPassed of this.#watchers) onPassed();
    this.#watchers.clear();
  }
}
