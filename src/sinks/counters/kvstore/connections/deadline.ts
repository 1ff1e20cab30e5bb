/**
 * The end of one window's time: what the window waits for is told when it has passed. Bounds a window as a whole, however
 * many steps it takes (KVSTORE_TIMEOUT).
 */
export class Deadline {
  hasPassed = false;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #watchers = new Set<() => void>();

  /** @param milliseconds 0: never */
  constructor(milliseconds: number) {
    if (milliseconds > 0) this.#timer = setTimeout(() => this.#pass(), milliseconds);
  }

  /** Calls back when the time has passed, unless {@link forget} was called with the same callback before. */
  watch(onPassed: () => void): void {
    this.#watchers.add(onPassed);
  }

  forget(onPassed: () => void): void {
    this.#watchers.delete(onPassed);
  }

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
