import type { FailurePolicy } from '../rules/rule-config';
import { type Algorithm, type LimitState, type Outcome, decideTogether } from './algorithm';
import type { DecisionError } from './decision-error';

/**
 * Where every counter saturates: further hits leave it at this count, which is over any limit. Larger integers are not exact in
 * JavaScript, nor in the scripts of Redis.
 */
export const LARGEST_COUNT = Number.MAX_SAFE_INTEGER;

/** One operation on one counter. */
export interface CounterOperation {
  /** The cache key, including the start of its window: see {@link cacheKeyBody}. */
  readonly key: string;
  /**
   * Positive: hits to add, up to {@link LARGEST_COUNT}. 0: read only; an absent key counts as 0 and is not created. Negative: hits to subtract, where the
   * count does not fall below 0 and the key's expiry is kept; an absent key stays absent and counts as 0.
   */
  readonly hits: number;
  /**
   * The length of the counter's window in seconds; the end of a window of the calendar, in Unix seconds: see {@link windowStart}. A key
   * without expiry gets this expiry, or the time until then, plus the store's jitter.
   */
  readonly windowSeconds: number;
  /**
   * Consecutive operations with the same guard are applied as one step (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT): if any of
   * them, each compared with the stored count alone, would exceed its limit, then only those that exceed it or would exceed it
   * are added, and the others are only read. With algorithms, a call that one of them denies counts on none (`all_or_nothing`), and each
   * of them has the same hits.
   */
  readonly guard: Guard | undefined;
  /** `requests_per_unit`; stores use it only with a guard. */
  readonly limit: number;
  /** Decides by the state of the counter, instead of a count. Undefined: hits are counted in a window that is part of the key. */
  readonly algorithm?: Algorithm | undefined;
  /** With an algorithm, the hits of each call that was merged into the operation, in order of arrival. Undefined: there is one. */
  readonly calls?: readonly number[] | undefined;
  /** Whether it is counted in the main store in any case, also with a window of a second: with the other limits of its rule. */
  readonly isInMainStore?: boolean | undefined;
  /** The path of the rule whose limit it counts at, empty for a limit of the request; undefined: not known here. */
  readonly rule?: string | undefined;
  /** What answers for a count that the store does not provide; undefined and `error`: nothing, so that the call fails. */
  readonly onStoreFailure?: FailurePolicy | undefined;
}

/** Groups the operations of one request; compared by identity. */
export interface Guard {
  readonly operations: number;
  /** Whether the request is over in any case, so that only those are added that exceed their limits or would. */
  readonly isOver?: boolean;
}

/**
 * The count after an operation, at most {@link LARGEST_COUNT}; with an algorithm, the state before it, at the time of the operation; or the
 * error of that operation alone.
 */
export type Count = number | LimitState | DecisionError;

/** What a guarded step does to one operation: its hits, or 0 where it is only read. */
export interface GuardedOperation {
  readonly key: string;
  readonly hits: number;
  readonly limit: number;
  readonly guard?: Guard | undefined;
}

/**
 * The hits that each operation of a guarded step adds: all of them when nothing goes over its limit; otherwise only those of the
 * operations that are over or would go over. Each addition is judged alone, on the stored count; negative hits always count, and lower
 * the count on which later operations of the same key are judged.
 *
 * @param stored the count of each key before the step
 */
export function guardedHits(
  operations: readonly GuardedOperation[],
  stored: (key: string) => number,
): readonly number[] {
  const lowered = new Map<string, number>();
  const goesOver = operations.map(({ key, hits, limit }) => {
    const count = lowered.get(key) ?? stored(key);
    if (hits >= 0) return count + hits > limit;
    lowered.set(key, Math.max(0, count + hits));
    return true;
  });
  const isAnyOver = operations.some(
    ({ hits, guard }, index) => guard?.isOver === true || (hits >= 0 && goesOver[index]),
  );
  return operations.map(({ hits }, index) => (isAnyOver && !goesOver[index] ? 0 : hits));
}

/** An operation that receives what becomes of it. */
export interface DecidedOperation extends CounterOperation {
  hits: number;
  /** The count after the operation, once it is known; with an algorithm, the hits that count then. */
  after: number;
  /** What the algorithm has decided. */
  outcome?: Outcome | undefined;
}

/** Decides an operation with an algorithm by the state before it. Returns the state after it. */
export function decideOn(operation: DecidedOperation, state: LimitState): LimitState {
  return decidedAs(operation, (operation.algorithm as Algorithm).decide(state, operation.hits));
}

/**
 * Decides the operations of a guard, as {@link decideOn} does one. Their `hits` become 0 when they do not count.
 *
 * @param states before them; becomes those after them
 */
export function decideAllOrNothing(operations: readonly DecidedOperation[], states: LimitState[]): void {
  const outcomes = decideTogether(operations, states, operations[0]!.hits);
  const isCounted = outcomes.every(({ isAllowed }) => isAllowed);
  for (let index = 0; index < operations.length; index += 1) {
    const operation = operations[index]!;
    if (!isCounted) operation.hits = 0;
    states[index] = decidedAs(operation, outcomes[index]!);
  }
}

function decidedAs(operation: DecidedOperation, outcome: Outcome): LimitState {
  operation.outcome = outcome;
  operation.after = outcome.used;
  return outcome.state;
}
