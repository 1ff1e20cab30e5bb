import type { Operation } from '../../src/counting/operation';
import { SimulatedInstance, SimulatedStore, Timeline } from '../support/data/lease-fleet';
import { leasedLimit } from './lease-bounds';

/** The start of a window of 10 seconds. */
export const START = 1_700_000_000_000;
/** Milliseconds to the store and back. */
export const TRIP = 2;

/** An instance with a store of its own, from {@link START} on. */
export function aloneWithStore(trip = () => TRIP) {
  const timeline = new Timeline(START);
  const store = new SimulatedStore();
  return { timeline, store, instance: new SimulatedInstance({ timeline, store, trip, span: 0.3 }) };
}

/** An instance whose key has been called 200 times a second for a second: it holds what is left of its last lease. */
export function leasing(limit = leasedLimit(1_000, 10), key = `d_k_v_${START / 1000}`) {
  let trip = TRIP;
  const { timeline, store, instance } = aloneWithStore(() => trip);
  function lag(milliseconds: number): void {
    trip = milliseconds;
  }
  const decided: Operation[] = [];
  function call(hits = 1): Operation | undefined {
    const before = decided.length;
    instance.call(limit, key, hits, (operation) => decided.push(operation));
    return decided[before];
  }
  // Two at a time, so that its windows show that it is called often.
  for (let at = 10; at < 1_000; at += 10) {
    timeline.at(START + at, () => {
      call();
      call();
    });
  }
  timeline.runTo(START + 1_000);
  function stored(): number {
    return store.counts.get(key);
  }
  return { timeline, instance, limit, key, call, stored, store, lag, held: () => instance.leases.heldOf(key) };
}
