import type { Limit } from '../counting/limit';
import type { RuleStatistics } from '../statistics/rule-statistics';
import { Samples } from '../text/samples';

/** After so many asks, what a limit allows has been used, if it is ever used. */
const MANY_ASKS = 1_000;

/**
 * A limit that lets all asks pass: `not_postpaid`, because 0 hits always fit an algorithm; `not_reported`, because it
 * was asked often, and no hits were counted.
 */
export type AskedInVain = 'not_postpaid' | 'not_reported';

/** Reports limits that are asked in vain: by {@link Samples} of their paths, or once. */
export class AskedLimits {
  readonly #onAsked: (limit: Limit, why: AskedInVain) => void;
  readonly #samples = new Samples();

  constructor(onAsked: (limit: Limit, why: AskedInVain) => void) {
    this.#onAsked = onAsked;
  }

  /** A call with 0 hits to a limit with an algorithm that is not postpaid. One that blocks cannot be. */
  readOnly(limit: Limit, nowSeconds: number): void {
    if (limit.blockFor !== undefined) return;
    if (!this.#samples.isDue(nowSeconds) || !this.#samples.isNew(limit.path, nowSeconds)) return;
    this.#onAsked(limit, 'not_postpaid');
  }

  /** An ask, which the statistics have counted. */
  asked(limit: Limit, { asks, totalHits }: RuleStatistics): void {
    if (asks === MANY_ASKS && totalHits === 0 && limit.postpaid) this.#onAsked(limit, 'not_reported');
  }
}
