import { Code } from './verdict';

/**
 * Folds the statuses into the overall code. A descriptor that is not a quota is over on its own; quota descriptors are over
 * together, when there is at least one and none passed.
 */
export class OverallCode {
  #isOver = false;
  #quotas = 0;
  #quotasPassed = 0;

  add(code: Code, isQuota: boolean): void {
    if (!isQuota) {
      if (code === Code.OVER_LIMIT) this.#isOver = true;
      return;
    }
    this.#quotas += 1;
    if (code === Code.OK) this.#quotasPassed += 1;
  }

  get code(): Code {
    return this.#isOver || (this.#quotas > 0 && this.#quotasPassed === 0) ? Code.OVER_LIMIT : Code.OK;
  }
}
