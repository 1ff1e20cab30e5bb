import type { ExplainedRequest } from '../../limiter/explanations/explained-request';
import type { RateLimitRequest } from '../../limiter/request';
import type { Ruleset } from '../../rules/ruleset';
import type { Statistics } from '../../statistics/statistics';
import type { CurrentConfig } from '../../streams/current-config';
import type { Health } from '../../streams/health';
import type { Latest } from '../../streams/latest';
import type { ApplyOperations } from '../../streams/ports/decide';
import type { OffenderSource } from '../../streams/ports/offender-source';
import type { Offender, OffenderQuery } from '../../limiter/offenders/offender';
import {
  type CounterChange,
  type CounterQuery,
  type CounterState,
  type Explanation,
  type ListedSetting,
  type NoCounter,
  NotInThisProcess,
  type Operator,
  type RuleListing,
} from '../../streams/ports/operator';
import { type CountersOptions, OperatedCounters } from './counters';
import { type StoredCounts, explanationOf } from './explain';
import { inParts } from './in-parts';
import { listRules } from './list-rules';
import { LookUps } from './look-ups';

/** Listing so many takes less than a millisecond. */
const RULES_PER_PART = 200;
const STATISTICS_PER_PART = 1_000;

/** What decides in this process. */
export interface OperatedDecisions extends CountersOptions {
  readonly apply: ApplyOperations;
  readonly offenders: OffenderSource;
}

export interface LocalOperatorOptions {
  /** Undefined in a process that does not decide itself: the primary of several workers. */
  readonly operated?: OperatedDecisions | undefined;
  readonly config$: Latest<CurrentConfig>;
  readonly statistics: Statistics;
  readonly health: () => Health;
  readonly settings: readonly ListedSetting[];
}

/** Shows and changes the service of this process. */
export class LocalOperator implements Operator {
  readonly #options: LocalOperatorOptions;

  constructor(options: LocalOperatorOptions) {
    this.#options = options;
  }

  rules(domain: string | undefined): Promise<RuleListing | undefined> {
    const { config$, statistics } = this.#options;
    const { loaded, rejected } = config$.value;
    if (domain !== undefined && loaded?.ruleset.domain(domain) === undefined) return Promise.resolve(undefined);
    const rules = loaded === undefined ? [] : listRules(loaded.ruleset, domain, statistics);
    return Promise.resolve({
      loaded:
        loaded === undefined
          ? null
          : {
              source: loaded.origin.source,
              version: loaded.origin.version,
              at: isoTime(loaded.at),
              rules: loaded.ruleset.size,
            },
      rejected: rejected === undefined ? null : { reason: rejected.reason, at: isoTime(rejected.at) },
      items: inParts(rules, RULES_PER_PART),
    });
  }

  async explain(request: RateLimitRequest): Promise<Explanation> {
    const ruleset = this.#ruleset;
    const operated = this.#operated;
    const explained = operated.limiter.explain(request, ruleset, Date.now());
    const stored = await countsOf(explained, operated.apply);
    return explanationOf(explained, new LookUps(ruleset!, request), stored);
  }

  async readCounter(query: CounterQuery): Promise<CounterState | NoCounter> {
    return new OperatedCounters(this.#operated).read(query, this.#ruleset);
  }

  async changeCounter(query: CounterQuery, count: number | null): Promise<CounterChange | NoCounter> {
    return new OperatedCounters(this.#operated).change(query, count, this.#ruleset);
  }

  async offenders(query: OffenderQuery): Promise<readonly Offender[]> {
    return this.#operated.offenders.top(query);
  }

  statistics(): AsyncIterable<readonly (readonly [string, number])[]> {
    return inParts(this.#options.statistics.entries(), STATISTICS_PER_PART);
  }

  health(): Promise<Health> {
    return Promise.resolve(this.#options.health());
  }

  settings(): Promise<readonly ListedSetting[]> {
    return Promise.resolve(this.#options.settings);
  }

  get #ruleset(): Ruleset | undefined {
    return this.#options.config$.value.loaded?.ruleset;
  }

  get #operated(): OperatedDecisions {
    const { operated } = this.#options;
    if (operated === undefined) throw new NotInThisProcess();
    return operated;
  }
}

function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/** Reads the counts that a decision would need. */
function countsOf({ operations }: ExplainedRequest, apply: ApplyOperations): Promise<StoredCounts> {
  const reads = new Map(
    operations.map(({ key, windowSeconds, limit }) => [
      key,
      { key, windowSeconds, limit, hits: 0, guard: undefined, after: 0 },
    ]),
  );
  return new Promise((resolve) => {
    apply([...reads.values()], {
      settled: () => resolve(new Map(Array.from(reads, ([key, { after }]) => [key, after]))),
      failed: resolve,
    });
  });
}
