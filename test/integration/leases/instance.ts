import { type SchedulerAction, type SchedulerLike, Subscription } from 'rxjs';
import { Leases, type LeasesOptions } from '../../../src/counting/leases';
import { DEFAULT_OPTIONS } from '../../../src/limiter/options';
import { Limiter } from '../../../src/limiter/limiter';
import type { LocalCounts } from '../../../src/limiter/local-counts';
import type { RateLimitRequest } from '../../../src/limiter/request';
import { turnScheduler } from '../../../src/main/turn-scheduler';
import type { Ruleset } from '../../../src/rules/ruleset';
import { Statistics } from '../../../src/statistics/statistics';
import { type Decisions, type DecisionsOptions, decisions } from '../../../src/streams/decisions';
import type { Counters } from '../../../src/streams/ports/counters';
import type { DecisionObserver } from '../../../src/streams/ports/decide';

export interface InstanceParts {
  readonly counters: Counters;
  readonly ruleset: Ruleset;
  /** By how many milliseconds its clock is ahead. */
  readonly skew?: number;
  readonly isLeasing?: boolean;
  /** The clock of its leases. */
  readonly now?: () => number;
  readonly local?: LocalCounts;
  readonly more?: Partial<DecisionsOptions>;
}

const LEASE_COUNTERS = ['grantedHits', 'usedHits', 'returnedHits', 'unusedHits', 'savedCalls'] as const;

type Tallies = Pick<LeasesOptions, (typeof LEASE_COUNTERS)[number]>;

/** An instance of weir, as far as it decides: its pipeline, its leases, its clock. */
export class Instance {
  readonly statistics = new Statistics(1_000);
  readonly leases: Leases;
  readonly #decisions: Decisions;
  readonly #subscription: Subscription;
  readonly #completed: Promise<void>;
  readonly #skew: number;
  /** While a call begins. */
  #now: number | undefined;
  #isOver = false;
  readonly #scheduler: SchedulerLike = {
    now: () => this.now,
    // What is over does not look after its leases any more.
    schedule: <T>(work: (this: SchedulerAction<T>, state?: T) => void, delay?: number, state?: T) => {
      return this.#isOver ? Subscription.EMPTY : turnScheduler.schedule(work, delay, state);
    },
  };

  constructor({ counters, ruleset, skew = 0, isLeasing = true, ...parts }: InstanceParts) {
    const { statistics } = this;
    this.#skew = skew;
    const { now = () => performance.now(), local, more } = parts;
    const tallies = Object.fromEntries(
      LEASE_COUNTERS.map((name) => [name, statistics.counter(name)]),
    ) as unknown as Tallies;
    this.leases = new Leases({ isAuto: false, now, wallClock: () => this.now, ...tallies });
    const leases = isLeasing ? this.leases : undefined;
    const leased = { leases: leases && 'rules', leaseTable: leases } as const;
    this.#decisions = decisions({
      limiter: new Limiter({ ...DEFAULT_OPTIONS, ...leased, local }, statistics),
      ...{ local, leases },
      ruleset: () => ruleset,
      counters,
      statistics,
      scheduler: this.#scheduler,
      onInternalError: (error) => {
        throw error;
      },
      ...more,
    });
    let completed: () => void;
    this.#completed = new Promise((complete) => (completed = complete));
    this.#subscription = this.#decisions.windows$.subscribe({ complete: () => completed() });
  }

  /** Unix milliseconds of its clock. */
  get now(): number {
    return this.#now ?? Date.now() + this.#skew;
  }

  count(name: (typeof LEASE_COUNTERS)[number]): number {
    return this.statistics.counter(name).value;
  }

  /** The hits that it holds, of all keys. */
  get held(): number {
    return this.count('grantedHits') - this.count('usedHits') - this.count('returnedHits') - this.count('unusedHits');
  }

  /** Decides a request of a time of its clock, of which the windows of its keys follow. */
  decide(request: RateLimitRequest, observer: DecisionObserver, now = this.now): void {
    this.#now = now;
    this.#decisions.decide(request, observer);
    this.#now = undefined;
  }

  /** Ends as by a crash: nothing more is sent, and nothing is given back. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#subscription.unsubscribe();
  }

  /** Gives back what it holds, and ends. */
  async end(): Promise<void> {
    this.#decisions.complete();
    await this.#completed;
    this[Symbol.dispose]();
  }
}
