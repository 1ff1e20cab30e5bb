import { Batch, type BatchCall } from '../../../src/counting/batch';
import { ExpiringCounts, TimedCounts } from '../../../src/counting/counts';
import { Leases } from '../../../src/counting/leases';
import type { Limit } from '../../../src/counting/limit';
import { Operation, type Stored } from '../../../src/counting/operation';
import { run } from '../../../src/counting/simulate';
import { Counter } from '../../../src/statistics/counter';

/** A store that instances share, which applies batches at its own time. */
export interface BatchStore {
  apply(batch: Batch, now: number): readonly Stored[];
  /** The answer has arrived, or never will. */
  ended(batch: Batch): void;
}

/** Such a store, which knows what is on its way. */
export class SimulatedStore implements BatchStore {
  readonly counts = new ExpiringCounts({ maxKeys: 1e9 });
  readonly table = new TimedCounts(this.counts);
  trips = 0;
  /** Operations of all batches: each costs a command. */
  commands = 0;
  /** Answers that have not arrived: what was granted by key. */
  readonly #onTheWay = new Set<readonly Operation[]>();
  readonly #appliedAt = new WeakMap<object, number>();

  apply(batch: Batch, now: number): readonly Stored[] {
    this.table.now = now;
    this.trips += 1;
    this.commands += batch.operations.length;
    this.#onTheWay.add(batch.operations);
    for (const { operations } of batch.calls) for (const each of operations) this.#appliedAt.set(each, now);
    return run(batch.operations, this.table);
  }

  ended({ operations }: Batch): void {
    this.#onTheWay.delete(operations);
  }

  /** When an operation was applied, if it was. */
  appliedAt(operation: Operation): number | undefined {
    return this.#appliedAt.get(operation);
  }

  /** What was granted of a key in answers on their way. */
  grantedOnTheWay(key: string): number {
    let hits = 0;
    for (const operations of this.#onTheWay) {
      for (const each of operations) if (each.key === key) hits += each.lease?.granted ?? 0;
    }
    return hits;
  }
}

/** Events in virtual time, in Unix milliseconds. */
export class Timeline {
  now: number;
  readonly #heap: [at: number, order: number, run: () => void][] = [];
  #order = 0;

  constructor(now: number) {
    this.now = now;
  }

  at(time: number, event: () => void): void {
    const heap = this.#heap;
    this.#order += 1;
    heap.push([time, this.#order, event]);
    let index = heap.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (isBefore(heap[parent]!, heap[index]!)) break;
      [heap[parent], heap[index]] = [heap[index]!, heap[parent]!];
      index = parent;
    }
  }

  after(milliseconds: number, event: () => void): void {
    this.at(this.now + milliseconds, event);
  }

  /** Runs the events up to a time. */
  runTo(time: number): void {
    while (this.#heap.length > 0 && this.#heap[0]![0] <= time) {
      const [at, , event] = this.#pop();
      this.now = Math.max(this.now, at);
      event();
    }
    this.now = time;
  }

  #pop(): [number, number, () => void] {
    const heap = this.#heap;
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    heap[0] = last;
    for (let index = 0; ;) {
      let least = 2 * index + 1;
      if (least >= heap.length) return first;
      if (least + 1 < heap.length && isBefore(heap[least + 1]!, heap[least]!)) least += 1;
      if (isBefore(heap[index]!, heap[least]!)) return first;
      [heap[index], heap[least]] = [heap[least]!, heap[index]!];
      index = least;
    }
  }
}

function isBefore(one: readonly [number, number, unknown], other: readonly [number, number, unknown]): boolean {
  return one[0] < other[0] || (one[0] === other[0] && one[1] < other[1]);
}

export interface InstanceOptions {
  readonly timeline: Timeline;
  readonly store: BatchStore;
  /** Milliseconds to the store and back, at each trip. */
  readonly trip: () => number;
  /** By how much its clock is ahead of that of the store, in milliseconds. */
  readonly skew?: number;
  /** Whether it has leases. Default: true. */
  readonly isLeasing?: boolean;
  /** How long a window gathers, in milliseconds. */
  readonly span?: number;
}

/** A call of one operation. There may be millions in flight: it has no function of its own. */
class Call implements BatchCall {
  readonly isCancelled = false;
  readonly operations: readonly [Operation];

  constructor(
    operation: Operation,
    readonly decided: (operation: Operation) => void,
  ) {
    this.operations = [operation];
  }

