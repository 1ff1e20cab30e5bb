import { Limit } from '../../src/counting/limit';
import type { Operation } from '../../src/counting/operation';
import { windowStart } from '../../src/counting/windows';
import { type ALGORITHMS, DEFAULT_OPTIONS } from '../../src/rules/rule-config';
import { UNITS } from '../../src/rules/unit';
import { SimulatedInstance, SimulatedStore, Timeline } from '../support/data/lease-fleet';

/** A limit with leases, of one key. */
export function leasedLimit(
  requestsPerUnit: number,
  unitMultiplier: number,
  { algorithm, burst }: { readonly algorithm?: (typeof ALGORITHMS)[number]; readonly burst?: number } = {},
): Limit {
  const limit = { requestsPerUnit, unit: UNITS.SECOND, unitMultiplier, name: '' };
  const source = { path: 'd.k', options: DEFAULT_OPTIONS, algorithm, burst, lease: true };
  return new Limit(limit, source, { nearLimitRatio: 0.8 });
}

/** Random numbers from 0 to 1 that a seed determines. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** What is disturbed in a run, each with its probability at every call. */
export interface Disturbances {
  readonly kill: number;
  readonly stall: number;
  readonly reload: number;
  /** A call gives hits back that have passed. */
  readonly negative: number;
  /** An operator clears the counter. */
  readonly clear: number;
  /** A call has another limit on the key. */
  readonly override: number;
  /** Another program adds to the counter. */
  readonly outside: number;
}

export interface RunOptions {
  readonly seed: number;
  readonly calls: number;
  readonly algorithm?: 'sliding_window' | 'token_bucket' | undefined;
  readonly disturbances: Disturbances;
}

/** Hits that have passed, and when, by the clock of the store. */
interface Pass {
  readonly at: number;
  readonly hits: number;
}

/** The most that a window may let pass, and what has passed in it. */
interface WindowTotals {
  passed: number;
  allowed: number;
}

export interface RunResult {
  /** Decided without the store. */
  readonly atOnce: number;
  readonly granted: number;
  /** What was passed beyond what the bounds allow, in hits; none in a right implementation. */
  readonly excess: readonly string[];
}

/**
 * Runs a fleet of instances on one key, of which some have no leases, with random loads, trips and clocks, and checks the bounds of
 * docs/leases.md.
 */
