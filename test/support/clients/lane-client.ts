import { type Subscription, asapScheduler, catchError, map, of, tap } from 'rxjs';
import type { CounterOperation } from '../../../src/limiter/counter-operation';
import type { DecisionError } from '../../../src/limiter/decision-error';
import { dispatch } from '../../../src/streams/dispatch';
import { Lanes } from '../../../src/streams/lanes';
import type { Counters } from '../../../src/streams/ports/counters';
import { type WindowOperation, Window } from '../../../src/streams/window';

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
        const window = new Window(calls);
        return lane.apply(window.batch).pipe(
          tap((counts) => window.settle(counts)),
          catchError((error: DecisionError) => of(window.fail(error))),
          map(() => window),
        );
      },
    });
    this.#subscription = this.#lanes.windows$.subscribe();
  }

  /** Resolves with the count after each operation; rejects with the DecisionError of the first that failed. */
  call(operations: readonly CounterOperation[]): Promise<readonly number[]> {
    return new Promise((resolve, reject) => {
      const own = operations.map((operation): WindowOperation => ({ ...operation, after: 0 }));
      const call = {
        operations: own,
        isCancelled: false,
        settle: () => resolve(own.map(({ after }) => after)),
        fail: reject,
      };
      dispatch(call, this.#counters, this.#lanes);
    });
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}
