import { DecisionError } from '../../limiter/decision-error';
import { mergeOffenders } from '../../limiter/offenders/merge-offenders';
import type { Offender, OffenderQuery } from '../../limiter/offenders/offender';
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
import { type AskedWorker, type WorkerMethods, type WorkerRequest, askWorker } from './ask-worker';

/** Milliseconds for which a page of metrics waits for a worker that stands still, as for its other metrics. */
const METRICS_PATIENCE = 250;
/** Milliseconds for which the operators' API waits for a worker that stands still. */
const API_PATIENCE = 5_000;

export interface WorkerDecisionsOptions {
  /** The workers that run. The first one that is ready answers for all. */
  readonly workers: () => readonly AskedWorker[];
  /** OFFENDERS_SIZE */
  readonly offendersSize: number;
}

/**
 * Explanations, counters and offenders of an instance with several workers, which are asked for them. A worker may stand still for some
 * seconds and still count as ready, so that an answer of all is without those that do.
 */
export class WorkerDecisions implements DecisionOperator, OffenderSource {
  readonly #options: WorkerDecisionsOptions;

  constructor(options: WorkerDecisionsOptions) {
    this.#options = options;
  }

  explain(request: RateLimitRequest): Promise<Explanation> {
    return this.#askOne({ method: 'explain', parameters: { request }, patience: API_PATIENCE });
  }

  /** Every worker has a local cache, and only one counter is behind them. */
  async readCounter(query: CounterQuery): Promise<CounterState | NoCounter> {
    const parameters = { query };
    const [first, ...others] = await this.#askAll({ method: 'read_counter', parameters, patience: API_PATIENCE });
    if (first === undefined) throw noWorker();
    if ('reason' in first) return first;
    return {
      ...first,
      isInLocalCache: [first, ...others].some((state) => 'cacheKey' in state && state.isInLocalCache),
    };
  }

  /** A change is waited for as long as its worker runs, because a late one would change newer counts. */
  async changeCounter(query: CounterQuery, count: number | null): Promise<CounterChange | NoCounter> {
    const change = await this.#askOne({
      method: 'change_counter',
      parameters: { query, count },
      patience: undefined,
    });
    if ('cacheKey' in change) await this.#forget(change.cacheKey);
    return change;
  }

  offenders(query: OffenderQuery): Promise<readonly Offender[]> {
    return this.#mergedTop(query, API_PATIENCE);
  }

  /** For the page of metrics. */
  top(query: OffenderQuery): Promise<readonly Offender[]> {
    return this.#mergedTop(query, METRICS_PATIENCE);
  }

  async #mergedTop(query: OffenderQuery, patience: number): Promise<readonly Offender[]> {
    const { offendersSize } = this.#options;
    if (offendersSize === 0) return [];
    const summaries = await this.#askAll({ method: 'offenders', parameters: {}, patience });
    return topOf(mergeOffenders(summaries, offendersSize), query);
  }

  /** Also in the workers that are not ready, which read the request when they continue. Only the others are waited for. */
  async #forget(cacheKey: string): Promise<void> {
    const request = { method: 'forget', parameters: { cacheKey }, patience: API_PATIENCE } as const;
    const workers = this.#options.workers();
    for (const worker of workers) if (!worker.isReady) void askWorker(worker, request).catch(() => undefined);
    await Promise.all(workers.filter(({ isReady }) => isReady).map((worker) => askWorker(worker, request)));
  }

  get #ready(): readonly AskedWorker[] {
    return this.#options.workers().filter(({ isReady }) => isReady);
  }

  /** The result of the first worker; of the next one if it ends or stands still. A change may be made twice: it sets a count. */
  async #askOne<M extends keyof WorkerMethods>(request: WorkerRequest<M>): Promise<WorkerMethods[M][1]> {
    for (const worker of this.#ready) {
      const [result] = await askWorker(worker, request);
      if (result !== undefined) return result;
    }
    throw noWorker();
  }

  /** The results of the workers that have answered before they ended or stood still. */
  async #askAll<M extends keyof WorkerMethods>(request: WorkerRequest<M>): Promise<readonly WorkerMethods[M][1][]> {
    const results = await Promise.all(this.#ready.map((worker) => askWorker(worker, request)));
    return results.flat();
  }
}

function noWorker(): DecisionError {
  return new DecisionError('store_failed', 'no worker has answered');
}
