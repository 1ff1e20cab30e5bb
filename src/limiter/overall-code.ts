import { Code } from './verdict';

/**
 * Combines the statuses into the overall code: OVER_LIMIT if any descriptor that is not a quota is over its limit, or if there are
 * quota descriptors and all of them are over their limits.
 */
export class OverallCode {
  #isOver = false;
  #quotas = 0;
  #quotasAllowed = 0;

  add(code: Code, isQuota: boolean): void {
    if (!isQuota) {
      if (code === Code.OVER_LIMIT) this.#isOver = true;
      return;
    }
    this.#quotas += 1;
    if (code === Code.OK) this.#quotasAllowed += 1;
  }

  get code(): Code {
    return this.#isOver || (this.#quotas > 0 && this.#quotasAllowed === 0) ? Code.OVER_LIMIT : Code.OK;
  }
}
