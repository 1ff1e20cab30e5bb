import { LARGEST_LIMIT } from '../rules/rule-config';
import type { LimitState } from './algorithms/algorithm';
import { DecisionError } from './decision-error';
import { decideAllOrNothing, decideAlone } from './group';
import { type CountedLimit, LARGEST_COUNT, Operation, type Result, groupLength } from './operation';
import type { LimitWindow } from './windows';

/**
 * Operations on longer keys are not merged, in characters. V8 hashes texts above 16,383 characters by their length
 * alone: a map of 2,000 keys of 64 KiB took 20 s to fill.
 */
const LONGEST_MERGED_KEY = 4096;

/** A call whose operations are part of a batch. */
export interface BatchCall {
  readonly operations: readonly Operation[];
  /** The caller has cancelled: the batch leaves the call out. */
  readonly isCancelled: boolean;
  /** Called when every operation has its count in `countAfter`, or its `failure`. */
  settle(): void;
  fail(error: DecisionError): void;
}

/**
 * What a batch shows about its server. `bad`: it cannot be reached, does not answer in time, or cannot count at
 * present. `none`: nothing, because the batch failed for another reason, or was not sent.
 */
export type ServerOutcome = 'ok' | 'bad' | 'none';

/**
 * The most hits that are merged. A saturated counter does not show how many of them fitted, but before these it was
 * over any limit.
 */
const MOST_MERGED = LARGEST_COUNT - LARGEST_LIMIT - 1;

/** What is still to be counted of a call. */
export interface RestOfCall<Call> {
  readonly call: Call;
  readonly operations: readonly Operation[];
}

/** Operations of several calls as one. */
class Merged extends Operation {
  declare limit: CountedLimit;
  declare hits: number;

  constructor({ limit, key, hits, group, purpose, blockKey }: Operation) {
    super(limit, key, hits, group);
    this.purpose = purpose;
    this.blockKey = blockKey;
    this.calls = limit.algorithm === undefined ? undefined : [hits];
  }
}

/**
 * The calls of one pipeline window as one batch for the store. Additions to the same key become one operation, and so
 * do calls with the same algorithm. Each call then gets its own count, derived from its position in arrival order,
 * exactly as if its operations had been sent one by one; only when the counter saturates in between, all of them get
 * the saturated count.
 */
export class Batch<Call extends BatchCall = BatchCall> {
  /** The operations for the store, in order. */
  readonly operations: Operation[] = [];
  readonly calls: readonly Call[];
  /** What the store asks to send again. Its calls are not settled. */
  readonly rests: RestOfCall<Call>[] = [];
  /**
   * Where the count of each operation comes from: an index of the batch, and the sum of the merged additions up to and
   * including it.
   */
  readonly #indexes: number[] = [];
  readonly #sums: number[] = [];
  #mergedHits = 0;
  #outcome: ServerOutcome = 'none';

  constructor(calls: readonly Call[]) {
    this.calls = calls.filter((call) => !call.isCancelled);
    this.#merge();
  }

  /** Hits that were merged into an operation of an earlier call. */
  get mergedHits(): number {
    return this.#mergedHits;
  }

  /** The number of calls. */
  get size(): number {
    return this.calls.length;
  }

  /** What it shows about its server, once its calls have their outcome. */
  get outcome(): ServerOutcome {
    return this.#outcome;
  }

  /**
   * Gives every call its counts, unless some are among the {@link rests}. An operation that failed by itself fails its
   * own call only.
   */
  settle(results: readonly Result[]): void {
    this.#outcome = serverOutcome(results);
    /** By index of the batch, what the calls of an operation with an algorithm have left so far. */
    const states: LimitState[] = [];
    let position = 0;
    for (const call of this.calls) {
      const { operations } = call;
      let error: DecisionError | undefined;
      let rest: Operation[] | undefined;
      for (let at = 0; at < operations.length; at += 1) {
        const operation = operations[at] as Operation;
        const index = this.#indexes[position] as number;
        const upTo = this.#sums[position] as number;
        position += 1;
        const result = results[index] as Result;
        if (typeof result === 'number') {
          const isSaturated = result === LARGEST_COUNT;
          operation.countAfter = isSaturated ? result : result - (this.operations[index] as Operation).hits + upTo;
        } else if (result instanceof DecisionError) {
          if (result.isTryAgain) (rest ??= []).push(operation);
          else error = operation.fail(result) ?? error;
        } else if (operation.group === undefined) {
          states[index] = decideAlone(operation, states[index] ?? result);
          // What all its calls have left: leases begin with it.
          (this.operations[index] as Operation).outcome = operation.outcome;
        } else if (operation.group !== operations[at - 1]?.group) {
          const members = operations.slice(at, at + groupLength(operations, at));
          const together = members.map((_, step) => states[index + step] ?? (results[index + step] as LimitState));
          decideAllOrNothing(members, together);
          for (let step = 0; step < members.length; step += 1) states[index + step] = together[step]!;
        }
      }
      if (error !== undefined) call.fail(error);
      else if (rest === undefined) call.settle();
      else this.rests.push({ call, operations: rest });
    }
  }

  fail(error: DecisionError): void {
    this.#outcome = serverOutcome([error]);
    for (const call of this.calls) failCall(call, error);
  }

