import { leasedLimit, randomOf } from '../../test/counting/lease-bounds';
import { SimulatedInstance, Timeline } from '../../test/support/data/lease-fleet';
import { KeyCalls } from './calls';
import { ScaleStore } from './counters';
import { Zipf } from './zipf';

/**
 * How calls are counted; `cached`: exactly, by instances that remember which keys are over their limits until the
 * window ends.
 */
export type Mode = 'exact' | 'cached' | 'leases';

export interface Setting {
  readonly mode: Mode;
  /** Milliseconds to the store and back, of each region. */
  readonly trips: readonly number[];
  /** In each region. */
  readonly instances: number;
  readonly keys: number;
  /** Of the Zipf distribution of calls over keys. */
  readonly exponent: number;
  /** Of all instances. */
  readonly callsPerSecond: number;
  /** Measured ones, after those in which the instances learn the demand of keys. */
  readonly seconds: number;
  readonly warmUp: number;
  /** Of each key, in a window. */
  readonly requestsPerUnit: number;
  readonly windowSeconds: number;
  /** Of the cluster that has the counters. */
  readonly nodes: number;
  /** Each region has a cluster of its own, and an equal part of the limit. */
  readonly isPerRegion: boolean;
  /**
   * The share of the calls on a key that are made in one region, which differs from key to key; the others make as
   * many.
   */
  readonly home: number;
}

export interface Report {
  readonly calls: number;
  /** Commands per call, after calls on a key in one window of the pipeline were merged: trips, in a cluster. */
  readonly commands: number;
  /** Windows of the pipeline per call: trips, where one server has all counters. */
  readonly windows: number;
  /** Commands per second of the average node, and of the one with most in any second. */
  readonly perNode: number;
  readonly hottestNode: number;
  /** The share of the calls that were decided without a trip. */
  readonly atOnce: number;
  /**
   * Of the keys that were called at least as often as their limits allow: the passed calls, as a share of the limits.
   */
  readonly passed: number;
  /** The share of all calls that were denied, and would have passed in the window. */
  readonly deniedEarly: number;
  /** The share of all calls that were denied while another instance held hits, of a sample. */
  readonly deniedWhileHeld: number;
  /** Leases of an instance, at the ends of seconds: average and most. */
  readonly leases: number;
  readonly mostLeases: number;
  /** What the simulation took, in seconds. */
  readonly seconds: number;
}

/** One in so many denials is examined for whether another instance holds hits. */
const SAMPLE = 997;
/** For how long an instance gathers calls, in milliseconds. */
const SPAN = 1;
/** A window of each length that is used begins here, in Unix milliseconds. */
const START = 1_700_006_400_000;
/** Before a whole second, in milliseconds. */
const JUST = 0.001;

interface Member {
  readonly region: number;
  readonly instance: SimulatedInstance;
  /** Of mode `cached`: the keys that are over their limits in a window. */
  readonly over: Set<number>;
  overIn: number;
}

/**
 * A fleet, with the code that decides its calls in the service, in virtual time. The calls of a millisecond on an
 * instance are made at its end, as one window of the pipeline.
 */
class Fleet {
  readonly #setting: Setting;
  readonly #random = randomOf(1);
  readonly #zipf: Zipf;
  readonly #timeline: Timeline;
  readonly #calls: KeyCalls;
  readonly #stores: readonly ScaleStore[];
  readonly #members: readonly Member[];
  readonly #limit;
  readonly #measuredFrom: number;
  readonly #end: number;
  /** The share of the calls on a key that is made in each region that is not its home. */
  readonly #elsewhere: number;
  readonly #denials = { all: 0, examined: 0, held: 0 };

