import { setImmediate as turn } from 'node:timers/promises';
import { Code } from '../../../src/limiter/verdict';
import { windowStart } from '../../../src/counting/windows';
import type { RuleLimit } from '../../../src/rules/rule-config';
import type { Counters } from '../../../src/streams/ports/counters';
import type { DecisionObserver } from '../../../src/streams/ports/decide';
import { descriptor, request } from '../../support/data/requests';
import { limit, rulesetOf } from '../../support/data/rules';
import { integersOf } from '../../support/data/seeded-random';
import { Instance } from './instance';
import { type SeenPass, beyondBucket, beyondSlidingWindow } from './seen-passes';

/** The limits that are played, with windows that end often. */
const LIMITS: Readonly<Record<string, RuleLimit>> = {
  'a-second': limit(600, 'SECOND', { lease: true }),
  'two-seconds': limit(1_600, 'SECOND', { unitMultiplier: 2, lease: true }),
  'five-seconds': limit(5_000, 'SECOND', { unitMultiplier: 5, lease: true }),
  sliding: limit(1_600, 'SECOND', { unitMultiplier: 2, algorithm: 'sliding_window', lease: true }),
  bucket: limit(800, 'SECOND', { algorithm: 'token_bucket', burst: 600, lease: true }),
};
const KEYS = Object.keys(LIMITS);
const COUNTERS = KEYS.flatMap((key) => [[key, 'v'] as const, [key, 'w'] as const]);
/**
 * Milliseconds in which calls come seldom, and then often, half of them on one counter; and how many in a turn of the
 * event loop at most.
 */
const PERIOD = 700;
const [SELDOM, OFTEN] = [4, 80];

/** The limit of a counter. */
export function limitOf(name: string): RuleLimit {
  return LIMITS[name.slice(0, name.indexOf('_'))]!;
}

/** A counter: of one window, if it is counted in fixed ones. */
interface Counter {
  readonly limit: RuleLimit;
  readonly passes: SeenPass[];
  passed: number;
  /** By calls. */
  givenBack: number;
}

interface Running {
  readonly instance: Instance;
  readonly counters: Counters;
}

export interface PlayOptions {
  /** Opens the connections of an instance. */
  readonly open: () => Promise<Counters>;
  readonly instances: number;
  /** By how many milliseconds the clocks of instances are ahead, in turn. */
  readonly skews?: readonly number[];
  /** How often the counter of a window may begin, because its key has expired. Default: 1. */
  readonly beginnings?: number;
}

/** Instances under load, of which some have no leases, and what passes. */
export class Play {
  made = 0;
  /** Calls that were over a limit. */
  denied = 0;
  readonly #options: PlayOptions;
  readonly #counters = new Map<string, Counter>();
  readonly #below = integersOf('leases');
  readonly #running: Running[] = [];
  #turnedAt = performance.now();
  /** Of instances that have ended. */
  #saved = 0;

  constructor(options: PlayOptions) {
    this.#options = options;
  }

  /** Calls that leases have decided. */
  get saved(): number {
    return this.#running.reduce((sum, { instance }) => sum + instance.count('savedCalls'), this.#saved);
  }

