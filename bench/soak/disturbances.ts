import { setTimeout as sleep } from 'node:timers/promises';

/** Actions at regular intervals, each of which waits for the one of the same kind before it. */
export class Disturbances {
  readonly #kinds: Promise<void>[] = [];
  readonly #over = new AbortController();
  #exclusive: Promise<unknown> = Promise.resolve();

  each(seconds: number, act: () => Promise<void>): void {
    const kind = this.#repeat(seconds, act);
    // `end` reports its error.
    kind.catch(() => undefined);
    this.#kinds.push(kind);
  }

  /** As {@link each}, but not at the same time as another exclusive action. */
  eachAlone(seconds: number, act: () => Promise<void>): void {
    this.each(seconds, () => {
      const own = this.#exclusive.then(act);
      // Its error is that of the kind.
      this.#exclusive = own.catch(() => undefined);
      return own;
    });
  }

  /** Resolves when no action is running; rejects when one has failed. */
  async end(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#kinds);
  }

  async #repeat(seconds: number, act: () => Promise<void>): Promise<void> {
    const { signal } = this.#over;
    for (let next = performance.now() + seconds * 1_000; ; next += seconds * 1_000) {
      await sleep(Math.max(0, next - performance.now()), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await act();
    }
  }
}
