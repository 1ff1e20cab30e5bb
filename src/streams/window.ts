import { isCalendarEnd } from '../limiter/cache-key';
import {
  type Count,
  type CounterOperation,
  type DecidedOperation,
  type Guard,
  LARGEST_COUNT,
  decideAllOrNothing,
  decideOn,
} from '../limiter/counter-operation';
import { DecisionError, type DecisionErrorCode } from '../limiter/decision-error';
import type { Algorithm, LimitState } from '../limiter/algorithm';
import type { FailurePolicy } from '../rules/rule-config';
import type { EndedWindow, Outcome } from './circuit-breaker';
import type { CallTrace } from './ports/tracer';

/**
 * Operations on longer keys are not merged, in characters. V8 hashes texts above 16,383 characters by their length alone: a map of
 * 2,000 keys of 64 KiB took 20 s to fill.
 */
const LONGEST_MERGED_KEY = 4096;

/** An operation of a call, whose hits and guard can be decided before it is counted. */
export interface WindowOperation extends DecidedOperation {
  guard: Guard | undefined;
  /** It is in a window for the store. */
  isSent?: boolean;
  /** Why there is no count. */
  failure?: DecisionError | undefined;
}

/** A call whose operations are part of a window. */
export interface WindowCall {
  readonly operations: readonly WindowOperation[];
  /** The trace that records the window's trip to the store, when the call is traced. */
  readonly trace?: CallTrace | undefined;
  /** The caller has cancelled: the window leaves the call out. */
  readonly isCancelled: boolean;
  /** Called when every operation has its count in `after`, or its `failure`. */
  settle(): void;
  fail(error: DecisionError): void;
}

/**
 * The most hits that are merged. A saturated counter does not show how many of them fitted, but before these it was at 2^32 or
 * more, which is over any limit.
 */
const MOST_MERGED = LARGEST_COUNT - 2 ** 32;

/** Additions to one key, or calls with one algorithm, that go to the store as one operation. */
class Merged implements CounterOperation {
  hits: number;
  readonly key: string;
  windowSeconds: number;
  readonly limit: number;
  readonly rule: string | undefined;
  readonly guard: Guard | undefined;
  readonly onStoreFailure: FailurePolicy | undefined;
  readonly algorithm: Algorithm | undefined;
  readonly calls: number[] | undefined;

  constructor({ key, hits, windowSeconds, limit, rule, guard, onStoreFailure, algorithm }: CounterOperation) {
    this.algorithm = algorithm;
    this.calls = algorithm === undefined ? undefined : [hits];
    this.key = key;
    this.hits = hits;
    this.windowSeconds = windowSeconds;
    this.limit = limit;
    this.rule = rule;
    this.guard = guard;
    this.onStoreFailure = onStoreFailure;
  }
}

/**
 * The calls of one pipeline window. Additions to the same key become one operation. Each call then gets its own count, derived from
 * its position in arrival order, exactly as if its operations had been sent one by one; only when the counter saturates in
 * between, all of them get the saturated count.
 */
export class Window implements EndedWindow {
  /** The operations for the store, in order. */
  readonly batch: CounterOperation[] = [];
  readonly #calls: readonly WindowCall[];
  /** Where the count of each operation comes from: an index of the batch, and the sum of the merged additions up to and including it. */
  readonly #indexes: number[] = [];
  readonly #sums: number[] = [];
  #mergedHits = 0;
  #outcome: Outcome = 'none';

  constructor(calls: readonly WindowCall[]) {
    this.#calls = calls.filter((call) => !call.isCancelled);
    this.#merge();
  }

  /** Hits that were merged into an operation of an earlier call. */
  get mergedHits(): number {
    return this.#mergedHits;
  }

  /** The number of calls. */
  get size(): number {
    return this.#calls.length;
  }

  /** What the window shows about its server, once its calls have their outcome. */
  get outcome(): Outcome {
    return this.#outcome;
  }

  /** Gives every call its counts. An operation that failed by itself fails its own call only. */
  settle(counts: readonly Count[]): void {
    this.#outcome = outcomeOf(counts);
    /** By index of the batch, what the calls of an operation with an algorithm have left so far. */
    const states: LimitState[] = [];
    let position = 0;
    for (const call of this.#calls) {
      let error: DecisionError | undefined;
      for (let at = 0; at < call.operations.length; at += 1) {
        const operation = call.operations[at] as WindowOperation;
        const index = this.#indexes[position] as number;
        const upTo = this.#sums[position] as number;
        position += 1;
        const count = counts[index] as Count;
        if (typeof count === 'number') {
          const isSaturated = count === LARGEST_COUNT;
          operation.after = isSaturated ? count : count - (this.batch[index] as CounterOperation).hits + upTo;
        } else if (count instanceof DecisionError) error = without(operation, count) ?? error;
        else if (operation.guard === undefined) states[index] = decideOn(operation, states[index] ?? count);
        else if (operation.guard !== call.operations[at - 1]?.guard) {
          const group = call.operations.slice(at, at + operation.guard.operations);
          const together = group.map((_, step) => states[index + step] ?? (counts[index + step] as LimitState));
          decideAllOrNothing(group, together);
          for (let step = 0; step < group.length; step += 1) states[index + step] = together[step]!;
        }
      }
      if (error === undefined) call.settle();
      else call.fail(error);
    }
  }

