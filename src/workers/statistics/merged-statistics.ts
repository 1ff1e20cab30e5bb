import { setTimeout as pause } from 'node:timers/promises';
import { type Observable, type SchedulerLike, from } from 'rxjs';
import type { Statistics } from '../../statistics/statistics';
import { flushing } from '../../streams/flushing';
import type { Channel } from '../channel/channel';
import { MergedGauges } from './merged-gauges';
import { WorkerStatistics } from './worker-statistics';

/** Milliseconds between two reports of the workers. */
const INTERVAL = 1_000;
/** Milliseconds that a reader of statistics waits for the workers; of those that take longer it gets the values of their last report. */
const DEADLINE = 250;

/**
 * Merges the statistics of the workers into those of the primary, which are then those of the instance. What a worker has counted stays when
 * it ends, its gauges go. A worker that ends without a last report loses what it has counted since the one before.
 */
export class MergedStatistics {
  readonly #statistics: Statistics;
  readonly #gauges: MergedGauges;
  readonly #workers = new Set<WorkerStatistics>();

  constructor(statistics: Statistics) {
    this.#statistics = statistics;
    this.#gauges = new MergedGauges(statistics);
  }

  /** Adds a worker, before its channel is read. It is removed when its channel closes. */
  add(channel: Channel): void {
    const worker = new WorkerStatistics(this.#statistics, this.#gauges, channel);
    this.#workers.add(worker);
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.closed$.subscribe(() => this.#workers.delete(worker));
  }

  /** Asks every worker for a report; resolves when all have reported, at the latest after `deadline` milliseconds. */
  async collect(deadline = DEADLINE): Promise<void> {
    const abort = new AbortController();
    const reports = Promise.all([...this.#workers].map((worker) => worker.flush()));
    const late = pause(deadline, undefined, { signal: abort.signal }).catch(() => undefined);
    await Promise.race([reports, late]);
    abort.abort();
  }

  /** Collects every second while there is a subscriber. */
  collecting(scheduler: SchedulerLike): Observable<never> {
    return flushing(() => from(this.collect()), INTERVAL, scheduler);
  }
}
