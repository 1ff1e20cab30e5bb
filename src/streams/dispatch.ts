import { DecisionError } from '../counting/decision-error';
import { type Operation, readOf } from '../counting/operation';
import { hitsOnRead, stopsWhenOver } from '../counting/read-then-decide';
import { type Lanes, PartOfCall } from './lanes';
import type { CounterInstance, CounterLane, Counters } from './ports/counters';
import type { WindowCall } from './ports/decide';

/**
 * Sends a call to the lanes of its operations. A call of one lane goes there as it is, which is the common case.
 * Otherwise each lane gets its part, at most `lanesAtOnce` of an instance at a time, and the call settles when every
 * part has; the first part that fails fails the call, and parts that were not sent yet are dropped. A call with an
 * operation that the store cannot count fails before any of it is sent.
 *
 * The operations of a group over several lanes cannot be one atomic step: they are read first, then counted.
 */
export function dispatch(call: WindowCall, counters: Counters, lanes: Lanes): void {
  const { operations } = call;
  const lane = onlyLaneOf(operations, counters);
  if (lane instanceof DecisionError) return call.fail(lane);
  if (lane !== undefined) return lanes.add(lane, call);
  const spread = new SpreadCall(call, counters, lanes);
  if (operations.some(stopsWhenOver)) spread.readThenCount();
  else spread.count(operations, () => call.settle());
}

/** The lane of all these operations, undefined if there are several, or the error of one that cannot be counted. */
function onlyLaneOf(operations: readonly Operation[], counters: Counters): CounterLane | undefined | DecisionError {
  try {
    const lane = counters.laneOf(operations[0] as Operation);
    let isOnly = true;
    // Each operation is looked at, also when it is clear that there are several lanes.
    for (let index = 1; index < operations.length; index += 1) {
      if (counters.laneOf(operations[index] as Operation) !== lane) isOnly = false;
    }
    return isOnly ? lane : undefined;
  } catch (error) {
    if (error instanceof DecisionError) return error;
    throw error;
  }
}

/** A call whose operations are counted in several lanes. */
class SpreadCall extends PartOfCall {
  readonly #counters: Counters;
  readonly #lanes: Lanes;
  #hasFailed = false;

  constructor(call: WindowCall, counters: Counters, lanes: Lanes) {
    super(call, call.operations);
    this.#counters = counters;
    this.#lanes = lanes;
  }

  /** Parts that were not sent yet are not needed any more. */
  override get isCancelled(): boolean {
    return this.#hasFailed || super.isCancelled;
  }

  /** Sends the operations by lane; calls back when every one has its count in `countAfter`. */
  count(operations: readonly Operation[], onCounted: () => void): void {
    const groups = this.#groupByInstance(operations);
    let left = groups.length;
    for (const group of groups) {
      group.send(() => {
        left -= 1;
        if (left === 0) onCounted();
      });
    }
  }

  readThenCount(): void {
    const { operations } = this;
    const reads = operations.map(readOf);
    this.count(reads, () => {
      reads.forEach(({ failure }, index) => ((operations[index] as Operation).failure = failure));
      const known = operations.filter(({ failure }) => failure === undefined);
      if (known.length === 0) return this.settle();
      const stored = reads.filter(({ failure }) => failure === undefined).map(({ countAfter }) => countAfter);
      const hits = hitsOnRead(known, stored);
      known.forEach((operation, index) => {
        // The limits of a rule with `all_or_nothing` are in one lane.
        if (stopsWhenOver(operation)) operation.leaveGroup(hits[index] as number);
      });
      this.count(known, () => this.settle());
    });
  }

  override fail(error: DecisionError): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    super.fail(error);
  }

  #groupByInstance(operations: readonly Operation[]): readonly InstanceGroup[] {
    const groups = new Map<CounterInstance, InstanceGroup>();
    for (const operation of operations) {
      const lane = this.#counters.laneOf(operation);
      const known = groups.get(lane.instance);
      const group = known ?? new InstanceGroup(this, this.#lanes, lane.instance.lanesAtOnce);
      if (known === undefined) groups.set(lane.instance, group);
      group.add(lane, operation);
    }
    return [...groups.values()];
  }
}

/** The parts of a call that go to the lanes of one instance. */
class InstanceGroup {
  readonly #call: SpreadCall;
  readonly #lanes: Lanes;
  readonly #lanesAtOnce: number;
  readonly #parts = new Map<CounterLane, PartInLane>();
  #unsent: PartInLane[] = [];
  #left = 0;

  constructor(call: SpreadCall, lanes: Lanes, lanesAtOnce: number) {
    this.#call = call;
    this.#lanes = lanes;
    this.#lanesAtOnce = lanesAtOnce;
  }

  add(lane: CounterLane, operation: Operation): void {
    const known = this.#parts.get(lane);
    if (known === undefined) this.#parts.set(lane, new PartInLane(this.#call, lane, [operation]));
    else known.operations.push(operation);
  }

  /** Sends as many parts at a time as the instance allows; calls back when all have settled. */
  send(onSettled: () => void): void {
    this.#unsent = [...this.#parts.values()];
    this.#left = this.#unsent.length;
    for (let count = Math.min(this.#lanesAtOnce, this.#left); count > 0; count -= 1) this.#sendNext(onSettled);
  }

  #sendNext(onSettled: () => void): void {
    const part = this.#unsent.shift();
    if (part === undefined || this.#call.isCancelled) return;
    part.onSettled = () => {
      this.#left -= 1;
      if (this.#left === 0) onSettled();
      else this.#sendNext(onSettled);
    };
    this.#lanes.add(part.lane, part);
  }
}

/** The operations of a call that are counted in one lane. */
class PartInLane extends PartOfCall {
  onSettled: () => void = () => undefined;

  constructor(
    call: SpreadCall,
    readonly lane: CounterLane,
    override readonly operations: Operation[],
  ) {
    super(call, operations);
  }

  override settle(): void {
    this.onSettled();
  }
}
