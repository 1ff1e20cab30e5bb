import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { DecisionError, type DecisionErrorCode } from '../../limiter/decision-error';
import { mergeOffenders } from '../../limiter/offenders/merge-offenders';
import type { Offender, OffenderQuery, OffenderSummary } from '../../limiter/offenders/offender';
import { topOf } from '../../limiter/offenders/offenders';
import type { RateLimitRequest } from '../../limiter/request';
import type { OffenderSource } from '../../streams/ports/offender-source';
import type {
  CounterChange,
  CounterQuery,
  CounterState,
  DecisionOperator,
  Explanation,
  NoCounter,
} from '../../streams/ports/operator';
import { ChannelClosedError, RequestError } from '../../workers/channel/requests/request-error';
import type { Requests } from '../../workers/channel/requests/requests';

/** Milliseconds that a page of metrics waits for a worker, as for its other metrics. */
const METRICS_DEADLINE = 250;
/** Milliseconds that the operators' API waits for a worker when it needs the answers of all. */
const API_DEADLINE = 5_000;

/** The methods that a worker answers, with the type of their JSON: parameters, result. */
export interface WorkerMethods {
  readonly explain: [{ readonly request: RateLimitRequest }, Explanation];
  readonly read_counter: [{ readonly query: CounterQuery }, CounterState | NoCounter];
  readonly change_counter: [{ readonly query: CounterQuery; readonly count: number | null }, CounterChange | NoCounter];
  /** Removes a key from the local cache. */
  readonly forget: [{ readonly cacheKey: string }, Record<string, never>];
  readonly offenders: [Record<string, never>, OffenderSummary];
}

/** What a failed request carries besides its message, if it failed with a `DecisionError`. */
export interface DecisionErrorDetail {
  readonly code: DecisionErrorCode;
}

export interface WorkerDecisionsOptions {
  /** Those of the workers that are ready, the first of which answers for all. */
  readonly workers: () => readonly Pick<Requests, 'ask'>[];
  /** OFFENDERS_SIZE */
  readonly offendersSize: number;
}

/**
 * Explanations, counters and offenders of an instance with several workers, which are asked for them. A worker may stand still for some
 * seconds and still count as ready, so that an answer of all is without those that are late.
 */
export class WorkerDecisions implements DecisionOperator, OffenderSource {
  readonly #options: WorkerDecisionsOptions;

  constructor(options: WorkerDecisionsOptions) {
    this.#options = options;
  }

  explain(request: RateLimitRequest): Promise<Explanation> {
    return this.#askOne('explain', { request }, API_DEADLINE);
  }

  /** Every worker has a local cache, and only one counter is behind them. */
  async readCounter(query: CounterQuery): Promise<CounterState | NoCounter> {
    const [first, ...others] = await this.#askAll('read_counter', { query }, API_DEADLINE);
    if (first === undefined) throw noWorker();
    if ('reason' in first) return first;
    return {
      ...first,
      isInLocalCache: [first, ...others].some((state) => 'cacheKey' in state && state.isInLocalCache),
    };
  }

  async changeCounter(query: CounterQuery, count: number | null): Promise<CounterChange | NoCounter> {
    const change = await this.#askOne('change_counter', { query, count });
    if ('cacheKey' in change) await this.#askAll('forget', { cacheKey: change.cacheKey }, API_DEADLINE);
    return change;
  }

  offenders(query: OffenderQuery): Promise<readonly Offender[]> {
    return this.#topWithin(API_DEADLINE, query);
  }

  /** For the page of metrics. */
  top(query: OffenderQuery): Promise<readonly Offender[]> {
    return this.#topWithin(METRICS_DEADLINE, query);
  }

  async #topWithin(deadline: number, query: OffenderQuery): Promise<readonly Offender[]> {
    const { offendersSize } = this.#options;
    if (offendersSize === 0) return [];
    const summaries = await this.#askAll('offenders', {}, deadline);
    return topOf(mergeOffenders(summaries, offendersSize), query);
  }

  /**
   * The result of the first worker; of the next one if it ends meanwhile, or does not answer within `deadline` milliseconds. A change may
   * be made twice: it sets a count. It has no deadline, because a late one would change newer counts.
   */
  async #askOne<M extends keyof WorkerMethods>(
    method: M,
    parameters: WorkerMethods[M][0],
    deadline?: number,
  ): Promise<WorkerMethods[M][1]> {
    for (const worker of this.#options.workers()) {
      const [result] = await resultUnlessEnded<WorkerMethods[M][1]>(worker.ask(method, parameters), deadline);
      if (result !== undefined) return result;
    }
    throw noWorker();
  }

  /** The results of the workers that have answered before they ended, and within `deadline` milliseconds. */
  async #askAll<M extends keyof WorkerMethods>(
    method: M,
    parameters: WorkerMethods[M][0],
    deadline: number,
  ): Promise<readonly WorkerMethods[M][1][]> {
    const workers = this.#options.workers();
    const results = await Promise.all(
      workers.map((worker) => resultUnlessEnded<WorkerMethods[M][1]>(worker.ask(method, parameters), deadline)),
    );
    return results.flat();
  }
}

class LateAnswerError extends Error {
  override readonly name = 'LateAnswerError';
}

/** The result, or nothing if the worker ends before it has answered, or does not answer in time. */
async function resultUnlessEnded<Result>(
  answer: Readable,
  deadline?: number,
): Promise<readonly [Result] | readonly []> {
  const late = deadline === undefined ? undefined : setTimeout(() => answer.destroy(new LateAnswerError()), deadline);
  try {
    return [await resultOf<Result>(answer)];
  } catch (error) {
    if (error instanceof ChannelClosedError || error instanceof LateAnswerError) return [];
    throw error;
  } finally {
    clearTimeout(late);
  }
}

async function resultOf<Result>(answer: Readable): Promise<Result> {
  try {
    return JSON.parse(await text(answer)) as Result;
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    const detail = error.detail as DecisionErrorDetail | undefined;
    throw detail === undefined ? error : new DecisionError(detail.code, error.message);
  }
}

function noWorker(): DecisionError {
  return new DecisionError('store_failed', 'no worker has answered');
}
