import type { Offender, OffenderQuery } from '../limiter/offender';
import type { RateLimitRequest } from '../limiter/request';
import type { Statistics } from '../statistics/statistics';
import type { CurrentConfig } from '../streams/config';
import type { Health } from '../streams/readiness';
import type { Latest } from '../streams/latest';
import type {
  CounterChange,
  CounterQuery,
  CounterState,
  DecisionOperator,
  Explanation,
  ListedSetting,
  NoCounter,
  Operator,
  RuleListing,
  UnknownDomain,
} from '../streams/ports/operator';
import { isoTime } from './explanation';
import { inParts, listRules } from './rules';

/** Listing so many takes less than a millisecond. */
const RULES_PER_PART = 200;
const STATISTICS_PER_PART = 1_000;

export interface LocalOperatorOptions {
  /** Of this process, or of the workers that decide for it. */
  readonly decisions: DecisionOperator;
  readonly config$: Latest<CurrentConfig>;
  readonly statistics: Statistics;
  /** Brings statistics that other processes count up to date. */
  readonly collect?: (() => Promise<void>) | undefined;
  readonly health: () => Health;
  readonly settings: readonly ListedSetting[];
}

/** Shows and changes the service that this process is, or is the primary of. */
export class LocalOperator implements Operator {
  readonly #options: LocalOperatorOptions;

  constructor(options: LocalOperatorOptions) {
    this.#options = options;
  }

  async rules(domain: string | undefined): Promise<RuleListing | UnknownDomain> {
    await this.#options.collect?.();
    const { config$, statistics } = this.#options;
    const { loaded, rejected } = config$.value;
    if (domain !== undefined && loaded?.ruleset.domain(domain) === undefined) {
      return { knownDomains: [...(loaded?.ruleset.domains.keys() ?? [])] };
    }
    const rules = loaded === undefined ? [] : listRules(loaded.ruleset, domain, statistics);
    return {
      loaded:
        loaded === undefined
          ? null
          : {
              source: loaded.origin.source,
              version: loaded.origin.version,
              at: isoTime(loaded.at / 1000),
              rules: loaded.ruleset.size,
            },
      rejected: rejected === undefined ? null : { reason: rejected.reason, at: isoTime(rejected.at / 1000) },
      items: inParts(rules, RULES_PER_PART),
    };
  }

  explain(request: RateLimitRequest): Promise<Explanation> {
    return this.#options.decisions.explain(request);
  }

  readCounter(query: CounterQuery): Promise<CounterState | NoCounter> {
    return this.#options.decisions.readCounter(query);
  }

  changeCounter(query: CounterQuery, count: number | null): Promise<CounterChange | NoCounter> {
    return this.#options.decisions.changeCounter(query, count);
  }

  offenders(query: OffenderQuery): Promise<readonly Offender[]> {
    return this.#options.decisions.offenders(query);
  }

  async *statistics(): AsyncGenerator<readonly (readonly [string, number])[]> {
    await this.#options.collect?.();
    yield* inParts(this.#options.statistics.entries(), STATISTICS_PER_PART);
  }

  health(): Promise<Health> {
    return Promise.resolve(this.#options.health());
  }

  settings(): Promise<readonly ListedSetting[]> {
    return Promise.resolve(this.#options.settings);
  }
}
