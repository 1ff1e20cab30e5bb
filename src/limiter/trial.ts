import { DecisionError } from '../counting/decision-error';
import type { Result } from '../counting/operation';
import { ReadTable } from '../counting/read-then-decide';
import { simulate } from '../counting/simulate';
import type { Decision } from './decision';
import type { LimiterOptions } from './options';
import type { LocalCounts } from './local-counts';
import type { LimitedDescriptor } from './resolution';
import type { Verdict } from './verdict';

/** A decision that counts nothing: what it needs of the store, and what it would answer with that. */
export class Trial {
  readonly #local: LocalCounts | undefined;

  /** @param local counts for the policy `local`; they are only read */
  constructor(
    /** The decision, whose statistics and local cache are not those of the service. */
    readonly decision: Decision,
    readonly options: LimiterOptions,
    local: LocalCounts | undefined,
  ) {
    this.#local = local;
  }

  /**
   * The verdict of a decision that finds these counts and states. What the store has not read is decided by its policy.
   *
   * @param stored by cache key; to be called once
   */
  verdict(stored: ReadonlyMap<string, Result>): Verdict {
    const { operations, nowSeconds } = this.decision;
    const counted: LimitedDescriptor[] = [];
    const countedLocally: LimitedDescriptor[] = [];
    for (const operation of operations) {
      const result = stored.get(operation.key);
      if (!(result instanceof DecisionError)) counted.push(operation);
      else {
        operation.failure = result;
        if (operation.limit.onStoreFailure === 'local') countedLocally.push(operation);
      }
    }
    simulate(counted, new ReadTable(stored));
    this.#local?.copyOf(countedLocally, nowSeconds).count(countedLocally, nowSeconds);
    return this.decision.verdict();
  }

  /** What a cache key has for the policy `local`. */
  localCountOf(key: string): number | undefined {
    return this.#local?.countOf(key);
  }
}
