import { ExpiringCounts, TimedCounts } from '../../src/counting/counts';
import { Operation } from '../../src/counting/operation';
import { simulate } from '../../src/counting/simulate';
import { windowStart } from '../../src/counting/windows';
import { leasedLimit, randomOf } from '../../test/counting/lease-bounds';
import { SimulatedInstance, SimulatedStore, Timeline } from '../../test/support/data/lease-fleet';

/** Instances that share a limit of one key. */
export interface FleetCase {
  readonly instances: number;
  /** Whether instance i makes 1/i of the calls of the first one. Default: all make as many. */
  readonly isUneven?: boolean;
  readonly requestsPerUnit: number;
  readonly windowSeconds: number;
  readonly algorithm?: 'sliding_window' | 'token_bucket';
  readonly burst?: number;
  /** Calls are made only in this part of each window. */
  readonly until?: number;
  /** Milliseconds to the store and back. */
  readonly trip: number;
  /** How many windows are simulated. */
  readonly windows: number;
}

export interface FleetResult {
  readonly calls: number;
  /** Per call. */
  readonly trips: number;
  /** The share of the calls that were decided without a trip. */
  readonly atOnce: number;
  /**
   * The calls that have passed by the ends of their windows, as a share of those that pass where one counter decides
   * each at once.
   */
  readonly passed: number;
  /** The same of the window with the least. */
  readonly leastPassed: number;
  /** The share of the calls that were denied while another instance held hits. */
  readonly early: number;
}

/** Calls of a window. */
interface Totals {
  passed: number;
  /** What passes where one counter decides each call at once. */
  ideal: number;
}

/** The start of a window of each length that is used. */
const START = 1_700_006_400_000;

/**
 * Simulates the calls of a fleet with the code that decides them in the service, in virtual time.
 *
 * @param demand the calls of all instances, as a multiple of the limit
 */
export function simulateFleet(fleet: FleetCase, demand: number): FleetResult {
  const { instances: size, isUneven = false, windowSeconds, until = 1, trip, windows } = fleet;
  const random = randomOf(1);
  const timeline = new Timeline(START);
  const store = new SimulatedStore();
  const limit = leasedLimit(fleet.requestsPerUnit, windowSeconds, fleet);
  const reference = new TimedCounts(new ExpiringCounts({ maxKeys: 1_000 }));
  const instances = Array.from(
    { length: size },
    () => new SimulatedInstance({ timeline, store, trip: () => trip, span: 0.5 }),
  );
  const totals = new Map<number, Totals>();
  const end = START + windows * windowSeconds * 1_000;
  let [calls, early] = [0, 0];

  function isPassed({ isKnownOver, outcome, countAfter: after }: Operation): boolean {
    return !isKnownOver && (outcome === undefined ? after <= limit.requestsPerUnit : outcome.isAllowed);
  }
  function totalsAt(start: number): Totals {
    let known = totals.get(start);
    if (known === undefined) totals.set(start, (known = { passed: 0, ideal: 0 }));
    return known;
  }
  function call(instance: SimulatedInstance): void {
    const start = windowStart(Math.floor(timeline.now / 1_000), windowSeconds);
    const key = limit.algorithm === undefined ? `d_k_v_${start}` : 'd_k_v';
    const window = totalsAt(start);
    calls += 1;
    instance.call(limit, key, 1, (operation) => {
      if (isPassed(operation)) window.passed += 1;
      else if (instances.some(({ leases }) => leases.heldOf(key) > 0)) early += 1;
    });
    const alone = new Operation(limit, key, 1);
    reference.now = timeline.now;
    simulate([alone], reference);
    if (isPassed(alone)) window.ideal += 1;
  }
  /** When calls are made: not in the last part of a window. */
  function afterRest(time: number): number {
    const inWindow = (time - START) % (windowSeconds * 1_000);
    return inWindow < until * windowSeconds * 1_000 ? time : time - inWindow + windowSeconds * 1_000;
  }

  const shares = instances.map((_, index) => (isUneven ? 1 / (index + 1) : 1));
  const sum = shares.reduce((one, other) => one + other);
  instances.forEach((instance, index) => {
    const perMillisecond = ((demand * fleet.requestsPerUnit) / windowSeconds / 1_000) * (shares[index]! / sum);
    function next(): void {
      const time = afterRest(timeline.now - Math.log(1 - random()) / perMillisecond);
      if (time < end) timeline.at(time, arrive);
    }
    function arrive(): void {
      call(instance);
      next();
    }
    next();
  });
  timeline.runTo(end + 2_000);

  const all = [...totals.values()];
  return {
    calls,
    trips: store.trips / calls,
    atOnce: instances.reduce((atOnce, each) => atOnce + each.atOnce, 0) / calls,
    passed: all.reduce((passed, each) => passed + each.passed, 0) / all.reduce((ideal, each) => ideal + each.ideal, 0),
    leastPassed: Math.min(...all.map(({ passed, ideal }) => passed / ideal)),
    early: early / calls,
  };
}
