import { type Subscription, asapScheduler, catchError, map, of, tap } from 'rxjs';
import { Batch } from '../../../src/counting/batch';
import type { Operation } from '../../../src/counting/operation';
import type { DecisionError } from '../../../src/counting/decision-error';
import { dispatch } from '../../../src/streams/dispatch';
import { Lanes } from '../../../src/streams/lanes';
import type { Counters } from '../../../src/streams/ports/counters';

/** Counts on a store as the decision path does: each call goes through the pipeline windows of its lanes. */
export class LaneClient implements Disposable {
  readonly #counters: Counters;
  readonly #lanes: Lanes;
  readonly #subscription: Subscription;

  constructor(counters: Counters) {
    this.#counters = counters;
    this.#lanes = new Lanes({
      scheduler: asapScheduler,
      send: (lane) => (calls) => {
        const window = new Batch(calls);
        return lane.apply(window.operations).pipe(
          tap((counts) => window.settle(counts)),
          catchError((error: DecisionError) => of(window.fail(error))),
          map(() => window),
        );
      },
    });
    this.#subscription = this.#lanes.windows$.subscribe();
  }

  /** Resolves with the count after each operation; rejects with the DecisionError of the first that failed. */
  call(operations: readonly Operation[]): Promise<readonly number[]> {
    return new Promise((resolve, reject) => {
      const call = {
        operations,
        isCancelled: false,
        settle: () => resolve(operations.map(({ after }) => after)),
        fail: reject,
      };
      dispatch(call, this.#counters, this.#lanes);
    });
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}