  #merge(): void {
    /** By key, the index of the operation that the next addition to the key can join. */
    const open = new Map<string, number>();
    for (const { operations } of this.calls) {
      for (let at = 0; at < operations.length;) {
        const operation = operations[at] as Operation;
        const { group } = operation;
        if (group?.mode === 'all_or_nothing') {
          const members = operations.slice(at, at + groupLength(operations, at));
          this.#addAllOrNothing(members, open);
          at += members.length;
          continue;
        }
        const mayMerge = group === undefined && isMergeable(operation);
        this.#add(operation, open, mayMerge, mayMerge);
        at += 1;
      }
    }
  }

  /** Operations of a group join those of another call together, or not at all. */
  #addAllOrNothing(members: readonly Operation[], open: Map<string, number>): void {
    const mayMerge = members.every(isMergeable);
    const first = open.get(members[0]!.key) ?? -1;
    const mayJoin =
      this.#isGroup(first, members.length) &&
      members.every(({ key, limit }, step) => {
        return open.get(key) === first + step && this.operations[first + step]?.limit.algorithm === limit.algorithm;
      });
    for (const operation of members) this.#add(operation, open, mayMerge, mayJoin && mayMerge);
  }

  /** Whether a group of the batch begins at an index, and has so many operations. */
  #isGroup(first: number, length: number): boolean {
    const { operations } = this;
    return operations[first]?.group !== operations[first - 1]?.group && groupLength(operations, first) === length;
  }

  /**
   * @param mayMerge whether operations after it may join it
   * @param mayJoin whether it may join an operation before it
   */
  #add(operation: Operation, open: Map<string, number>, mayMerge: boolean, mayJoin: boolean): void {
    operation.isSent = true;
    const index = mayJoin ? open.get(operation.key) : undefined;
    const upTo = index === undefined ? undefined : this.#join(index, operation);
    if (index !== undefined && upTo !== undefined) return this.#place(index, upTo);
    this.#place(this.operations.length, operation.hits);
    // Any other operation on the key is a boundary: a later addition must not be counted before it.
    if (mayMerge) open.set(operation.key, this.operations.length);
    else open.delete(operation.key);
    this.operations.push(operation);
  }

  #place(index: number, upTo: number): void {
    this.#indexes.push(index);
    this.#sums.push(upTo);
  }

  /** @returns the sum of the merged additions including this one; undefined when that is too large to be merged */
  #join(index: number, operation: Operation): number | undefined {
    const present = this.operations[index] as Operation;
    const { hits, limit, purpose } = operation;
    const sum = present.hits + hits;
    // A limit override can have the key of a rule and other numbers.
    if (sum > MOST_MERGED || present.limit.algorithm !== limit.algorithm) return undefined;
    // The length of a window and the end of one of the calendar do not say which key has to be kept for longer.
    if ((present.limit.endsAt === undefined) !== (limit.endsAt === undefined)) return undefined;
    if ((present.group === undefined) !== (operation.group === undefined)) return undefined;
    if (!isAppliedAlike(operation, present)) return undefined;
    const merged = present instanceof Merged ? present : new Merged(present);
    // Limits of different units can have one key; it has to outlive the longest window in which hits are counted.
    if (hits > 0 && (present.hits <= 0 || isLonger(limit, present.limit))) merged.limit = limit;
    if (hits > 0) merged.purpose = purpose;
    merged.hits = sum;
    merged.calls?.push(hits);
    this.operations[index] = merged;
    this.#mergedHits += Math.max(0, hits);
    return sum;
  }
}

/** The store has counted no operation of the call: it fails, or is answered by policy. */
export function failCall(call: BatchCall, error: DecisionError): void {
  let failure: DecisionError | undefined;
  for (const operation of call.operations) failure = operation.fail(error) ?? failure;
  if (failure === undefined) call.settle();
  else call.fail(failure);
}

/** Whether an algorithm can apply the hits of a call as those before it, of which asks have none. */
function isAppliedAlike({ hits, limit, purpose }: Operation, present: Operation): boolean {
  if (limit.algorithm === undefined || hits <= 0 || present.purpose === 'ask') return true;
  return purpose === present.purpose;
}

function isLonger(window: LimitWindow, other: LimitWindow): boolean {
  return (window.endsAt ?? window.lengthSeconds) > (other.endsAt ?? other.lengthSeconds);
}

/** A server that can count one of the operations works. */
function serverOutcome(results: readonly Result[]): ServerOutcome {
  let outcome: ServerOutcome = 'none';
  for (const result of results) {
    if (!(result instanceof DecisionError)) return 'ok';
    if (!result.isKeyError && (result.code === 'store_failed' || result.code === 'store_timeout')) outcome = 'bad';
  }
  return outcome;
}

/**
 * Whether the operation only adds or reads, so that its count can be derived from that of a merged operation; with an
 * algorithm, each is decided again.
 */
function isMergeable({ key, hits, limit, onlyInWindow, endsBlock }: Operation): boolean {
  return (
    !endsBlock &&
    (hits >= 0 || (limit.algorithm !== undefined && onlyInWindow === undefined)) &&
    key.length <= LONGEST_MERGED_KEY
  );
}
