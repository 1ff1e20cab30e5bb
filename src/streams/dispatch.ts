import { DecisionError } from '../counting/decision-error';
import { type Operation, readOf } from '../counting/operation';
import { hitsOnRead, stopsWhenOver } from '../counting/read-then-decide';
import { type Lanes, PartOfCall } from './lanes';
import type { CounterLane, Counters } from './ports/counters';
import type { WindowCall } from './ports/decide';
import { grouped } from '../text/grouped';

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
    const lanes = grouped(operations, (operation) => this.#counters.laneOf(operation));
    let left = lanes.size;
    function settled(): void {
      left -= 1;
      if (left === 0) onCounted();
    }
    for (const [{ lanesAtOnce }, ofInstance] of grouped(lanes, ([{ instance }]) => instance)) {
      const unsent = ofInstance.map(([lane, own]) => new PartInLane(this, lane, own));
      for (let count = Math.min(lanesAtOnce, unsent.length); count > 0; count -= 1) this.#sendNext(unsent, settled);
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

  /** Sends the next part for an instance, and one more when that has settled. */
  #sendNext(unsent: PartInLane[], settled: () => void): void {
    const part = unsent.shift();
    if (part === undefined || this.isCancelled) return;
    part.onSettled = () => {
      settled();
      this.#sendNext(unsent, settled);
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
    operations: readonly Operation[],
  ) {
    super(call, operations);
  }

  override settle(): void {
    this.onSettled();
  }
}
