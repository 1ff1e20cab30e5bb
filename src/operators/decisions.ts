import { setImmediate } from 'node:timers/promises';
import { failCall } from '../counting/batch';
import { DecisionError, timedOut } from '../counting/decision-error';
import { readOf } from '../counting/operation';
import type { ExplainedDescriptor, Explanation } from '../explain/explanation';
import { type KnownCounts, RequestExplanation } from '../explain/request-explanation';
import type { OffenderSummary } from '../limiter/offender';
import type { RateLimitRequest } from '../limiter/request';
import { limitsOfResolution } from '../limiter/resolution';
import type { Trial } from '../limiter/trial';
import type { Ruleset } from '../rules/ruleset';
import type { CurrentConfig } from '../streams/config';
import type { Latest } from '../streams/latest';
import type { OffenderSource } from '../streams/ports/offender-source';
import type { CounterChange, CounterQuery, CounterState, NoCounter } from './answers';
import { MAX_RESERVED_DESCRIPTORS } from '../streams/ports/reservations';
import { type CountersOptions, OperatedCounters, openReservationsOf } from './counters';
import { inTime } from './in-time';
import type { WatchCounts, WatchedCaller, Watches } from './fleet/watches';

/**
 * What only the processes that decide can answer. A method rejects with a `DecisionError` when the counter store fails.
 */
export interface DecisionOperator {
  /**
   * What a decision would do with a request, without counting anything.
   *
   * Rejects with a `DecisionError` for an invalid request. When the store fails, the explanation has its error, or what
   * policies answer.
   *
   * @param limit the requests per unit of every limit, instead of those that are configured
   */
  explain(request: RateLimitRequest, limit?: number): Promise<Explanation>;
  /** The counter of the current window of a descriptor. */
  readCounter(query: CounterQuery): Promise<CounterState | NoCounter>;
  /**
   * Changes that counter, and removes it from the local caches of this instance.
   *
   * @param count from 0 to 2^53 − 1, of a token bucket the tokens left; null clears it
   */
  changeCounter(query: CounterQuery, count: number | null): Promise<CounterChange | NoCounter>;
  /** The callers that are limited most. */
  offenders(): Promise<OffenderSummary>;
  /** Calls of the last seconds of a caller, which is watched from now on; null when too many others are. */
  watch(caller: WatchedCaller): Promise<WatchCounts | null>;
}

/** What decides in this process. */
export interface LocalDecisionsOptions extends CountersOptions, ExplainOptions {
  readonly config$: Latest<CurrentConfig>;
  readonly offenders: OffenderSource;
  readonly watches: Pick<Watches, 'read'>;
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

  /** Gives back what this process holds of a counter that another one is going to change. */
  async releaseCounter(query: CounterQuery): Promise<void> {
    await new OperatedCounters(this.#options).release(query, this.#ruleset);
  }

  async changeCounter(query: CounterQuery, count: number | null): Promise<CounterChange | NoCounter> {
    return new OperatedCounters(this.#options).change(query, count, this.#ruleset);
  }

  offenders(): Promise<OffenderSummary> {
    return this.#options.offenders.summary();
  }

  async watch(caller: WatchedCaller): Promise<WatchCounts | null> {
    return this.#options.watches.read(caller) ?? null;
  }

  get #ruleset(): Ruleset | undefined {
    return this.#options.config$.value.loaded?.ruleset;
  }
}

/** An explanation waits so long at most for a store for which calls wait longer. */
const TIMEOUT_MS = 1_000;

/** An explanation takes so much of a turn of the event loop at most, so that decisions go on meanwhile. */
const SLICE_MS = 5;

/**
 * Explains a request by the counts that the store has. What it does not read in the time of a call, at most a second,
 * is explained as a call is answered that it does not count.
 *
 * @throws DecisionError for an invalid request, or without rules
 */
// oxlint-disable-next-line max-params -- as the method of the port, with what it needs
export async function explainRequest(
  request: RateLimitRequest,
  ruleset: Ruleset | undefined,
  { limiter, leases, apply, reservations, timeout = TIMEOUT_MS, now = Date.now() }: ExplainOptions,
  limit?: number,
): Promise<Explanation> {
  const trial = limiter.trial(request, ruleset, now, limit);
  const most = Math.min(timeout, TIMEOUT_MS);
  const stored = await countsOf(trial, apply, most);
  const open = new Map<string, number>();
  // A store that has not read the counts is not waited for again.
  if (isComplete(stored)) await inTime(most, readOpen(trial, reservations, open));
  const explanation = new RequestExplanation(trial, ruleset!, { stored, open, leases });
  const descriptors: ExplainedDescriptor[] = [];
  let sliceStart = performance.now();
  for (const index of request.descriptors.keys()) {
    if (performance.now() - sliceStart >= SLICE_MS) {
      await setImmediate();
      sliceStart = performance.now();
    }
    descriptors.push(explanation.descriptor(index));
  }
  return explanation.of(descriptors);
}

/** What an explanation is made with. */
interface ExplainOptions extends Pick<CountersOptions, 'limiter' | 'leases' | 'apply' | 'reservations'> {
  /** STORE_DECISION_TIMEOUT with its default; undefined: the store has an end of its own. */
  readonly timeout?: number | undefined;
  /** The time of the request, in Unix milliseconds; by default, the present. */
  readonly now?: number;
}

/** Reads the counts that a decision would need. */
async function countsOf(
  { decision: { operations } }: Trial,
  apply: CountersOptions['apply'],
  timeout: number,
): Promise<KnownCounts['stored']> {
  const reads = new Map(operations.map((operation) => [operation.key, readOf(operation)]));
  let error: DecisionError | undefined;
  function failed(reason: DecisionError): void {
    error = reason;
  }
  const read = new Promise<void>((settle) => {
    apply([...reads.values()], { settled: settle, failed: (reason) => settle(failed(reason)) });
  });
  if (!(await inTime(timeout, read))) {
    const missing = [...reads.values()].filter(({ countAfter, failure }) => countAfter < 0 && failure === undefined);
    failCall({ operations: missing, isCancelled: false, settle: () => undefined, fail: failed }, timedOut());
  }
  return (
    error ??
    new Map(
      Array.from(reads, ([key, { failure, countAfter, outcome }]) => [key, failure ?? outcome?.state ?? countAfter]),
    )
  );
}

function isComplete(stored: KnownCounts['stored']): boolean {
  return stored instanceof Map && ![...stored.values()].some((each) => each instanceof DecisionError);
}

/** Reads how many open reservations the counters have, of a request that may be one of a reservation. */
async function readOpen(
  { decision: { request, resolutions } }: Trial,
  reservations: CountersOptions['reservations'],
  open: Map<string, number>,
): Promise<void> {
  if (request.descriptors.length > MAX_RESERVED_DESCRIPTORS) return;
  const limits = resolutions.flatMap(limitsOfResolution);
  const reads = limits.map(async (limited) => {
    const found = await openReservationsOf(limited, reservations);
    if (found !== undefined) open.set(limited.key, found.count);
  });
  await Promise.all(reads);
}
