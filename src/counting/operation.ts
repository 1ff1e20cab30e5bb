import type { FailurePolicy } from '../rules/rule-config';
import type { Algorithm, LimitState, Outcome, Purpose } from './algorithms/algorithm';
import type { DecisionError, DecisionErrorCode } from './decision-error';
import { LEAST_GRANT, type LeaseRequest, grantOf } from './grant';

/**
 * Where every counter saturates: further hits leave it at this count, which is over any limit. Larger integers are not
 * exact in JavaScript, nor in the scripts of Redis.
 */
export const LARGEST_COUNT = Number.MAX_SAFE_INTEGER;

/** What counting needs of a limit; that of a rule or a request is a `Limit`. */
export interface CountedLimit {
  /** The most hits of a window, or the tokens that flow into a bucket in one. */
  readonly requestsPerUnit: number;
  /**
   * The length of a window in seconds; of one of the calendar, about. A key is kept as long, plus the store's jitter.
   */
  readonly lengthSeconds: number;
  /**
   * When the present window of the calendar ends, in Unix seconds: a key is kept until then, plus the store's jitter.
   * Undefined: windows have the length above, and the first one began at the Unix epoch.
   */
  readonly endsAt?: number | undefined;
  /**
   * Decides by the state of the counter. Undefined: hits are counted in a window that is part of the key, and compared
   * with the limit.
   */
  readonly algorithm?: Algorithm | undefined;
  /**
   * One of the `rate_limits` of its rule: all of them are counted in the main store, also with a window of a second.
   */
  readonly isOneOfSeveral?: boolean | undefined;
  /** The path of the rule, empty for a limit of the request; undefined: not known here. */
  readonly path?: string | undefined;
  /** Whether hits may be taken from the counter before they are asked for: see `Leases`. */
  readonly lease?: boolean | undefined;
  /**
   * What answers for a count that the store does not provide; undefined and `error`: nothing, so that the call fails.
   */
  readonly onStoreFailure?: FailurePolicy | undefined;
}

/** A counter of a store. */
export interface Counted {
  /** The cache key; that of hits which are counted in windows has the start of the window. */
  readonly key: string;
  readonly limit: CountedLimit;
  /** What the call is for; undefined: it counts if it fits, and of a count its hits are added in any case. */
  readonly purpose?: Purpose | undefined;
  /** The key of the block of a limit with `block_for`, in the slot of the other one; undefined without one. */
  readonly blockKey?: string | undefined;
}

/**
 * Consecutive operations that are applied as one step; compared by identity.
 *
 * - `stop_when_over` (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT): if any of them, each compared with the stored count
 *   alone, would exceed its limit, then only those that exceed it or would exceed it are added, and the others are only
 *   read.
 * - `all_or_nothing`, of limits with algorithms and the same hits: a call that one of them denies counts on none.
 */
export interface Group {
  readonly mode: 'stop_when_over' | 'all_or_nothing';
  /**
   * Whether the request is over in any case, so that `stop_when_over` adds only those that exceed their limits or
   * would.
   */
  readonly isOver?: boolean;
}

/**
 * What is in a counter: the count after an operation, at most {@link LARGEST_COUNT}; with an algorithm, the state
 * before it, at the time of the operation.
 */
export type Stored = number | LimitState;

/** What a store answers to an operation: what is in its counter, or the error of that operation alone. */
export type Result = Stored | DecisionError;

/** Whether a store can have a count, or a state, for an operation, whatever the types say. */
export function isStoredOf({ limit: { algorithm } }: Operation, stored: unknown): stored is Stored {
  if (algorithm === undefined) return Number.isSafeInteger(stored);
  const state = (typeof stored === 'object' ? stored : undefined) as LimitState | null | undefined;
  return state !== undefined && state !== null && Number.isFinite(state.now) && algorithm.isPossible(state);
}

/**
 * Whether a store can have granted so many hits to an operation, whatever the types say.
 *
 * @param stored what is in its counter: the count after its own hits, or the state before them
 */
