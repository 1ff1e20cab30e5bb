import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { type SchedulerLike, Subscription } from 'rxjs';
import type { DebugWorkers, WorkerInfo } from '../http/debug/workers';
import type { Statistics } from '../statistics/statistics';
import type { CounterLane } from '../streams/ports/counters';
import { Requests } from '../workers/channel/requests/requests';
import { serveCounters } from '../workers/counters/serve-counters';
import { type WorkerPool, isReady } from '../workers/primary/worker-pool';
import type { WorkerProcess } from '../workers/primary/worker-process';
import { MergedStatistics } from '../workers/statistics/merged-statistics';
import type { AskedWorker } from './operators/ask-worker';
import type { WorkerReports } from './metrics-listener';

/** Milliseconds that a page of metrics waits for those of a worker process; a slower worker is shown as it was on the page before. */
const METRICS_DEADLINE = 250;

export interface PrimaryWorkersOptions {
  readonly pool: WorkerPool;
  readonly statistics: Statistics;
  /** The counters of the instance, with the memory store. */
  readonly memory: Pick<CounterLane, 'apply'> | undefined;
  readonly scheduler: SchedulerLike;
}

/** A worker, and what was last received from it. */
interface Linked {
  readonly requests: Requests;
  readonly startedAt: number;
  metrics: string;
}

/** What the primary exchanges with its workers besides connections and rules: statistics, counters in memory, metrics and profiles. */
export class PrimaryWorkers implements WorkerReports, DebugWorkers {
  readonly #options: PrimaryWorkersOptions;
  readonly #merged: MergedStatistics;
  readonly #linked = new Map<WorkerProcess, Linked>();
  /** How often each number was started. */
  readonly #starts = new Map<number, number>();

  constructor(options: PrimaryWorkersOptions) {
    this.#options = options;
    const { pool, statistics } = options;
    this.#merged = new MergedStatistics(statistics);
    statistics.gauge('ratelimit.workers.ready', () => pool.members.filter(isReady).length);
    statistics.counter('ratelimit.workers.restarts');
  }

  /** Exchanges with every worker that is started while there is a subscription, and collects their statistics every second. */
  subscribe(): Subscription {
    const { pool, scheduler } = this.#options;
    const subscriptions = new Subscription();
    subscriptions.add(pool.started$.subscribe((process) => this.#link(process)));
    subscriptions.add(this.#merged.collecting(scheduler).subscribe());
    return subscriptions;
  }

  collect(): Promise<void> {
    return this.#merged.collect();
  }

  processMetrics(): Promise<readonly string[]> {
    return Promise.all([...this.#linked.values()].map(metricsOf));
  }

  /** How to ask each worker that runs. */
  get asked(): readonly AskedWorker[] {
    return this.#options.pool.members.flatMap((member) => {
      const requests = this.#linked.get(member.process)?.requests;
      return requests === undefined ? [] : { requests, isReady: isReady(member), alive$: member.process.reports$ };
    });
  }

  list(): readonly WorkerInfo[] {
    const { pool } = this.#options;
    return pool.members
      .map(({ process, isServing, isResponsive }) => ({
        worker: process.number,
        pid: process.pid,
        isServing,
        isResponsive,
        connections: process.connections,
        uptimeSeconds: (performance.now() - (this.#linked.get(process)?.startedAt ?? 0)) / 1000,
        restarts: (this.#starts.get(process.number) ?? 1) - 1,
      }))
      .sort((one, other) => one.worker - other.worker);
  }

  respond(worker: number, url: string): Readable | undefined {
    const member = this.#options.pool.members.find(({ process }) => process.number === worker);
    return member && this.#linked.get(member.process)?.requests.ask('debug', { url });
  }

  #link(process: WorkerProcess): void {
    const { statistics, memory } = this.#options;
    const { channel, number } = process;
    const starts = (this.#starts.get(number) ?? 0) + 1;
    this.#starts.set(number, starts);
    if (starts > 1) statistics.counter('ratelimit.workers.restarts').add(1);
    this.#merged.add(channel);
    if (memory !== undefined) serveCounters(channel, memory);
    this.#linked.set(process, { requests: new Requests(channel), startedAt: performance.now(), metrics: '' });
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.closed$.subscribe(() => this.#linked.delete(process));
  }
}

async function metricsOf(linked: Linked): Promise<string> {
  const answer = linked.requests.ask('process_metrics');
  const abort = new AbortController();
  try {
    const late = pause(METRICS_DEADLINE, undefined, { signal: abort.signal });
    linked.metrics = (await Promise.race([text(answer), late])) ?? linked.metrics;
  } catch {
    // The worker has ended; its last metrics are as good as none.
  } finally {
    abort.abort();
    answer.destroy();
  }
  return linked.metrics;
}
