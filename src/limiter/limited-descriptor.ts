import type { RuleStatistics } from '../statistics/rule-statistics';
import type { AppliedLimit } from './applied-limit';
import { type CounterOperation, type Guard, LARGEST_COUNT } from './counter-operation';

/**
 * A descriptor with the limit that applies to it, during a decision. It is also its counter operation, so that the common case
 * needs no further allocation.
 */
export class LimitedDescriptor implements CounterOperation {
  /** The operation for the store: the call's hits, negative to subtract, 0 only to read. */
  hits: number;
  guard: Guard | undefined = undefined;
  /** The count after the operation, set when it is known. */
  after = 0;
  /** The key is over its limit according to the local cache, so the store is not called. */
  overByLocalCache = false;

  constructor(
    readonly applied: AppliedLimit,
    readonly key: string,
    readonly statistics: RuleStatistics,
    /** The hits of the call, which the statistics count whether they are added or not. */
    readonly callHits: number,
    readonly isNegative: boolean,
  ) {
    this.hits = isNegative ? -callHits : callHits;
  }

  get windowSeconds(): number {
    return this.applied.windowSeconds;
  }

  /** Hits that are subtracted have none, also when there are 0 of them. */
  get limit(): number {
    return this.isNegative ? LARGEST_COUNT : this.applied.requestsPerUnit;
  }
}