  fail(error: DecisionError): void {
    this.#outcome = outcomeOf([error]);
    for (const call of this.#calls) failCall(call, error);
  }

  #merge(): void {
    /** By key, the index of the operation that the next addition to the key can join. */
    const open = new Map<string, number>();
    for (const { operations } of this.#calls) {
      for (let at = 0; at < operations.length;) {
        const operation = operations[at] as WindowOperation;
        const { guard, algorithm } = operation;
        if (guard !== undefined && algorithm !== undefined) {
          this.#addAllOrNothing(operations.slice(at, at + guard.operations), open);
          at += guard.operations;
          continue;
        }
        this.#add(operation, open, { mayMerge: guard === undefined && isMergeable(operation) });
        at += 1;
      }
    }
  }

  /** Operations of a guard join those of another call together, or not at all. */
  #addAllOrNothing(group: readonly WindowOperation[], open: Map<string, number>): void {
    const mayMerge = group.every(isMergeable);
    const first = open.get(group[0]!.key) ?? -1;
    const mayJoin =
      this.batch[first]?.guard?.operations === group.length &&
      group.every(({ key, algorithm }, step) => {
        return open.get(key) === first + step && this.batch[first + step]?.algorithm === algorithm;
      });
    for (const operation of group) this.#add(operation, open, { mayMerge, mayJoin });
  }

  #add(operation: WindowOperation, open: Map<string, number>, { mayMerge, mayJoin = mayMerge }: Merging): void {
    operation.isSent = true;
    const index = mayJoin ? open.get(operation.key) : undefined;
    const upTo = index === undefined ? undefined : this.#join(index, operation);
    if (index !== undefined && upTo !== undefined) return this.#place(index, upTo);
    this.#place(this.batch.length, operation.hits);
    // Any other operation on the key is a boundary: a later addition must not be counted before it.
    if (mayMerge) open.set(operation.key, this.batch.length);
    else open.delete(operation.key);
    this.batch.push(operation);
  }

  #place(index: number, upTo: number): void {
    this.#indexes.push(index);
    this.#sums.push(upTo);
  }

  /** @returns the sum of the merged additions including this one; undefined when that is too large to be merged */
  #join(index: number, operation: CounterOperation): number | undefined {
    const present = this.batch[index] as CounterOperation;
    const { hits, windowSeconds } = operation;
    const sum = present.hits + hits;
    // A limit override can have the key of a rule and other numbers.
    if (sum > MOST_MERGED || present.algorithm !== operation.algorithm) return undefined;
    if (isCalendarEnd(present.windowSeconds) !== isCalendarEnd(windowSeconds)) return undefined;
    if ((present.guard === undefined) !== (operation.guard === undefined)) return undefined;
    const merged = present instanceof Merged ? present : new Merged(present);
    // Limits of different units can have one key; it has to outlive the longest window in which hits are counted.
    if (hits > 0)
      merged.windowSeconds = present.hits > 0 ? Math.max(present.windowSeconds, windowSeconds) : windowSeconds;
    merged.hits = sum;
    merged.calls?.push(hits);
    this.batch[index] = merged;
    this.#mergedHits += Math.max(0, hits);
    return sum;
  }
}

/** @property mayJoin whether it may join an operation before it; absent: as `mayMerge` */
interface Merging {
  /** Whether operations after it may join it. */
  readonly mayMerge: boolean;
  readonly mayJoin?: boolean;
}

/** The store has counted no operation of the call: it fails, or is answered by policy. */
export function failCall(call: WindowCall, error: DecisionError): void {
  let failure: DecisionError | undefined;
  for (const operation of call.operations) failure = without(operation, error) ?? failure;
  if (failure === undefined) call.settle();
  else call.fail(failure);
}

/** The store has not counted the operation. @returns the error with which its call fails; undefined: a policy answers */
function without(operation: WindowOperation, error: DecisionError): DecisionError | undefined {
  const { onStoreFailure = 'error' } = operation;
  if (onStoreFailure === 'error' || !STORE_ERRORS.has(error.code)) return error;
  operation.failure = error;
  return undefined;
}

const STORE_ERRORS: ReadonlySet<DecisionErrorCode> = new Set(['store_failed', 'store_timeout', 'store_pool_empty']);

/** A server that can count one of the operations works. */
function outcomeOf(counts: readonly Count[]): Outcome {
  let outcome: Outcome = 'none';
  for (const count of counts) {
    if (!(count instanceof DecisionError)) return 'ok';
    if (!count.isOfKey && (count.code === 'store_failed' || count.code === 'store_timeout')) outcome = 'bad';
  }
  return outcome;
}

/**
 * Whether the operation only adds or reads, so that its count can be derived from that of a merged operation; with an algorithm, each is
 * decided again.
 */
function isMergeable({ key, hits, algorithm }: CounterOperation): boolean {
  return (hits >= 0 || algorithm !== undefined) && key.length <= LONGEST_MERGED_KEY;
}
