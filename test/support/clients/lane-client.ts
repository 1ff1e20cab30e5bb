import { type Subscription, asapScheduler } from 'rxjs';
import type { Operation, Result } from '../../../src/counting/operation';
import type { DecisionError } from '../../../src/counting/decision-error';
import { dispatch } from '../../../src/streams/dispatch';
import { Lanes } from '../../../src/streams/lanes';
import type { CounterLane, Counters } from '../../../src/streams/ports/counters';
import { Trip } from '../../../src/streams/deadline';

/** Counts on a store as the decision path does: each call goes through the pipeline windows of its lanes. */
export class LaneClient implements Disposable {
  readonly #counters: Counters;
  readonly #lanes: Lanes;
  readonly #subscription: Subscription;

  constructor(counters: Counters) {
    this.#counters = counters;
    this.#lanes = new Lanes({ scheduler: asapScheduler, errorOf: (thrown) => thrown as DecisionError });
    this.#subscription = this.#lanes.windows$.subscribe();
  }

  /** Resolves with the count after each operation; rejects with the DecisionError of the first that failed. */
  call(operations: readonly Operation[]): Promise<readonly number[]> {
    return new Promise((resolve, reject) => {
      const call = {
        operations,
        isCancelled: false,
        settle: () => resolve(operations.map(({ countAfter }) => countAfter)),
        fail: reject,
      };
      dispatch(call, this.#counters, this.#lanes);
    });
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}

/** Applies a batch to a lane as it is, within the time of the lane. */
export async function applyTo(lane: CounterLane, batch: readonly Operation[]): Promise<readonly Result[]> {
  const trip = new Trip();
  lane.server?.trips.begin(trip);
  try {
    return await lane.apply(batch, trip);
  } finally {
    lane.server?.trips.ended(trip);
  }
}
