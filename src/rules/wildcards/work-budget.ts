/** Matching a request takes more steps than its budget has. */
export class TooMuchWork extends Error {
  override readonly name = 'TooMuchWork';
}

/**
 * The steps that matching one request may still take, where their number depends on more than the length of its texts. What takes such
 * steps pays for them before or while it does.
 */
export class WorkBudget {
  #steps: number;

  /** @param steps Infinity for no limit */
  constructor(steps: number) {
    this.#steps = steps;
  }

  /** Starts the budget of another request. */
  renew(steps: number): void {
    this.#steps = steps;
  }

  /** @throws TooMuchWork when fewer steps are left */
  spend(steps: number): void {
    this.#steps -= steps;
    if (this.#steps < 0) throw new TooMuchWork();
  }
}

/** The budget of a search that no caller can cause. */
export const UNLIMITED_WORK = new WorkBudget(Infinity);