  /**
   * Plays at least so many calls, until leases have decided so many, and until something else is done. What part of the
   * calls leases decide follows from how many a machine makes in the time of a window.
   */
  async run(calls: number, saved: number, meanwhile: Promise<unknown>): Promise<void> {
    let isDone = false;
    const other = meanwhile.finally(() => (isDone = true));
    try {
      for (let index = 0; index < this.#options.instances; index += 1) this.#running.push(await this.#start(index));
      while (!isDone || this.made < calls || this.saved < saved) {
        await turn();
        this.#call();
      }
      await other;
      await Promise.all(this.#running.splice(0).map((each) => this.#end(each, () => each.instance.end())));
    } finally {
      for (const { instance } of this.#running) instance[Symbol.dispose]();
    }
  }

  /** Ends an instance without giving back what it holds; another one takes its place. */
  async kill(): Promise<void> {
    const index = this.#below(this.#running.length);
    const killed = this.#running[index]!;
    this.#running[index] = await this.#start(index);
    await this.#end(killed, () => killed.instance[Symbol.dispose]());
  }

  /**
   * What has passed beyond the bounds.
   *
   * @param lacked by the name of a counter, the hits that a server lacked which has taken over
   */
  beyond(lacked: ReadonlyMap<string, number> = new Map()): readonly string[] {
    return [...this.#counters].flatMap(([name, counter]) => {
      const hits = beyondOf(counter, this.#options.beginnings) - (lacked.get(name) ?? 0);
      // What rounding adds.
      return hits > 0.01 ? [`${name}: ${hits}`] : [];
    });
  }

  async #start(index: number): Promise<Running> {
    const counters = await this.#options.open();
    const { skews = [0] } = this.#options;
    const skew = skews[index % skews.length]!;
    // Each has its own: rules keep the limits of one limiter.
    const ruleset = rulesetOf('d', ...KEYS.map((key) => ({ key, rateLimit: LIMITS[key] })));
    return { instance: new Instance({ counters, ruleset, skew, isLeasing: index % 4 !== 3 }), counters };
  }

  async #end({ instance, counters }: Running, end: () => unknown): Promise<void> {
    await end();
    this.#saved += instance.count('savedCalls');
    await counters.close();
  }

  /** The calls of a turn of the event loop, in which all of a key go to the store together. */
  #call(): void {
    const now = performance.now();
    const isOften = now % (2 * PERIOD) >= PERIOD;
    const busy = COUNTERS[Math.floor(now / (2 * PERIOD)) % COUNTERS.length]!;
    const { requestsPerUnit, unitMultiplier } = LIMITS[busy[0]]!;
    // Four times what its limit allows, since the last turn: the fewer calls a machine makes, the more hits they have.
    const demand = ((4 * requestsPerUnit) / (unitMultiplier * 1000)) * (now - this.#turnedAt);
    this.#turnedAt = now;
    for (let left = this.#below((isOften ? OFTEN : SELDOM) + 1); left > 0; left -= 1) {
      // The first ones have most.
      const index = Math.min(this.#below(this.#running.length), this.#below(this.#running.length));
      const { instance } = this.#running[index]!;
      if (isOften && this.#below(2) === 0) this.#callOne(instance, busy, Math.ceil(demand / (OFTEN / 4)));
      else this.#callOne(instance, COUNTERS[this.#below(COUNTERS.length)]!, 1);
    }
  }

  #callOne(instance: Instance, [key, value]: readonly [string, string], usualHits: number): void {
    const rateLimit = LIMITS[key]!;
    const kind = this.#below(200);
    const hits = kind < 10 ? 1 + this.#below(8) : usualHits;
    const isNegative = kind === 199 && rateLimit.algorithm === undefined;
    const from = Date.now();
    this.made += 1;
    const called = descriptor(`${key}=${value}`, { hitsAddend: hits, isNegativeHits: isNegative });
    const { now } = instance;
    const window = windowStart(Math.floor(now / 1000), rateLimit.unitMultiplier);
    const counter = this.#counterOf(
      `${key}_${value}${rateLimit.algorithm === undefined ? `_${window}` : ''}`,
      rateLimit,
    );
    if (isNegative) counter.givenBack += hits;
    const observer: DecisionObserver = {
      verdict: ({ overallCode }) => {
        if (overallCode !== Code.OK) this.denied += 1;
        if (isNegative || overallCode !== Code.OK) return;
        counter.passed += hits;
        if (rateLimit.algorithm !== undefined) counter.passes.push({ from, to: Date.now() + 1, hits });
      },
      error: () => undefined,
    };
    instance.decide(request('d', [called]), observer, now);
  }

  #counterOf(name: string, of: RuleLimit): Counter {
    const known = this.#counters.get(name);
    if (known !== undefined) return known;
    const counter = { limit: of, passes: [], passed: 0, givenBack: 0 };
    this.#counters.set(name, counter);
    return counter;
  }
}

function beyondOf({ limit: of, passes, passed, givenBack }: Counter, beginnings = 1): number {
  const { requestsPerUnit, unitMultiplier, algorithm, burst } = of;
  const length = unitMultiplier * 1000;
  if (algorithm === 'token_bucket') return beyondBucket(passes, length / requestsPerUnit, burst ?? requestsPerUnit);
  if (algorithm === 'sliding_window') return beyondSlidingWindow(passes, length, requestsPerUnit);
  return passed - beginnings * requestsPerUnit - givenBack;
}