  settle(): void {
    this.decided(this.operations[0]);
  }

  fail(): void {
    // The store of these tests does not fail.
  }
}

/** An instance of weir, as far as it counts: what streams/ does with leases, batches and lanes, in virtual time. */
export class SimulatedInstance {
  readonly leases: Leases;
  readonly statistics = {
    grantedHits: new Counter('granted'),
    usedHits: new Counter('used'),
    returnedHits: new Counter('returned'),
    unusedHits: new Counter('unused'),
    savedCalls: new Counter('saved'),
  };
  /** Calls that were decided without a trip. */
  atOnce = 0;
  isKilled = false;
  readonly #options: InstanceOptions;
  #gathered: Call[] = [];
  /** What the leases give back and the store does not have yet. */
  readonly #returns = new Set<Operation>();

  constructor(options: InstanceOptions) {
    this.#options = options;
    const { timeline, skew = 0 } = options;
    this.leases = new Leases({
      isAuto: true,
      now: () => timeline.now,
      wallClock: () => timeline.now + skew,
      ...this.statistics,
    });
    this.leases.connect({
      send: (operations, ended) => this.#sendDue(operations, ended),
      later: (work, milliseconds) => timeline.after(milliseconds, () => (this.isKilled ? undefined : work())),
    });
  }

  /** Unix milliseconds of its clock. */
  get wallClock(): number {
    return this.#options.timeline.now + (this.#options.skew ?? 0);
  }

  call(limit: Limit, key: string, hits: number, decided: (operation: Operation) => void): Operation {
    const operation = new Operation(limit, key, hits);
    this.#begin(new Call(operation, decided));
    return operation;
  }

  #begin(call: Call): void {
    if (this.#options.isLeasing === false) return this.#gather(call);
    if (this.#isDecided(call)) {
      this.atOnce += 1;
      return call.settle();
    }
    const queue = this.leases.queueFor(call.operations);
    if (queue === undefined) this.#gather(call);
    else queue.push(() => (this.#isDecided(call) ? call.settle() : this.#gather(call)));
  }

  /** Sends an operation in the next window. */
  send(operation: Operation, settled: (operation: Operation) => void = () => undefined): void {
    this.#gather(new Call(operation, settled));
  }

  /** Gives back what is held of a key, and calls back when the store has it. */
  release(key: string, released: () => void = () => undefined): void {
    this.leases.giveBack([key], released);
  }

  /** Does something on the store that is no operation. @param known called when the answer has arrived */
  onStore(change: (now: number) => void, known: () => void = () => undefined): void {
    const { timeline, trip } = this.#options;
    const time = trip();
    timeline.after(time / 2, () => {
      change(timeline.now);
      timeline.after(time / 2, () => (this.isKilled ? undefined : known()));
    });
  }

  /** The hits of a key that are on their way back. */
  returning(key: string): number {
    let hits = 0;
    for (const each of this.#returns) if (each.key === key) hits -= each.hits;
    return hits;
  }

  get isReturning(): boolean {
    return this.#returns.size > 0;
  }

  /** Other rules apply, or the process ends. */
  giveBackAll(): void {
    this.leases.giveBackAll();
  }

  #sendDue(operations: readonly Operation[], ended: () => void): void {
    let left = operations.length;
    for (const operation of operations) {
      if (operation.hits < 0) this.#returns.add(operation);
      this.send(operation, () => {
        left -= 1;
        if (left === 0) ended();
      });
    }
  }

  #gather(call: Call): void {
    this.#gathered.push(call);
    if (this.#gathered.length === 1) this.#options.timeline.after(this.#options.span ?? 0, () => this.#sendWindow());
  }

  #isDecided({ operations }: Call): boolean {
    return this.leases.decide(operations, undefined).length === 0;
  }

  #sendWindow(): void {
    const { timeline, store, trip, isLeasing } = this.#options;
    const batch = new Batch(this.#gathered);
    this.#gathered = [];
    if (this.isKilled) return;
    if (isLeasing !== false) this.leases.prepare(batch.operations);
    const time = trip();
    timeline.after(time / 2, () => {
      const results = store.apply(batch, timeline.now);
      if (this.isReturning) for (const { operations } of batch.calls) this.#returns.delete(operations[0]);
      timeline.after(time / 2, () => {
        store.ended(batch);
        if (this.isKilled) return;
        batch.settle(results);
        this.leases.answered(batch.operations, results);
      });
    });
  }
}
