import type { ClientHttp2Stream } from 'node:http2';
import {
  type Observable,
  type SchedulerLike,
  asyncScheduler,
  ignoreElements,
  lastValueFrom,
  merge,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { Statistics } from '../statistics/statistics';
import { type MemoryStore, serveCounters } from './counters';
import type { WorkerPool } from './pool';
import type { WorkerProcess } from './process';
import { MergedStatistics } from './statistics';

/**
 * Milliseconds that a page of metrics waits for those of a worker process; a slower worker is shown as it was on the
 * page before.
 */
const METRICS_DEADLINE = 250;
/** The method with which a worker returns the metrics of its process as text. */
export const PROCESS_METRICS = 'process_metrics';

export interface WorkerRpcOptions {
  readonly statistics: Statistics;
  /** The counters of the instance, with the memory store. */
  readonly memory: MemoryStore | undefined;
  readonly scheduler?: SchedulerLike;
}

/**
 * What the primary exchanges with its workers besides connections and rules: statistics, counters in memory, local
 * caches, pages.
 */
export class WorkerRpc {
  readonly #pool: WorkerPool;
  readonly #options: WorkerRpcOptions;
  readonly #merged: MergedStatistics;
  /** The metrics that were last received from each worker. */
  readonly #metrics = new Map<WorkerProcess, string>();

  constructor(pool: WorkerPool, options: WorkerRpcOptions) {
    const { statistics, scheduler = asyncScheduler } = options;
    this.#pool = pool;
    this.#options = options;
    this.#merged = new MergedStatistics(statistics, scheduler);
    statistics.gauge('ratelimit.workers.ready', () => pool.workers.filter(({ isReady }) => isReady).length);
    statistics.counter('ratelimit.workers.restarts');
  }

  /**
   * Exchanges with every worker that is started while there is a subscription, and collects their statistics every
   * second. Never emits.
   */
  get serving$(): Observable<never> {
    const links$ = this.#pool.started$.pipe(
      tap((worker) => this.#link(worker)),
      ignoreElements(),
    );
    return merge(links$, this.#merged.collecting());
  }

  /** Brings the statistics up to date; resolves at the latest after a short time. */
  collect(): Promise<void> {
    return this.#merged.collect();
  }

  /** The metrics of each worker process in the Prometheus text format, as far as they arrive in time. */
  async processMetrics(): Promise<readonly string[]> {
    const late$ = timer(METRICS_DEADLINE, this.#options.scheduler);
    const requests = Array.from(this.#metrics.keys(), (worker) =>
      worker.channel.request<string>(PROCESS_METRICS, null).pipe(
        // After its end, it has none.
        tap((metrics) => this.#metrics.has(worker) && this.#metrics.set(worker, metrics)),
      ),
    );
    await lastValueFrom(merge(...requests).pipe(takeUntil(late$)), { defaultValue: undefined });
    return [...this.#metrics.values()];
  }

  /** The workers that run, in the order of their numbers. */
  list() {
    const workers = this.#pool.workers.toSorted((one, other) => one.number - other.number);
    return workers.map(({ number, pid, isServing, isResponsive, connections: { load }, startedAt }) => ({
      worker: number,
      pid,
      isServing,
      isResponsive,
      connections: load.grpc + load.http,
      uptimeSeconds: (performance.now() - startedAt) / 1000,
      restarts: this.#pool.restartsOf(number),
    }));
  }

  /** Forwards GET of a path with its query to a worker; undefined if it does not run. */
  forward(worker: number, url: string): ClientHttp2Stream | undefined {
    return this.#pool.workers.find(({ number }) => number === worker)?.page(url);
  }

  #link(worker: WorkerProcess): void {
    const { channel, number } = worker;
    const { statistics, memory } = this.#options;
    if (this.#pool.restartsOf(number) > 0) statistics.counter('ratelimit.workers.restarts').add(1);
    this.#merged.add(channel);
    if (memory !== undefined) serveCounters(channel, memory);
    this.#metrics.set(worker, '');
    // What one worker removes from its local cache, because its count was reduced, the others have to remove, too.
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.notifications<string>('forget').subscribe({
      next: (cacheKey) => {
        for (const other of this.#pool.workers) {
          if (other !== worker) other.forget(cacheKey);
        }
      },
      complete: () => this.#metrics.delete(worker),
    });
  }
}
