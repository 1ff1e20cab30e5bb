import type { ExplainedRequest } from '../limiter/explained-request';
import type { Offender, OffenderQuery } from '../limiter/offender';
import type { RateLimitRequest } from '../limiter/request';
import type { Ruleset } from '../rules/ruleset';
import type { CurrentConfig } from '../streams/config';
import type { Latest } from '../streams/latest';
import type { OffenderSource } from '../streams/ports/offender-source';
import type {
  CounterChange,
  CounterQuery,
  CounterState,
  DecisionOperator,
  Explanation,
  NoCounter,
} from '../streams/ports/operator';
import { type CountersOptions, OperatedCounters, readOf } from './counters';
import { type StoredCounts, explanationOf } from './explanation';
import { LookUps } from './look-ups';

/** What decides in this process. */
export interface LocalDecisionsOptions extends CountersOptions {
  readonly config$: Latest<CurrentConfig>;
  readonly offenders: OffenderSource;
}

/** Explains decisions of this process, and changes the counters that it uses. */
export class LocalDecisions implements DecisionOperator {
  readonly #options: LocalDecisionsOptions;

  constructor(options: LocalDecisionsOptions) {
    this.#options = options;
  }

  async explain(request: RateLimitRequest, limit?: number): Promise<Explanation> {
    const ruleset = this.#ruleset;
    const explained = this.#options.limiter.explain(request, ruleset, Date.now(), limit);
    const stored = await countsOf(explained, this.#options.apply);
    return explanationOf(explained, new LookUps(ruleset!, request), stored);
  }

  async readCounter(query: CounterQuery): Promise<CounterState | NoCounter> {
    return new OperatedCounters(this.#options).read(query, this.#ruleset);
  }

  async changeCounter(query: CounterQuery, count: number | null): Promise<CounterChange | NoCounter> {
    return new OperatedCounters(this.#options).change(query, count, this.#ruleset);
  }

  offenders(query: OffenderQuery): Promise<readonly Offender[]> {
    return this.#options.offenders.top(query);
  }

  get #ruleset(): Ruleset | undefined {
    return this.#options.config$.value.loaded?.ruleset;
  }
}

/** Reads the counts that a decision would need. */
function countsOf({ operations }: ExplainedRequest, apply: CountersOptions['apply']): Promise<StoredCounts> {
  const reads = new Map(operations.map((operation) => [operation.key, readOf(operation)]));
  return new Promise((resolve) => {
    apply([...reads.values()], {
      settled: () => resolve(new Map(Array.from(reads, ([key, { after, outcome }]) => [key, outcome?.state ?? after]))),
      failed: resolve,
    });
  });
}
