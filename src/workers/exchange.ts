import type { ClientHttp2Stream } from 'node:http2';
import { setTimeout as pause } from 'node:timers/promises';
import { type Subscription, asyncScheduler } from 'rxjs';
import type { Statistics } from '../statistics/statistics';
import type { ReservationStore } from '../streams/ports/reservations';
import { type ApplyNow, serveCounters } from './counters';
import type { WorkerPool } from './pool';
import type { WorkerProcess } from './process';
import { serveReservations } from './reservations';
import { MergedStatistics } from './statistics';

/** Milliseconds that a page of metrics waits for those of a worker process; a slower worker is shown as it was on the page before. */
const METRICS_DEADLINE = 250;
/** The method with which a worker returns the metrics of its process as text. */
export const PROCESS_METRICS = 'process_metrics';

/** Counters in memory. */
export interface MemoryStore extends ReservationStore {
  /** Applies a batch. */
  readonly applyNow: ApplyNow;
}

/** What the primary exchanges with its workers besides connections and rules: statistics, counters in memory, requests. */
export class Exchange {
  readonly #pool: WorkerPool;
  readonly #statistics: Statistics;
  readonly #memory: MemoryStore | undefined;
  readonly #merged: MergedStatistics;
  /** The metrics that were last received from each worker. */
  readonly #metrics = new Map<WorkerProcess, string>();

  /** @param memory the counters of the instance, with the memory store */
  constructor(pool: WorkerPool, statistics: Statistics, memory: MemoryStore | undefined) {
    this.#pool = pool;
    this.#statistics = statistics;
    this.#memory = memory;
    this.#merged = new MergedStatistics(statistics);
    statistics.gauge('ratelimit.workers.ready', () => pool.workers.filter(({ isReady }) => isReady).length);
    statistics.counter('ratelimit.workers.restarts');
  }

  /** Exchanges with every worker that is started while there is a subscription, and collects their statistics every second. */
  subscribe(): Subscription {
    const subscription = this.#pool.started$.subscribe((process) => this.#link(process));
    subscription.add(this.#merged.collecting(asyncScheduler).subscribe());
    return subscription;
  }

  /** Brings the statistics up to date; resolves at the latest after a short time. */
  collect(): Promise<void> {
    return this.#merged.collect();
  }

  /** The metrics of each worker process in the Prometheus text format, as far as they arrive in time. */
  processMetrics(): Promise<readonly string[]> {
    return Promise.all([...this.#metrics.keys()].map((process) => this.#metricsOf(process)));
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
    return this.#pool.workers.find(({ number }) => number === worker)?.requests.get(url);
  }

  #link(process: WorkerProcess): void {
    const { channel, number } = process;
    if (this.#pool.restartsOf(number) > 0) this.#statistics.counter('ratelimit.workers.restarts').add(1);
    this.#merged.add(channel);
    const memory = this.#memory;
    if (memory !== undefined) {
      serveCounters(channel, (batch) => memory.applyNow(batch));
      serveReservations(channel, memory);
    }
    this.#metrics.set(process, '');
    // What one worker removes from its local cache, because its count was reduced, the others have to remove, too.
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.messages<string>('forget').subscribe({
      next: (cacheKey) => {
        for (const other of this.#pool.workers) {
          if (other !== process) other.forget(cacheKey);
        }
      },
      complete: () => this.#metrics.delete(process),
    });
  }

  async #metricsOf(process: WorkerProcess): Promise<string> {
    const abort = new AbortController();
    const late = pause(METRICS_DEADLINE, undefined, { signal: abort.signal }).catch(() => undefined);
    const answer = process.call(PROCESS_METRICS, {}, METRICS_DEADLINE);
    const [metrics] = (await Promise.race([answer, late])) ?? [];
    abort.abort();
    // After its end, it has none.
    if (typeof metrics === 'string' && this.#metrics.has(process)) this.#metrics.set(process, metrics);
    return this.#metrics.get(process) ?? '';
  }
}
