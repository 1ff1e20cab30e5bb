import { DecisionError } from '../counting/decision-error';
import type { Explanation } from '../explain/explanation';
import type { Limiter } from '../limiter/limiter';
import { NO_OFFENDERS, type OffenderSummary, mergeOffenders } from '../limiter/offender';
import type { HeavyHitters } from '../limiter/heavy-hitters';
import type { RateLimitRequest } from '../limiter/request';
import type { OffenderSource } from '../streams/ports/offender-source';
import type { CounterChange, CounterQuery, CounterState, NoCounter } from './answers';
import type { DecisionOperator, LocalDecisions } from './decisions';
import { type WatchCounts, type WatchedCaller, sumOfCounts } from './fleet/watches';

/** The methods that a worker answers, with the type of their JSON: parameters, result. */
interface WorkerMethods {
  readonly explain: [{ readonly request: RateLimitRequest; readonly limit: number | undefined }, Explanation];
  readonly read_counter: [{ readonly query: CounterQuery }, CounterState | NoCounter];
  /** Gives back the leased hits of a counter. */
  readonly release_counter: [{ readonly query: CounterQuery }, null];
  readonly change_counter: [{ readonly query: CounterQuery; readonly count: number | null }, CounterChange | NoCounter];
  /** Removes a key from the local cache. */
  readonly forget: [{ readonly cacheKey: string }, null];
  readonly offenders: [Record<string, never>, OffenderSummary];
  readonly watch: [{ readonly caller: WatchedCaller }, WatchCounts | null];
}

type Method = keyof WorkerMethods;
type Result<M extends Method> = WorkerMethods[M][1];
/** Without a timeout, in milliseconds, the answer is waited for as long as the worker runs. */
type MethodCall<M extends Method> = [method: M, parameters: WorkerMethods[M][0], timeoutMs?: number];

/** A worker that runs, and how to ask it. */
export interface AskedWorker {
  /**
   * Calls one of its {@link operatorMethods}; resolves to the result, or nothing if it ends before it has answered, or
   * stands still.
   */
  call(method: string, parameters: unknown, timeoutMs?: number): Promise<readonly unknown[]>;
  /** Whether it decides calls and has answered the primary lately. */
  readonly isReady: boolean;
  /** Removes a key from its local cache, as soon as it does not stand still. */
  forget(cacheKey: string): void;
}

/** Milliseconds for which a page of metrics waits for a worker that stands still, as for its other metrics. */
const METRICS_TIMEOUT = 250;
/** Milliseconds for which the operators' API waits for a worker that stands still. */
const API_TIMEOUT = 5_000;

export interface WorkerDecisionsOptions {
  /** The workers that run. The first one that is ready answers for all. */
  readonly workers: () => readonly AskedWorker[];
  /** OFFENDERS_SIZE */
  readonly offendersSize: number;
}

/**
 * Explanations, counters and offenders of an instance with several workers, which are asked for them. A worker may
 * stand still for some seconds and still count as ready, so that an answer of all is without those that do.
 */
export class WorkerDecisions implements DecisionOperator, OffenderSource {
  readonly #options: WorkerDecisionsOptions;

  constructor(options: WorkerDecisionsOptions) {
    this.#options = options;
  }

  explain(request: RateLimitRequest, limit?: number): Promise<Explanation> {
    return this.#askOne('explain', { request, limit }, API_TIMEOUT);
  }

  /** Every worker has a local cache and leases, and only one counter is behind them. */
  async readCounter(query: CounterQuery): Promise<CounterState | NoCounter> {
    const answers = await this.#askAll('read_counter', { query }, API_TIMEOUT);
    const [first] = answers;
    if (first === undefined) throw noWorker();
    if ('reason' in first) return first;
    const states = answers.filter((answer) => 'cacheKey' in answer);
    return {
      ...first,
      leased: first.leased === null ? null : states.reduce((sum, { leased }) => sum + (leased ?? 0), 0),
      isInLocalCache: states.some(({ isInLocalCache }) => isInLocalCache),
    };
  }

  /** A change is waited for as long as its worker runs, because a late one would change newer counts. */
  async changeCounter(query: CounterQuery, count: number | null): Promise<CounterChange | NoCounter> {
    // What is given back later would be subtracted from the new count.
    await this.#askAll('release_counter', { query }, API_TIMEOUT);
    const change = await this.#askOne('change_counter', { query, count });
    if (!('cacheKey' in change)) return change;
    const { cacheKey } = change;
    for (const worker of this.#options.workers()) worker.forget(cacheKey);
    // From the answer on, no worker that is ready uses the old count.
    await this.#askAll('forget', { cacheKey }, API_TIMEOUT);
    return change;
  }

  offenders(): Promise<OffenderSummary> {
    return this.#merged(API_TIMEOUT);
  }

  /** For the page of metrics. */
  summary(): Promise<OffenderSummary> {
    return this.#merged(METRICS_TIMEOUT);
  }

  async watch(caller: WatchedCaller): Promise<WatchCounts | null> {
    const all = await this.#askAll('watch', { caller }, API_TIMEOUT);
    const counts = all.flatMap((each) => each ?? []);
    return counts.length < all.length ? null : sumOfCounts(counts);
  }

  async #merged(timeoutMs: number): Promise<OffenderSummary> {
    const { offendersSize } = this.#options;
    if (offendersSize === 0) return NO_OFFENDERS;
    return mergeOffenders(await this.#askAll('offenders', {}, timeoutMs), offendersSize);
  }

  get #ready(): readonly AskedWorker[] {
    return this.#options.workers().filter(({ isReady }) => isReady);
  }

  /**
   * The result of the first worker; of the next one if it ends or stands still. A change may be made twice: it sets a
   * count.
   */
  async #askOne<M extends Method>(...call: MethodCall<M>): Promise<Result<M>> {
    for (const worker of this.#ready) {
      const [result] = await worker.call(...call);
      if (result !== undefined) return result as Result<M>;
    }
    throw noWorker();
  }

  /** The results of the workers that have answered before they ended or stood still. */
  async #askAll<M extends Method>(...call: MethodCall<M>): Promise<readonly Result<M>[]> {
    const results = await Promise.all(this.#ready.map((worker) => worker.call(...call)));
    return results.flat() as readonly Result<M>[];
  }
}

function noWorker(): DecisionError {
  return new DecisionError('store_failed', 'no worker has answered');
}

export interface OperatorAnswers {
  readonly decisions: DecisionOperator & Pick<LocalDecisions, 'releaseCounter'>;
  readonly limiter: Pick<Limiter, 'forget'>;
  /** Undefined when they are not counted. */
  readonly offenders: HeavyHitters | undefined;
}

/** How a worker answers what `WorkerDecisions` asks in the primary. */
export function operatorMethods({ decisions, limiter, offenders }: OperatorAnswers): {
  readonly [M in Method]: (parameters: WorkerMethods[M][0]) => Promise<Result<M>>;
} {
  return {
    explain: ({ request, limit }) => decisions.explain(request, limit),
    read_counter: ({ query }) => decisions.readCounter(query),
    release_counter: async ({ query }) => {
      await decisions.releaseCounter(query);
      return null;
    },
    change_counter: ({ query, count }) => decisions.changeCounter(query, count),
    forget: async ({ cacheKey }) => {
      limiter.forget(cacheKey);
      return null;
    },
    watch: ({ caller }) => decisions.watch(caller),
    offenders: async () => offenders?.summary(Math.floor(Date.now() / 1000)) ?? NO_OFFENDERS,
  };
}
