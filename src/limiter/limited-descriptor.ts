import type { RuleStatistics } from '../statistics/rule-statistics';
import type { AppliedLimit } from './applied-limit';
import type { CounterOperation, Guard } from './counter-operation';

/**
 * A descriptor that a limit applies to, on its way through a decision. It is its own counter operation, so that the common
 * case allocates nothing more.
 */
export class LimitedDescriptor implements CounterOperation {
  /** What is asked of the store: the call's hits, less than 0 to take away, 0 only to read. */
  hits: number;
  guard: Guard | undefined = undefined;
  /** The count after the operation, once it is known. */
  after = 0;
  /** The local cache knows the key to be over; the store is not asked. */
  overByLocalCache = false;

  constructor(
    readonly applied: AppliedLimit,
    readonly key: string,
    readonly statistics: RuleStatistics,
    /** The hits that the call came with: what the statistics count, added or not. */
    readonly callHits: number,
    readonly isNegative: boolean,
  ) {
    this.hits = isNegative ? -callHits : callHits;
  }

  get windowSeconds(): number {
    return this.applied.windowSeconds;
  }

  get limit(): number {
    return this.applied.requestsPerUnit;
  }
}
