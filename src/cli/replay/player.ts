import type { RateLimitRequest } from '../../limiter/request';
import { type Resolution, outcomeOf } from '../../limiter/resolution';
import { Code } from '../../limiter/verdict';
import type { Ruleset } from '../../rules/ruleset';
import { MemoryCounters } from '../../sinks/counters/memory/memory-counters';
import { defaultLimiter } from '../check/default-limiter';
import { type JudgedCall, type JudgedDescriptor, REQUEST_LIMIT } from './recorded-call';

/** Of the counters of one player: at least 300,000 in their windows. */
const MOST_KEYS = 1_000_000;
const MOST_BYTES = 64 * 1024 * 1024;
/** Milliseconds of the log between two removals of the counters whose windows have passed. */
const SWEEP_INTERVAL = 1000;

export interface PlayedCall extends JudgedCall {
  readonly descriptors: readonly PlayedDescriptor[];
}

export interface PlayedDescriptor extends JudgedDescriptor {
  /** It is over a limit in shadow mode. */
  readonly isOverInShadow: boolean;
  /** The most hits that can count at once; undefined without a limit. */
  readonly capacity: number | undefined;
}

/** Decides calls by rules, as a service would that has just been started and counts in memory, at the times of the calls. */
export class Player {
  readonly #ruleset: Ruleset;
  readonly #limiter = defaultLimiter();
  readonly #counters: MemoryCounters;
  #now = 0;
  #swept = -Infinity;

  constructor(ruleset: Ruleset) {
    this.#ruleset = ruleset;
    this.#counters = new MemoryCounters({ maxKeys: MOST_KEYS, maxBytes: MOST_BYTES, now: () => this.#now });
  }

  /** How many counters were removed for lack of room while their window lasted: they have started again at 0. */
  get evictions(): number {
    return this.#counters.evictions;
  }

  /**
   * @param now the time of the call, in Unix milliseconds
   * @throws DecisionError when the service would reject the request
   */
  play(request: RateLimitRequest, now: number): PlayedCall {
    this.#now = now;
    if (now - this.#swept >= SWEEP_INTERVAL) {
      this.#swept = now;
      this.#counters.removeExpired();
    }
    const decision = this.#limiter.begin(request, this.#ruleset, now);
    if (decision.operations.length > 0) this.#counters.countNow!(decision.operations);
    const { overallCode, statuses } = decision.verdict();
    const descriptors = decision.resolutions.map((resolution, index) => {
      return played(resolution, statuses[index]?.code === Code.OK);
    });
    return { isAllowed: overallCode === Code.OK, descriptors };
  }

  close(): Promise<void> {
    return this.#counters.close();
  }
}

function played(resolution: Resolution, isAllowed: boolean): PlayedDescriptor {
  const { rule = resolution.limited && REQUEST_LIMIT, reason, isShadow } = outcomeOf(resolution);
  const capacity = resolution.limited?.applied.capacity;
  return { isAllowed, rule, isOverInShadow: isShadow && reason === 'over_limit', capacity };
}
