import { VirtualTimeScheduler } from 'rxjs';
import { Leases } from '../../../src/counting/leases';
import { Limiter } from '../../../src/limiter/limiter';
import { DEFAULT_OPTIONS, type LimiterOptions } from '../../../src/limiter/options';
import type { RateLimitRequest } from '../../../src/limiter/request';
import type { Verdict } from '../../../src/limiter/verdict';
import type { Ruleset } from '../../../src/rules/ruleset';
import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import type { Counter } from '../../../src/statistics/counter';
import { Statistics } from '../../../src/statistics/statistics';
import type { ApplyOperations } from '../../../src/streams/ports/decide';
import { type Decisions, decisions } from '../../../src/streams/decisions';

/**
 * The whole decision path on the memory store, with pipeline windows, at a time that the test sets. Requests are
 * answered synchronously.
 */
export class TestService {
  /** Unix time in milliseconds. */
  now: number;
  ruleset: Ruleset | undefined;
  readonly statistics = new Statistics(10_000);
  readonly counters: MemoryCounters;
  readonly limiter: Limiter;
  readonly leases: Leases | undefined;
  readonly apply: ApplyOperations;
  readonly release: Decisions['release'];
  readonly logTo: Decisions['logTo'];
  readonly #decisions: Decisions;
  readonly #scheduler = new VirtualTimeScheduler();

  /**
   * @param options with `leases`, hits are leased as by a worker from the primary
   * @param windowSpan how long windows gather, in milliseconds; 0: each request is counted at once
   */
  // oxlint-disable-next-line max-params -- most tests need only the first two
  constructor(
    ruleset: Ruleset | undefined,
    options: Partial<LimiterOptions> = {},
    startsAt = 1_000_000_000_000,
    windowSpan = 1,
  ) {
    this.ruleset = ruleset;
    this.now = startsAt;
    this.counters = new MemoryCounters({ maxKeys: 100_000, windowSpan, now: () => this.now });
    this.#scheduler.now = () => this.now;
    this.leases = options.leases && this.#leases(options.leases === 'auto');
    this.limiter = new Limiter({ ...DEFAULT_OPTIONS, leaseTable: this.leases, ...options }, this.statistics);
    this.#decisions = decisions({
      limiter: this.limiter,
      leases: this.leases,
      ruleset: () => this.ruleset,
      counters: this.counters,
      statistics: this.statistics,
      scheduler: this.#scheduler,
      onInternalError: (error) => {
        throw error;
      },
    });
    this.apply = (operations, observer) => {
      this.#decisions.apply(operations, observer);
      this.#flush();
    };
    this.release = (keys, released) => {
      this.#decisions.release(keys, released);
      this.#flush();
    };
    this.logTo = this.#decisions.logTo;
    this.#decisions.windows$.subscribe();
  }

  /** Accepts no more requests. */
  complete(): void {
    this.#decisions.complete();
    this.#flush();
  }

  #leases(isAuto: boolean): Leases {
    const [grantedHits, usedHits, returnedHits, unusedHits, savedCalls] = [
      'granted',
      'used',
      'returned',
      'unused',
      'calls_saved',
    ].map((name) => this.statistics.counter(`ratelimit.lease.${name}`)) as [
      Counter,
      Counter,
      Counter,
      Counter,
      Counter,
    ];
    const now = () => this.now;
    const tallies = { grantedHits, usedHits, returnedHits, unusedHits, savedCalls };
    return new Leases({ isAuto, now, wallClock: now, ...tallies });
  }

  /** Until the windows that gather at present have settled: what is to be done again and again is not done for ever. */
  #flush(): void {
    const scheduler = this.#scheduler;
    for (let windows = 0; windows < 3; windows += 1) {
      scheduler.maxFrames = scheduler.frame + 1;
      scheduler.flush();
    }
  }

  /** Decides one request; throws when the decision fails. */
  decide(request: RateLimitRequest): Verdict {
    return this.decideTogether(request)[0] as Verdict;
  }

  /** Decides several requests in one pipeline window; throws when one of them fails. */
  decideTogether(...requests: readonly RateLimitRequest[]): readonly Verdict[] {
    const verdicts: Verdict[] = [];
    let failure: Error | undefined;
    for (const request of requests) {
      this.#decisions.decide(request, {
        verdict: (verdict) => verdicts.push(verdict),
        error: (error) => void (failure = error),
      });
    }
    this.#flush();
    if (failure !== undefined) throw failure;
    return verdicts;
  }

  /** The statistics that have changed since the last call, by name without the prefix of rules; without gauges. */
  moved(): Readonly<Record<string, number>> {
    const moved: Record<string, number> = {};
    const now = new Map(this.statistics.entries());
    for (const [name, value] of now) {
      const delta = value - (this.#seen.get(name) ?? 0);
      if (delta !== 0 && !GAUGES.test(name)) moved[name.replace('ratelimit.service.rate_limit.', '')] = delta;
    }
    this.#seen = now;
    return moved;
  }
  #seen: ReadonlyMap<string, number> = new Map();

  async close(): Promise<void> {
    await this.counters.close();
  }
}

const GAUGES = /^ratelimit\.(localcache|statistics|pipeline)\./;
