import { Limit } from '../../src/counting/limit';
import { LARGEST_COUNT, Operation } from '../../src/counting/operation';
import { run } from '../../src/counting/simulate';
import { type AlgorithmName, DEFAULT_RULE_OPTIONS } from '../../src/rules/rule-config';
import type { CalendarConfig } from '../../src/rules/unit';
import { limit as ruleLimit } from '../support/data/rules';
import { SimulatedInstance, SimulatedStore, Timeline } from '../support/data/lease-fleet';
import { type CounterEvent, excessOf } from './lease-events';

interface Counting {
  readonly algorithm?: AlgorithmName | undefined;
  readonly burst?: number;
  /** Windows of a day of this calendar, instead of seconds. */
  readonly calendar?: CalendarConfig | undefined;
}

/** A limit with leases, of one key. */
export function leasedLimit(
  requestsPerUnit: number,
  unitMultiplier: number,
  { algorithm, burst, calendar }: Counting = {},
): Limit {
  const unit = calendar === undefined ? 'SECOND' : 'DAY';
  const of = ruleLimit(requestsPerUnit, unit, { unitMultiplier, calendar, algorithm, burst });
  return new Limit(of, DEFAULT_RULE_OPTIONS, 'd.k', { nearLimitRatio: 0.8, leases: 'auto' });
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

/** What disturbs a run, each with its probability at a call. */
const DISTURBANCES = {
  ...{ kill: 0.0005, reload: 0.001 },
  /** Of the store, and of the network of an instance. */
  ...{ stall: 0.001, lag: 0.001 },
  /** The call has many hits. */
  burst: 0.0005,
  /** It has another limit on the key. */
  override: 0.002,
  /** Another one gives hits back that have passed. */
  negative: 0.005,
  /** An operator clears the counter, or sets it. */
  change: 0.0005,
  /** Another program adds to the counter. */
  outside: 0.002,
  /** Hits are reserved, of which some are used later. */
  reserve: 0.001,
};
type Disturbance = keyof typeof DISTURBANCES;

/** What disturbs at a call, if anything does. @param random from 0 to 1 */
function disturbanceOf(random: number): Disturbance | undefined {
  let left = random;
  for (const [disturbance, probability] of Object.entries(DISTURBANCES)) {
    left -= probability;
    if (left < 0) return disturbance as Disturbance;
  }
  return undefined;
}
/** That something does. */
const DISTURBED = Object.values(DISTURBANCES).reduce((sum, each) => sum + each, 0);

/** Windows, how long they are played, and how long before an end this begins, in seconds. */
const WINDOWS = [
  { length: 1, played: 6, before: 1 },
  { length: 2, played: 8, before: 2 },
  { length: 10, played: 24, before: 10 },
  { length: 60, played: 20, before: 9 },
] as const;
/** 10:00 in Kathmandu. */
const MIDDAY = 1_700_021_700;
const DAYS = { length: 86_400, played: 20, before: 9 } as const;
const CALENDAR: CalendarConfig = { timeZone: 'Asia/Kathmandu', startsOn: 1 };

export interface RunOptions {
  readonly seed: number;
  readonly algorithm?: 'sliding_window' | 'token_bucket' | undefined;
  /** Most calls. */
  readonly calls?: number;
}

export interface RunResult {
  readonly calls: number;
  /** Decided without the store. */
  readonly atOnce: number;
  readonly granted: number;
  /** What was passed beyond what the bounds allow; nothing in a right implementation. */
  readonly excess: readonly string[];
}

/** Instances on one key, of which some have no leases, with random loads, trips and clocks. */
class Fleet {
  readonly #options: RunOptions;
  readonly #random: () => number;
  readonly #isDisturbed: boolean;
  readonly #timeline: Timeline;
  readonly #store = new SimulatedStore();
  readonly #end: number;
  readonly #counting: Counting;
  readonly #lengthSeconds: number;
  readonly #requestsPerUnit: number;
  #limit: Limit;
  readonly #other: Limit;
  readonly #instances: SimulatedInstance[];
  /** Killed ones, of which something may be on its way. */
  #killed: SimulatedInstance[] = [];
  readonly #events: CounterEvent[] = [];
  /** By calls, whether or not they live to see it. */
  readonly #givenBack: Operation[] = [];
  /** By the second of a clock. */
  readonly #keys = new Map<number, string>();
  /** Until when the store does not answer; and instances, which others do not wait for. */
  #stalledUntil = 0;
  readonly #laggingUntil = new WeakMap<SimulatedInstance, number>();
  #made = 0;
  #atOnce = 0;
  #granted = 0;

  constructor(options: RunOptions) {
    this.#options = options;
    const random = (this.#random = randomOf(options.seed));
    const { algorithm } = options;
    this.#isDisturbed = random() < 0.8;
    const isOfCalendar = algorithm === undefined && random() < 0.2;
    const { length, played, before } = isOfCalendar ? DAYS : WINDOWS[Math.floor(random() * WINDOWS.length)]!;
    const fleet = 2 + Math.floor(random() * 19);
    const perSecond = fleet * 10 * 30 ** random();
    this.#lengthSeconds = isOfCalendar ? 1 : length;
    this.#requestsPerUnit = Math.floor(perSecond * Math.min(length, played / 2));
    const burst = Math.ceil(this.#requestsPerUnit * (0.2 + random()));
    this.#counting = {
      ...(algorithm && { algorithm }),
      ...(algorithm === 'token_bucket' && { burst }),
      ...(isOfCalendar && { calendar: CALENDAR }),
    };
    this.#limit = this.#newLimit();
    this.#other = leasedLimit(Math.ceil(this.#requestsPerUnit / 2), this.#lengthSeconds, this.#counting);
    const start = (this.#limit.endOfWindow(MIDDAY) - before) * 1000;
    this.#timeline = new Timeline(start);
    this.#end = start + played * 1000;
    this.#instances = Array.from({ length: fleet }, () => this.#newInstance());
    const demand = perSecond * (0.5 + 2 * random());
    for (let index = 0; index < fleet; index += 1) this.#callFrom(index, (demand / 1000) * (2 / fleet) * random());
  }

  run(): RunResult {
    const { calls = Infinity } = this.#options;
    const timeline = this.#timeline;
    while (timeline.now < this.#end && this.#made < calls) {
      timeline.runTo(timeline.now + 1000);
      this.#store.counts.removeOutside(timeline.now - 20_000, Infinity);
    }
    timeline.runTo(timeline.now + 2000);
    for (const { statistics } of this.#instances) this.#granted += statistics.grantedHits.value;
    for (const operation of this.#givenBack) {
      const at = this.#store.appliedAt(operation);
      if (at !== undefined) this.#events.push({ kind: 'given back', key: operation.key, at, hits: -operation.hits });
    }
    const excess = excessOf(this.#events, this.#limit);
    return { calls: this.#made, atOnce: this.#atOnce, granted: this.#granted, excess };
  }

  #newLimit(): Limit {
    return leasedLimit(this.#requestsPerUnit, this.#lengthSeconds, this.#counting);
  }

  #newInstance(): SimulatedInstance {
    const usual = [0.3, 2, 80][Math.floor(this.#random() ** 2 * 3)]!;
    const instance: SimulatedInstance = new SimulatedInstance({
      ...{ timeline: this.#timeline, store: this.#store, span: 0.3, isLeasing: this.#random() < 0.85 },
      skew: Math.floor((this.#random() - 0.5) * 10_000),
      trip: () => {
        const until = Math.max(this.#stalledUntil, this.#laggingUntil.get(instance) ?? 0);
        return Math.max(usual, until - this.#timeline.now);
      },
    });
    return instance;
  }

  /** Calls of one instance, at a rate of its own: little for a time, then much. @param rate calls per millisecond */
  #callFrom(index: number, rate: number): void {
    const period = Math.min(this.#lengthSeconds, 10) * 1000 * (0.3 + 2 * this.#random());
    const arrive = (): void => {
      if (this.#timeline.now >= this.#end) return;
      this.#made += 1;
      const chosen = this.#random();
      const disturbance = this.#isDisturbed && chosen < DISTURBED ? disturbanceOf(chosen) : undefined;
      this.#call(this.#instances[index]!, disturbance);
      if (disturbance !== undefined) this.#disturb(index, disturbance);
      const factor = this.#timeline.now % (2 * period) < period ? 0.2 : 2;
      this.#timeline.after(-Math.log(1 - this.#random()) / Math.max(factor * rate, 1e-4), arrive);
    };
    this.#timeline.after(this.#random() * 100, arrive);
  }

  #keyAt({ wallClock }: SimulatedInstance): string {
    if (this.#options.algorithm !== undefined) return 'd_k_v';
    const seconds = Math.floor(wallClock / 1000);
    const known = this.#keys.get(seconds);
    if (known !== undefined) return known;
    const key = `d_k_v_${this.#limit.startOfWindow(seconds)}`;
    this.#keys.set(seconds, key);
    return key;
  }

  /** Hits of a call whose count crosses the limit do not pass, though a smaller call would. */
  #call(instance: SimulatedInstance, disturbance: Disturbance | undefined): void {
    const key = this.#keyAt(instance);
    const few = this.#random() < 0.9 ? 1 : 1 + Math.floor(this.#random() * 8);
    const hits = disturbance === 'burst' ? Math.ceil(this.#random() * this.#limit.capacity) : few;
    // Two rates on one bucket, or two limits on one sliding window, are no longer exact without leases either.
    const limit = this.#options.algorithm === undefined && disturbance === 'override' ? this.#other : this.#limit;
    const before = instance.atOnce;
    instance.call(limit, key, hits, (operation) => {
      if (!isPassed(operation)) return;
      const at = this.#store.appliedAt(operation) ?? this.#timeline.now;
      this.#events.push({ kind: 'passed', key, at, hits });
    });
    this.#atOnce += instance.atOnce - before;
  }

  #disturb(index: number, disturbance: Disturbance): void {
    const instance = this.#instances[index]!;
    const key = this.#keyAt(instance);
    const { now } = this.#timeline;
    if (disturbance === 'kill') {
      instance.isKilled = true;
      this.#granted += instance.statistics.grantedHits.value;
      this.#killed.push(instance);
      this.#instances[index] = this.#newInstance();
    } else if (disturbance === 'stall') this.#stalledUntil = now + 20 + this.#random() * 500;
    else if (disturbance === 'lag') this.#laggingUntil.set(instance, now + 100 + this.#random() * 2_000);
    else if (disturbance === 'reload') {
      // Other rules, with limits that are as before.
      this.#limit = this.#newLimit();
      for (const each of this.#instances) each.giveBackAll();
    } else if (disturbance === 'negative') this.#giveBack(instance, key);
    else if (disturbance === 'change') this.#change(instance, key);
    // Others know neither the algorithms of weir nor its reservations, which are of fixed windows.
    else if (this.#options.algorithm !== undefined) return;
    else if (disturbance === 'outside') this.#store.counts.change(key, 1, now, this.#limit);
    else if (disturbance === 'reserve') this.#reserve(instance, key);
  }

  #giveBack(instance: SimulatedInstance, key: string): void {
    const hits = 1 + Math.floor(this.#random() * 5);
    this.#givenBack.push(instance.call(this.#limit, key, -hits, () => undefined));
  }

  /** An operator clears the counter or sets it, through an instance, as `OperatedCounters` does. */
  #change(instance: SimulatedInstance, key: string): void {
    const limit = this.#limit;
    const count = this.#random() < 0.5 ? 0 : Math.floor(this.#random() * limit.capacity);
    instance.release(key, () => {
      instance.onStore(
        (now) => {
          this.#events.push({ kind: 'set', key, at: now, count, held: this.#heldBy(key) });
          const { table, counts } = this.#store;
          table.now = now;
          const change = new Operation(limit, key, 0);
          change.calls = [-LARGEST_COUNT, count];
          if (limit.algorithm !== undefined) run([change], table);
          else if (count === 0) counts.remove(key);
          else counts.set(key, count, now, limit);
        },
        () => instance.release(key),
      );
    });
  }

  /** Hits that are held, granted and not yet known, or on their way back. */
  #heldBy(key: string): number {
    this.#killed = this.#killed.filter(({ isReturning }) => isReturning);
    let held = this.#store.grantedOnTheWay(key);
    for (const { leases } of this.#instances) held += leases.heldOf(key);
    for (const each of [...this.#instances, ...this.#killed]) held += each.returning(key);
    return held;
  }

  /** All hits are reserved, or none; what is not used of them is counted no more. */
  #reserve(instance: SimulatedInstance, key: string): void {
    const limit = this.#limit;
    const hits = 1 + Math.floor(this.#random() * 10);
    const { counts } = this.#store;
    instance.release(key, () => {
      instance.onStore((now) => {
        if (counts.get(key) + hits > limit.requestsPerUnit) return;
        counts.add(key, hits, now, limit);
        this.#events.push({ kind: 'passed', key, at: now, hits });
        const unused = Math.floor(this.#random() * (hits + 1));
        this.#timeline.after(this.#random() * 2_000, () => {
          this.#events.push({ kind: 'not used', key, at: this.#timeline.now, hits: unused });
          counts.subtract(key, unused);
        });
      });
    });
  }
}

function isPassed({ isKnownOver, outcome, countAfter: after, limit: { requestsPerUnit: most } }: Operation): boolean {
  return !isKnownOver && (outcome === undefined ? after <= most : outcome.isAllowed);
}

/** Runs a fleet that a seed determines, and checks the bounds of leases. */
export function runFleet(options: RunOptions): RunResult {
  return new Fleet(options).run();
}
