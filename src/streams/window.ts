import type { Count, CounterOperation, Guard } from '../limiter/counter-operation';
import type { DecisionError } from '../limiter/decision-error';
import type { CallTrace } from './ports/tracer';

/** An operation that waits for its count. */
export interface WindowOperation extends CounterOperation {
  after: number;
}

/** A call whose operations are gathered into a window. */
export interface WindowCall {
  readonly operations: readonly WindowOperation[];
  /** Told of the window's trip to the store, when somebody wants to know. */
  readonly trace?: CallTrace | undefined;
  /** The caller has gone: the window leaves the call out. */
  readonly isCancelled: boolean;
  /** Every operation has its count in `after`. */
  settle(): void;
  fail(error: DecisionError): void;
}

/** Additions to one key that go to the store as one, and give each its own count back. */
class Merged implements CounterOperation {
  hits: number;
  readonly key: string;
  readonly windowSeconds: number;
  readonly limit: number;
  readonly guard: Guard | undefined = undefined;

  constructor({ key, hits, windowSeconds, limit }: CounterOperation) {
    this.key = key;
    this.hits = hits;
    this.windowSeconds = windowSeconds;
    this.limit = limit;
  }
}

/** Where an operation's count stands: its place in the batch, and what merged additions before and with it add up to. */
interface BatchPosition {
  readonly index: number;
  readonly upTo: number;
}

/**
 * The calls of one pipeline window. Additions to the same key become one operation; each call is then given its own count
 * by its place in arrival order, exactly as if its operations had been sent one by one.
 */
export class Window {
  /** What the store has to do, in order. */
  readonly batch: CounterOperation[] = [];
  readonly #calls: readonly WindowCall[];
  readonly #places: BatchPosition[] = [];
  #mergedHits = 0;

  constructor(calls: readonly WindowCall[]) {
    this.#calls = calls.filter((call) => !call.isCancelled);
    this.#merge();
  }

  /** Hits that travel in another call's operation. */
  get mergedHits(): number {
    return this.#mergedHits;
  }

  /** Gives every call its counts. A call with an operation that failed alone fails alone. */
  settle(counts: readonly Count[]): void {
    let position = 0;
    for (const call of this.#calls) {
      let error: DecisionError | undefined;
      for (const operation of call.operations) {
        const { index, upTo } = this.#places[position] as BatchPosition;
        position += 1;
        const count = counts[index] as Count;
        if (typeof count === 'number') operation.after = count - (this.batch[index] as CounterOperation).hits + upTo;
        else error ??= count;
      }
      if (error === undefined) call.settle();
      else call.fail(error);
    }
  }

  fail(error: DecisionError): void {
    for (const call of this.#calls) call.fail(error);
  }

  #merge(): void {
    /** By key, the index of the operation that the next addition to the key can join. */
    const open = new Map<string, number>();
    for (const { operations } of this.#calls) {
      for (const operation of operations) {
        const index = isAddition(operation) ? open.get(operation.key) : undefined;
        const upTo = index === undefined ? undefined : this.#join(index, operation);
        if (index !== undefined && upTo !== undefined) {
          this.#places.push({ index, upTo });
          continue;
        }
        this.#places.push({ index: this.batch.length, upTo: operation.hits });
        // Any other step on the key comes between: what follows it must not be counted before it.
        if (isAddition(operation)) open.set(operation.key, this.batch.length);
        else open.delete(operation.key);
        this.batch.push(operation);
      }
    }
  }

  /** @returns what the merged additions add up to with this one, undefined when the sum would not be exact */
  #join(index: number, operation: CounterOperation): number | undefined {
    const present = this.batch[index] as CounterOperation;
    const sum = present.hits + operation.hits;
    if (sum > Number.MAX_SAFE_INTEGER) return undefined;
    const merged = present instanceof Merged ? present : new Merged(present);
    merged.hits = sum;
    this.batch[index] = merged;
    this.#mergedHits += operation.hits;
    return sum;
  }
}

/** Whether the operation only adds or reads, so that its count follows from another's beside it. */
function isAddition({ hits, guard }: CounterOperation): boolean {
  return hits >= 0 && guard === undefined;
}
