import type { ExplainedRequest } from '../limiter/explained-request';
import type { Offender, OffenderQuery } from '../limiter/offender';
import type { RateLimitRequest } from '../limiter/request';
import { limitsOfResolution } from '../limiter/resolution';
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
import { MAX_DESCRIPTORS } from '../streams/ports/reservations';
import { type CountersOptions, OperatedCounters, openReservationsOf, readOf } from './counters';
import { type OpenReservationCounts, type StoredCounts, explanationOf } from './explanation';
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
    return explainRequest(request, this.#ruleset, this.#options, limit);
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

/**
 * Explains a request by the counts that the store has.
 *
 * @throws DecisionError for an invalid request, or without rules
 */
// oxlint-disable-next-line max-params -- as the method of the port, with what it needs
export async function explainRequest(
  request: RateLimitRequest,
  ruleset: Ruleset | undefined,
  { limiter, apply, reservations }: Pick<CountersOptions, 'limiter' | 'apply' | 'reservations'>,
  limit?: number,
): Promise<Explanation> {
  const explained = limiter.explain(request, ruleset, Date.now(), limit);
  const [stored, open] = await Promise.all([countsOf(explained, apply), openOf(explained, reservations)]);
  return explanationOf(explained, new LookUps(ruleset!, request), { stored, open });
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

/** Reads how many open reservations the counters have, of a request that may be one of a reservation. */
async function openOf(
  { request, descriptors }: ExplainedRequest,
  reservations: CountersOptions['reservations'],
): Promise<OpenReservationCounts> {
  const open = new Map<string, number>();
  if (request.descriptors.length > MAX_DESCRIPTORS) return open;
  const limits = descriptors.flatMap(({ resolution }) => limitsOfResolution(resolution));
  const reads = limits.map(async (limited) => {
    const found = await openReservationsOf(limited, reservations);
    if (found !== undefined) open.set(limited.key, found.count);
  });
  await Promise.all(reads);
  return open;
}