export function runFleet({ seed, calls, algorithm, disturbances }: RunOptions): RunResult {
  const random = randomOf(seed);
  const START = 1_700_000_000_000;
  const timeline = new Timeline(START);
  const store = new SimulatedStore();
  const windowSeconds = [1, 2, 10][Math.floor(random() * 3)]!;
  const requestsPerUnit = Math.floor(50 * 200 ** random());
  const burst = algorithm === 'token_bucket' ? Math.ceil(requestsPerUnit * (0.2 + random())) : undefined;
  const counting = algorithm === undefined ? {} : { algorithm, ...(burst !== undefined && { burst }) };
  const limit = leasedLimit(requestsPerUnit, windowSeconds, counting);
  const other = leasedLimit(Math.ceil(requestsPerUnit / 2), windowSeconds, counting);
  const fleet = 2 + Math.floor(random() * 19);
  const demand = (requestsPerUnit / windowSeconds) * (0.5 + 2 * random());
  const excess: string[] = [];
  const windows = new Map<number, WindowTotals>();
  const passes: Pass[] = [];
  let [stalledUntil, atOnce, granted, made] = [0, 0, 0, 0];

  function newInstance(): SimulatedInstance {
    const usual = [0.3, 2, 80][Math.floor(random() ** 2 * 3)]!;
    return new SimulatedInstance({
      ...{ timeline, store, span: 0.3, isLeasing: random() < 0.85 },
      skew: Math.floor((random() - 0.5) * 10_000),
      trip: () => Math.max(usual, stalledUntil - timeline.now),
    });
  }
  const instances = Array.from({ length: fleet }, newInstance);

  function keyAt(instance: SimulatedInstance): string {
    return algorithm === undefined
      ? `d_k_v_${windowStart(Math.floor(instance.wallClock / 1000), windowSeconds)}`
      : `{_d_k_v_}${algorithm}_${windowSeconds}`;
  }
  function totalsOf(key: string): WindowTotals {
    const window = Number(key.slice(key.lastIndexOf('_') + 1));
    let totals = windows.get(window);
    if (totals === undefined) windows.set(window, (totals = { passed: 0, allowed: requestsPerUnit }));
    return totals;
  }
  function isPassed({ isKnownOver, outcome, after, limit: { requestsPerUnit: most } }: Operation): boolean {
    return !isKnownOver && (outcome === undefined ? after <= most : outcome.isAllowed);
  }
  function heldBy(key: string, except?: SimulatedInstance): number {
    return instances.reduce((sum, each) => sum + (each === except ? 0 : each.leases.heldOf(key)), 0);
  }
  /** Hits of a call whose count crosses the limit do not pass, though a smaller call would. */
  function call(instance: SimulatedInstance): void {
    const key = keyAt(instance);
    const hits = random() < 0.9 ? 1 : 1 + Math.floor(random() * 8);
    // Two rates on one bucket, or two limits on one sliding window, are no longer exact without leases either.
    const used = algorithm === undefined && random() < disturbances.override ? other : limit;
    const before = instance.atOnce;
    instance.call(used, key, hits, (operation) => {
      if (!isPassed(operation)) return;
      passed(key, hits, operation.isSent ? store.appliedAt(operation) : timeline.now);
    });
    atOnce += instance.atOnce - before;
  }
  function passed(key: string, hits: number, at: number): void {
    if (algorithm === undefined) {
      const totals = totalsOf(key);
      totals.passed += hits;
      if (totals.passed > totals.allowed) excess.push(`${totals.passed} of ${totals.allowed} in ${key}`);
    } else passes.push({ at, hits });
  }
  function disturb(instance: SimulatedInstance, index: number): void {
    const key = keyAt(instance);
    const { kill, stall, reload, negative, clear, outside } = disturbances;
    if (random() < kill) {
      instance.isKilled = true;
      granted += instance.statistics.granted.value;
      instances[index] = newInstance();
    }
    if (random() < stall) stalledUntil = timeline.now + 20 + random() * 500;
    if (random() < reload) instance.giveBackAll();
    if (algorithm !== undefined) return;
    if (random() < negative) {
      const hits = 1 + Math.floor(random() * 5);
      totalsOf(key).allowed += hits;
      instance.call(limit, key, -hits, () => undefined);
    }
    if (random() < clear) {
      // This instance has given back what it holds before; what others hold and what is on its way may pass in addition.
      const totals = totalsOf(key);
      instance.leases.giveBack(key);
      instance.leases.takeToSend();
      store.counts.remove(key);
      totals.allowed = totals.passed + requestsPerUnit + heldBy(key) + store.onTheWay(key);
    }
    if (random() < outside) store.counts.change(key, 1, timeline.now, windowSeconds);
  }

  // Each instance has a share of the demand of its own.
  instances.forEach((_, index) => {
    const rate = (demand / 1000) * (2 / fleet) * random();
    // Little for a time, then much.
    const period = windowSeconds * 1000 * (0.3 + 2 * random());
    function arrive(): void {
      made += 1;
      if (made > calls) return;
      call(instances[index]!);
      disturb(instances[index]!, index);
      const factor = timeline.now % (2 * period) < period ? 0.2 : 2;
      timeline.after(-Math.log(1 - random()) / Math.max(factor * rate, 1e-4), arrive);
    }
    timeline.after(random() * 100, arrive);
  });
  while (made < calls) {
    timeline.runTo(timeline.now + 1000);
    store.counts.removeOutside(timeline.now - 20_000, Infinity);
  }
  timeline.runTo(timeline.now + 2000);
  for (const { statistics } of instances) granted += statistics.granted.value;
  if (algorithm === 'token_bucket') excess.push(...beyondBucket(passes, limit));
  if (algorithm === 'sliding_window') excess.push(...beyondWindows(passes, limit));
  return { atOnce, granted, excess };
}

/** The passes that an exact bucket would have denied: in an interval of any length, at most its burst and what flows in. */
function beyondBucket(passes: readonly Pass[], { capacity, requestsPerUnit, lengthSeconds }: Limit): string[] {
  const perHit = (lengthSeconds * 1000) / requestsPerUnit;
  const excess: string[] = [];
  let full = 0;
  for (const { at, hits } of passes.toSorted((one, other) => one.at - other.at)) {
    full = Math.max(full, at) + hits * perHit;
    // A thousandth of a hit for the rounding of these sums.
    if (full > at + (capacity + 0.001) * perHit)
      excess.push(`${((full - at) / perHit - capacity).toFixed(3)} at ${at}`);
  }
  return excess;
}

/** The passes that exact sliding windows would have denied. */
function beyondWindows(passes: readonly Pass[], { requestsPerUnit, lengthSeconds }: Limit): string[] {
  const length = lengthSeconds * 1000;
  const excess: string[] = [];
  let [number, previous, current] = [0, 0, 0];
  for (const { at, hits } of passes.toSorted((one, other) => one.at - other.at)) {
    const own = Math.floor(at / length);
    if (own !== number) [previous, current] = [own === number + 1 ? current : 0, 0];
    number = own;
    current += hits;
    const used = Math.ceil((previous * (length - (Math.floor(at) % length))) / length) + current;
    if (used > requestsPerUnit) excess.push(`${used} of ${requestsPerUnit} at ${at}`);
  }
  return excess;
}
