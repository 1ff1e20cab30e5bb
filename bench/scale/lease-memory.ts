import { leasedLimit } from '../../test/counting/lease-bounds';
import { SimulatedInstance, Timeline } from '../../test/support/data/lease-fleet';
import { heapAfterCollection } from '../../test/support/processes/collect-garbage';
import { PREFIX, ScaleStore } from './counters';

const LEASES = 10_000;

/** The heap that a lease takes, with its key and what is known of its demand. */
export function bytesPerLease(): number {
  const timeline = new Timeline(1_700_000_000_000);
  const limit = leasedLimit(1_000_000, 10);
  const store = new ScaleStore(LEASES, 1);
  const before = heapAfterCollection();
  const instance = new SimulatedInstance({ timeline, store, trip: () => 1 });
  // Two calls on each key in each 20 ms.
  for (let round = 0; round < 20; round += 1) {
    for (let number = 0; number < LEASES; number += 1) {
      const key = `${PREFIX}${number}_1700000000`;
      for (let calls = 0; calls < 2; calls += 1) instance.call(limit, key, 1, () => undefined);
    }
    timeline.runTo(timeline.now + 20);
  }
  return (heapAfterCollection() - before) / instance.leases.size;
}
