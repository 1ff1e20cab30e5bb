/** The most scans from one attempt to the next: minutes at the interval of polling. */
const MAX_SCANS = 64;

/**
 * When contents that could not be checked are loaded again: at the 1st, then at the 2nd, the 4th, ... scan after the last attempt.
 * A check that needs too much memory takes seconds of processor time, and fails each time if the cause is permanent.
 */
export class LoadRetries {
  #key: string | undefined;
  #failures = 0;
  #scans = 0;

  /** Called for each scan that finds these contents: whether this scan loads them. */
  isDue(key: string): boolean {
    if (key !== this.#key) return true;
    this.#scans += 1;
    return this.#scans >= Math.min(2 ** (this.#failures - 1), MAX_SCANS);
  }

  /** Called when these contents could not be checked. */
  failed(key: string): void {
    this.#failures = key === this.#key ? this.#failures + 1 : 1;
    this.#key = key;
    this.#scans = 0;
  }
}
