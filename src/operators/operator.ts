import type { Offender, OffenderQuery } from '../limiter/offender';
import type { RateLimitRequest } from '../limiter/request';
import type { Statistics } from '../statistics/statistics';
import type { CurrentConfig } from '../streams/config';
import type { Check, Health } from '../streams/readiness';
import type { Latest } from '../streams/latest';
import type {
  CounterChange,
  CounterQuery,
  CounterState,
  DecisionOperator,
  Explanation,
  ListedConfigurations,
  ListedHealth,
  ListedSetting,
  LiveEvent,
  NoCounter,
  Operator,
  RuleListing,
  UnknownDomain,
  WorkerInfo,
} from './answers';
import { excerpt } from '../text/excerpt';
import type { RecentConfigurations } from './configurations';
import { isoTime } from './explanation';
import { LiveView } from './live';
import { inParts, listRules } from './rules';

/** Listing so many takes less than a millisecond. */
const RULES_PER_PART = 200;
const STATISTICS_PER_PART = 1_000;
/** How much of a rejection is in an event, in characters, and how many callers. */
const REASON = 1_000;
const OFFENDERS = 10;

export interface LocalOperatorOptions {
  /** Of this process, or of the workers that decide for it. */
  readonly decisions: DecisionOperator;
  readonly config$: Latest<CurrentConfig>;
  readonly statistics: Statistics;
  /** Brings statistics that other processes count up to date. */
  readonly collect?: (() => Promise<void>) | undefined;
  readonly health: () => Health;
  readonly checks: () => readonly Check[];
  readonly configurations: RecentConfigurations;
  /** The other processes, if there are any. */
  readonly workers?: (() => readonly WorkerInfo[]) | undefined;
  readonly settings: readonly ListedSetting[];
}

/** Shows and changes the service that this process is, or is the primary of. */
export class LocalOperator implements Operator {
  readonly #options: LocalOperatorOptions;
  readonly #live: LiveView;

  constructor(options: LocalOperatorOptions) {
    this.#options = options;
    this.#live = new LiveView(options.statistics);
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

  explain(request: RateLimitRequest, limit?: number): Promise<Explanation> {
    return this.#options.decisions.explain(request, limit);
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

  health(): Promise<ListedHealth> {
    return Promise.resolve(this.#health);
  }

  async live(): Promise<LiveEvent> {
    const { collect, checks, workers, decisions } = this.#options;
    await collect?.();
    const offenders = await decisions.offenders({ limit: OFFENDERS });
    const { active, rejected } = this.configurations();
    return {
      at: new Date().toISOString(),
      health: this.#health,
      checks: checks().map(({ name, failure = null, note = null }) => ({ name, failure, note })),
      ...this.#live.measure(),
      workers: workers?.() ?? [],
      loaded: active && withoutFiles(active),
      rejected: rejected && { ...withoutFiles(rejected), reason: excerpt(rejected.reason, REASON) },
      offenders,
    };
  }

  get #health(): ListedHealth {
    const { health, checks } = this.#options;
    const degraded = checks().filter(({ isDegraded }) => isDegraded);
    return { ...health(), degraded: degraded.map(({ name, note }) => `${name} ${note}`) };
  }

  configurations(): ListedConfigurations {
    return this.#options.configurations.list;
  }

  settings(): Promise<readonly ListedSetting[]> {
    return Promise.resolve(this.#options.settings);
  }
}

/** An event has neither the files nor the errors of a configuration. */
function withoutFiles<T extends { readonly files: unknown; readonly errors?: unknown }>(
  configuration: T,
): Omit<T, 'files' | 'errors'> {
  const { files: _files, errors: _errors, ...rest } = configuration;
  return rest;
}
