import type { DecisionError } from '../limiter/decision-error';
import { windowStart } from '../limiter/cache-key';
import type { LimitedDescriptor } from '../limiter/resolution';
import type { Limiter } from '../limiter/limiter';
import type { RateLimitRequest } from '../limiter/request';
import type { Rule } from '../rules/rule-tree';
import type { Ruleset } from '../rules/ruleset';
import type { CounterAdministration, StoredCounter } from '../streams/ports/counter-administration';
import type { CounterChange, CounterQuery, CounterState, NoCounter } from '../streams/ports/operator';
import { explanationOf, isoTime } from './explanation';
import { LookUps, referenceTo } from './look-ups';

export interface CountersOptions {
  readonly limiter: Pick<Limiter, 'explain' | 'forget' | 'isInLocalCache'>;
  readonly administration: CounterAdministration;
}

/** The counter of a descriptor in its current window. */
interface Located {
  readonly limited: LimitedDescriptor;
  readonly rule: Rule | undefined;
  readonly nowSeconds: number;
}

/** The counters of descriptors, for operators. */
export class OperatedCounters {
  readonly #options: CountersOptions;

  constructor(options: CountersOptions) {
    this.#options = options;
  }

  /** @throws DecisionError */
  async read(query: CounterQuery, ruleset: Ruleset | undefined): Promise<CounterState | NoCounter> {
    const located = await this.#locate(query, ruleset);
    if ('reason' in located) return located;
    return this.#stateOf(located, await this.#options.administration.readCounter(located.limited));
  }

  /** @throws DecisionError */
  async change(
    query: CounterQuery,
    count: number | null,
    ruleset: Ruleset | undefined,
  ): Promise<CounterChange | NoCounter> {
    const { administration, limiter } = this.#options;
    const located = await this.#locate(query, ruleset);
    if ('reason' in located) return located;
    const { limited } = located;
    const before =
      count === null ? await administration.clearCounter(limited) : await administration.setCounter(limited, count);
    limiter.forget(limited.key);
    const after = await administration.readCounter(limited);
    // A decision that was in flight may have added the key again.
    limiter.forget(limited.key);
    return { ...this.#stateOf(located, after), countBefore: before.count };
  }

  async #locate({ domain, descriptor }: CounterQuery, ruleset: Ruleset | undefined): Promise<Located | NoCounter> {
    const request: RateLimitRequest = { domain, descriptors: [descriptor], hitsAddend: 0 };
    const explained = this.#options.limiter.explain(request, ruleset, Date.now());
    const { limited, rule } = explained.descriptors[0]!.resolution;
    if (limited !== undefined) return { limited, rule, nowSeconds: explained.nowSeconds };
    const explanation = await explanationOf(explained, new LookUps(ruleset!, request), NO_COUNTS);
    const { reason, nearest } = explanation.descriptors[0]!;
    return { reason, nearest };
  }

  #stateOf({ limited, rule, nowSeconds }: Located, { count, timeToLive }: StoredCounter): CounterState {
    const { applied, key } = limited;
    const { requestsPerUnit, unit, unitMultiplier, name } = applied.currentLimit;
    const start = windowStart(nowSeconds, applied.windowSeconds);
    return {
      cacheKey: key,
      rule: referenceTo(rule),
      requestsPerUnit,
      unit: unit.name,
      unitMultiplier,
      name,
      count,
      timeToLive,
      windowStart: isoTime(start),
      windowEnd: isoTime(start + applied.windowSeconds),
      isInLocalCache: this.#options.limiter.isInLocalCache(key, requestsPerUnit, nowSeconds),
    };
  }
}

/** A descriptor without a limit needs no count. */
const NO_COUNTS: ReadonlyMap<string, number> | DecisionError = new Map();