export function isGrantOf({ limit, lease }: Operation, granted: unknown, stored: Stored): granted is number {
  if (granted === 0) return true;
  const { requestsPerUnit, algorithm } = limit;
  const left = typeof stored === 'number' ? requestsPerUnit - stored : algorithm!.capacity;
  return (
    Number.isSafeInteger(granted) &&
    (granted as number) >= LEAST_GRANT &&
    (granted as number) <= grantOf(lease?.wants ?? 0, left)
  );
}

/**
 * One operation on one counter: what is asked of the store, and what becomes of it. Who makes operations plans them, as
 * a subclass whose `hits` and `group` it may change until it hands them on; for everyone else, both are constant.
 */
export class Operation implements Counted {
  purpose: Purpose | undefined = undefined;
  /**
   * With an algorithm, the hits of each call that was merged into the operation, in order of arrival. Undefined: there
   * is one.
   */
  calls: number[] | undefined = undefined;
  /** What it takes for later calls. */
  lease: LeaseRequest | undefined = undefined;
  blockKey: string | undefined = undefined;
  /** Whether a block ends before the calls. */
  endsBlock = false;
  /** Where hits were taken, and count, that are given back to an algorithm. See {@link Algorithm.windowAt}. */
  onlyInWindow: number | undefined = undefined;

  // What the store, a lease, the local cache or a policy fills in:

  /** The count after the operation, with an algorithm the hits that count then; negative before it is known. */
  countAfter = -1;
  /** What the algorithm has decided. */
  outcome: Outcome | undefined = undefined;
  /** Why there is no count, if a policy answers instead. */
  failure: DecisionError | undefined = undefined;
  /** The key is known to be over its limit, so the store is not called. */
  isKnownOver = false;
  /** A batch for the store has it, so that the store may count it. */
  isSent = false;
  /** Another limit of its group keeps its hits from being added. */
  isLeftOut = false;

  constructor(
    readonly limit: CountedLimit,
    readonly key: string,
    /**
     * Positive: hits to add, up to {@link LARGEST_COUNT}. 0: read only; an absent key counts as 0 and is not created.
     * Negative: hits to subtract, where the count does not fall below 0 and the key's expiry is kept; an absent key
     * stays absent and counts as 0. A descriptor with `is_negative_hits` and 0 hits has −0: see `mostOf`.
     */
    readonly hits: number,
    readonly group?: Group | undefined,
  ) {}

  /**
   * What its group has found out by reading: it is counted by itself, and adds these hits. Only before it is sent, and
   * not as another operation, because what becomes of it is looked for here while parts of its call are sent.
   */
  leaveGroup(hits: number): void {
    Object.assign(this, { hits, group: undefined });
  }

  /** The hits that are added, once that is decided: its own, or 0. */
  get addedHits(): number {
    return this.isLeftOut ? 0 : this.hits;
  }

  /** The store has not counted it. Returns the error with which its call fails; undefined: a policy answers. */
  fail(error: DecisionError): DecisionError | undefined {
    const { onStoreFailure = 'error' } = this.limit;
    if (onStoreFailure === 'error' || !ANSWERED_BY_POLICY.has(error.code)) return error;
    this.failure = error;
    return undefined;
  }
}

const ANSWERED_BY_POLICY: ReadonlySet<DecisionErrorCode> = new Set([
  'store_failed',
  'store_timeout',
  'store_pool_empty',
]);

/** Whether all of them have another policy than `error`, so that their call has an answer without the store. */
export function areAnsweredByPolicies(operations: readonly Operation[]): boolean {
  for (const { limit } of operations) if ((limit.onStoreFailure ?? 'error') === 'error') return false;
  return true;
}

/** Reads a counter. */
export function readOf({ limit, key, blockKey }: Counted): Operation {
  const read = new Operation(limit, key, 0);
  read.blockKey = blockKey;
  return read;
}

/** How many operations from `index` on belong together: the rest of its group, or 1 without a group. */
export function groupLength(batch: readonly Operation[], index: number): number {
  const group = batch[index]?.group;
  if (group === undefined) return 1;
  let end = index + 1;
  while (batch[end]?.group === group) end += 1;
  return end - index;
}
