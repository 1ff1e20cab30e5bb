/** In milliseconds. */
export interface ReadTiming {
  /** For which the sizes of files stay the same before a change is read. Shorter than the time between two looks, because timers are not exact. */
  readonly hold: number;
  /** Since a change, after which it is read although the sizes of files keep changing. */
  readonly forced: number;
}

/** Decides when a change of files is read, from what the looks at them have found. All times are in milliseconds. */
export class PendingChange {
  readonly #timing: ReadTiming;
  /** What the last look found apart from times, and since when it has been the same. */
  #sizes = '';
  #sameSince = 0;
  #lastLook = 0;
  #hintedAt: number | undefined;
  /** The earliest time at which the change can have happened. */
  #changedAt: number | undefined;

  constructor(timing: ReadTiming) {
    this.#timing = timing;
  }

  /** The file system has given notice of a change. */
  hinted(now: number): void {
    this.#hintedAt ??= now;
  }

  /** @param isChanged whether the look has found something else than what was read last */
  looked(sizes: string, isChanged: boolean, now: number): void {
    const isNew = isChanged && this.#changedAt === undefined;
    if (isNew || sizes !== this.#sizes) this.#sameSince = now;
    this.#sizes = sizes;
    if (isNew) this.#changedAt = this.#hintedAt ?? this.#lastLook;
    if (!isChanged) this.#changedAt = undefined;
    this.#lastLook = now;
    this.#hintedAt = undefined;
  }

  /** The change has been read. */
  done(): void {
    this.#changedAt = undefined;
  }

  /** For how long a change has not been read; 0 without one. */
  waiting(now: number): number {
    return this.#changedAt === undefined ? 0 : now - this.#changedAt;
  }

  /** The files have had the same sizes at two looks, between which nothing was written. */
  isHeld(now: number): boolean {
    return now - this.#sameSince >= this.#timing.hold;
  }

  /** The change is read as it is, whatever else changes: the next look may be too late. */
  isForced(now: number): boolean {
    return this.waiting(now) >= this.#timing.forced;
  }
}