  constructor(setting: Setting) {
    const { trips, keys, windowSeconds, warmUp, requestsPerUnit, isPerRegion } = setting;
    const learning = Math.ceil(warmUp / windowSeconds) * windowSeconds;
    this.#setting = setting;
    this.#zipf = new Zipf(keys, setting.exponent);
    this.#calls = new KeyCalls(keys);
    this.#timeline = new Timeline(START + (learning - warmUp) * 1_000);
    this.#measuredFrom = START + learning * 1_000;
    this.#end = this.#measuredFrom + setting.seconds * 1_000;
    this.#limit = leasedLimit(
      isPerRegion ? Math.floor(requestsPerUnit / trips.length) : requestsPerUnit,
      windowSeconds,
    );
    this.#stores = Array.from({ length: isPerRegion ? trips.length : 1 }, () => new ScaleStore(keys, setting.nodes));
    this.#elsewhere = (1 - setting.home) / Math.max(1, trips.length - 1);
    this.#members = trips.flatMap((trip, region) =>
      Array.from({ length: setting.instances }, () => this.#newMember(trip, region)),
    );
  }

  run(): Report {
    const began = performance.now();
    const { seconds, trips, nodes, requestsPerUnit } = this.#setting;
    this.#members.forEach((member, index) => this.#startCalls(member, (SPAN * index) / this.#members.length));
    this.#beginWindow();
    this.#timeline.runTo(this.#measuredFrom - JUST);
    const [windows, atOnce] = [this.#windows, this.#atOnce];
    const sizes: number[] = [];
    for (let second = 1; second <= seconds; second += 1) {
      this.#timeline.runTo(this.#measuredFrom + second * 1_000 - JUST);
      for (const { instance } of this.#members) sizes.push(instance.leases.size);
    }
    const [windowsAfter, atOnceAfter] = [this.#windows, this.#atOnce];
    // Until the last answers are there.
    this.#timeline.runTo(this.#end + 2 * Math.max(...trips));
    const { made, deniedEarly, passed } = this.#calls.totals(this.#measuredFrom / 1_000, requestsPerUnit);
    const perSecond = this.#stores.flatMap((store) => store.commandsIn(this.#measuredFrom, this.#end));
    const commands = sumOf(perSecond.map(sumOf));
    const { all, examined, held } = this.#denials;
    return {
      calls: made,
      commands: commands / made,
      windows: (windowsAfter - windows) / made,
      perNode: commands / seconds / nodes / this.#stores.length,
      hottestNode: Math.max(...perSecond.flatMap((ofNodes) => [...ofNodes])),
      atOnce: (atOnceAfter - atOnce) / made,
      passed,
      deniedEarly: deniedEarly / made,
      deniedWhileHeld: examined === 0 ? 0 : ((held / examined) * all) / made,
      leases: sumOf(sizes) / sizes.length,
      mostLeases: Math.max(...sizes),
      seconds: (performance.now() - began) / 1_000,
    };
  }

  get #windows(): number {
    return sumOf(this.#stores.map(({ windows }) => windows));
  }

  get #atOnce(): number {
    return sumOf(this.#members.map(({ instance }) => instance.atOnce));
  }

  #newMember(trip: number, region: number): Member {
    const { isPerRegion, mode } = this.#setting;
    const instance = new SimulatedInstance({
      timeline: this.#timeline,
      store: this.#stores[isPerRegion ? region : 0]!,
      trip: () => trip,
      isLeasing: mode === 'leases',
    });
    return { region, instance, over: new Set(), overIn: 0 };
  }

  #beginWindow(): void {
    const { windowSeconds } = this.#setting;
    const length = windowSeconds * 1_000;
    const start = Math.floor(this.#timeline.now / length) * length;
    this.#calls.begin(start / 1_000);
    for (const store of this.#stores) store.forgetBefore(start / 1_000 - windowSeconds);
    if (start + length < this.#end) this.#timeline.at(start + length, () => this.#beginWindow());
  }

  #startCalls(member: Member, delay: number): void {
    const timeline = this.#timeline;
    const perMillisecond = this.#setting.callsPerSecond / this.#members.length / 1_000;
    let next = timeline.now + delay;
    const tick = (): void => {
      for (; next <= timeline.now; next -= Math.log(1 - this.#random()) / perMillisecond) this.#call(member);
      if (timeline.now + SPAN < this.#end) timeline.after(SPAN, tick);
    };
    timeline.at(next, tick);
  }

  #call(member: Member): void {
    const number = this.#draw(member.region);
    const passed = this.#calls.make(number);
    const { window } = this.#calls;
    const isCached = this.#setting.mode === 'cached';
    if (isCached && isKnownOver(member, window, number)) {
      member.instance.atOnce += 1;
      return;
    }
    const key = this.#calls.keyOf(number);
    member.instance.call(this.#limit, key, 1, (operation) => {
      if (!operation.isKnownOver && operation.countAfter <= this.#limit.requestsPerUnit) passed[number]! += 1;
      else {
        if (isCached && member.overIn === window) member.over.add(number);
        this.#isDenied(key);
      }
    });
  }

  #isDenied(key: string): void {
    if (this.#timeline.now < this.#measuredFrom) return;
    const denials = this.#denials;
    denials.all += 1;
    if (denials.all % SAMPLE !== 0) return;
    denials.examined += 1;
    if (this.#members.some(({ instance }) => instance.leases.heldOf(key) > 0)) denials.held += 1;
  }

  /** Draws a key for a call in a region. */
  #draw(region: number): number {
    const { trips, home } = this.#setting;
    for (;;) {
      const number = this.#zipf.draw(this.#random());
      const share = number % trips.length === region ? home : this.#elsewhere;
      if (this.#random() * Math.max(home, this.#elsewhere) < share) return number;
    }
  }
}

export function simulateScale(setting: Setting): Report {
  return new Fleet(setting).run();
}

function isKnownOver(member: Member, window: number, number: number): boolean {
  if (member.overIn !== window) {
    member.overIn = window;
    member.over.clear();
  }
  return member.over.has(number);
}

function sumOf(numbers: Iterable<number>): number {
  let sum = 0;
  for (const each of numbers) sum += each;
  return sum;
}
