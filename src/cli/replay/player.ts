import type { Decision } from '../../limiter/decision';
import type { LimiterOptions } from '../../limiter/options';
import { DecisionError } from '../../counting/decision-error';
import { Limiter } from '../../limiter/limiter';
import type { RateLimitRequest } from '../../limiter/request';
import { type Resolution, outcomeOf } from '../../limiter/resolution';
import { Code, type Verdict } from '../../limiter/verdict';
import { StoredReservations } from '../../reservations/reservations';
import type { Explanation } from '../../explain/explanation';
import { explainRequest } from '../../operators/decisions';
import type { Ruleset } from '../../rules/ruleset';
import { MemoryCounters } from '../../sinks/counters/memory/memory-counters';
import { Statistics } from '../../statistics/statistics';
import { ReservationError, type ReserveCall } from '../../streams/ports/reservations';
import { type JudgedCall, type JudgedDescriptor, REQUEST_LIMIT, type RecordedEnd } from './recorded-call';

/** Bounds of the counters of one player: at least 300,000 in their windows have room. */
const MOST_KEYS = 1_000_000;
const MOST_BYTES = 64 * 1024 * 1024;

export interface PlayedCall extends JudgedCall {
  readonly descriptors: readonly PlayedDescriptor[];
}

export interface PlayedDescriptor extends JudgedDescriptor {
  /** Whether it is over a limit in shadow mode. */
  readonly isOverInShadow: boolean;
  /** The most hits that can count at once; undefined without a limit. */
  readonly capacity: number | undefined;
}

/**
 * Decides calls by rules, as a service would that has just been started and counts in memory, at the times of the
 * calls.
 */
export class Player {
  readonly #ruleset: Ruleset;
  readonly #limiter: Limiter;
  readonly #counters: MemoryCounters;
  readonly #reservations: StoredReservations;
  /** What {@link #reservations} has decided last. */
  #reserving: Decision | undefined;
  #now = 0;
  /** The second in which the counters were removed last whose windows had passed. */
  #swept = -Infinity;

  /** @param statistics those of rules, too, if they are kept; by default, none are */
  constructor(ruleset: Ruleset, options: LimiterOptions, statistics = new Statistics(0)) {
    this.#ruleset = ruleset;
    this.#limiter = new Limiter(options, statistics);
    this.#counters = new MemoryCounters({ maxKeys: MOST_KEYS, maxBytes: MOST_BYTES, now: () => this.#now });
    const ofReservations = { ...options, stopIncrementWhenOverLimit: false };
    this.#reservations = new StoredReservations({
      limiter: new Limiter(ofReservations, statistics),
      options: ofReservations,
      ruleset: () => ruleset,
      store: this.#counters,
      statistics,
      log: {
        decided: (decision) => (this.#reserving = decision),
        rejected: () => undefined,
        ended: () => undefined,
      },
      now: () => this.#now,
      onFree: () => undefined,
    });
  }

  /** How many counters were removed for lack of room while their window lasted: they have started again at 0. */
  get evictions(): number {
    return this.#counters.evictions;
  }

  /**
   * @param now the time of the call, in Unix milliseconds
   * @returns undefined when the service would reject the request
   */
  play(request: RateLimitRequest, now: number): PlayedCall | undefined {
    try {
      const decision = this.decide(request, now);
      return playedCall(decision, decision.verdict());
    } catch (error) {
      if (error instanceof DecisionError) return undefined;
      throw error;
    }
  }

  /** As {@link play}. @throws DecisionError when the service would reject the request */
  decide(request: RateLimitRequest, now: number): Decision {
    this.#advance(now);
    const decision = this.#limiter.begin(request, this.#ruleset, now);
    if (decision.operations.length > 0) this.#counters.countNow!(decision.operations);
    return decision;
  }

  /** What the service would say of the request, without counting it. */
  explain(request: RateLimitRequest, now: number): Promise<Explanation> {
    this.#advance(now);
    return explainRequest(request, this.#ruleset, {
      now,
      limiter: this.#limiter,
      reservations: this.#counters,
      apply: (operations, { settled }) => {
        this.#counters.countNow!(operations);
        settled();
      },
    });
  }

  /** As {@link play}, for a reservation. */
  async reserve(call: ReserveCall, now: number): Promise<PlayedCall | undefined> {
    this.#advance(now);
    const reserved = await ifAccepted(this.#reservations.reserve(call));
    const decision = this.#reserving;
    this.#reserving = undefined;
    return reserved && decision && playedCall(decision, reserved.verdict);
  }

  /** Settles a reservation, or cancels it. @returns whether it was open */
  async end({ id, state, hits, time }: RecordedEnd): Promise<boolean> {
    this.#advance(time);
    const ended = state === 'settled' ? this.#reservations.settle(id, hits) : this.#reservations.cancel(id);
    return (await ifAccepted(ended)) !== undefined;
  }

  #advance(now: number): void {
    this.#now = now;
    const second = Math.floor(now / 1000);
    if (second <= this.#swept) return;
    this.#swept = second;
    this.#counters.removeExpired();
  }

  close(): Promise<void> {
    return this.#counters.close();
  }
}

/** @returns undefined when the service would reject the call */
async function ifAccepted<Answer>(answer: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof DecisionError || error instanceof ReservationError) return undefined;
    throw error;
  }
}

function playedCall({ resolutions }: Decision, { overallCode, statuses }: Verdict): PlayedCall {
  const descriptors = resolutions.map((resolution, index) => played(resolution, statuses[index]?.code === Code.OK));
  return { isAllowed: overallCode === Code.OK, descriptors };
}

function played(resolution: Resolution, isAllowed: boolean): PlayedDescriptor {
  const { rule = resolution.limited && REQUEST_LIMIT, reason, isShadow } = outcomeOf(resolution);
  const capacity = resolution.limited?.limit.capacity;
  return { isAllowed, rule, isOverInShadow: isShadow && reason === 'over_limit', capacity };
}
