import type { Statistics } from '../../statistics/statistics';
import type { Tags } from '../../statistics/tags';

/** How the values of the workers become one. Gauges that are not listed are added up. */
type Merging = 'sum' | 'total' | 'largest' | 'mean';

const MERGING: Readonly<Record<string, Merging>> = {
  // These count since the start: what a worker has counted stays when it ends.
  'ratelimit.localcache.lookupCount': 'total',
  'ratelimit.localcache.hitCount': 'total',
  'ratelimit.localcache.missCount': 'total',
  'ratelimit.localcache.expiredCount': 'total',
  'ratelimit.localcache.evacuateCount': 'total',
  'ratelimit.localcache.overwriteCount': 'total',
  'ratelimit.statistics.rolled_up': 'total',
  'ratelimit.pipeline.window_size': 'largest',
  // A time.
  'ratelimit.localcache.averageAccessTime': 'mean',
};

/**
 * The gauges of the workers in the registry of the primary. A gauge that the primary has itself is that of the instance: what
 * workers report under its name is ignored, except for the totals, to which they are added.
 */
export class MergedGauges {
  readonly #statistics: Statistics;
  readonly #gauges = new Map<string, MergedGauge | undefined>();

  constructor(statistics: Statistics) {
    this.#statistics = statistics;
  }

  /** The gauge that merges those of this name; undefined when it is the primary's. */
  gauge(name: string, tags: Tags): MergedGauge | undefined {
    if (this.#gauges.has(name)) return this.#gauges.get(name);
    const merging = MERGING[name] ?? 'sum';
    const own = [...this.#statistics.gauges].find((gauge) => gauge.name === name);
    const merged = own === undefined || merging === 'total' ? new MergedGauge(merging, own?.read) : undefined;
    this.#gauges.set(name, merged);
    if (merged !== undefined) this.#statistics.gauge(name, () => merged.read(), tags);
    return merged;
  }
}

/** The values of one gauge in the workers that run. */
export class MergedGauge {
  readonly #merging: Merging;
  readonly #own: () => number;
  readonly #values = new Map<object, number>();
  #ofEnded = 0;

  constructor(merging: Merging, own: () => number = () => 0) {
    this.#merging = merging;
    this.#own = own;
  }

  /** @param worker identifies the worker */
  set(worker: object, value: number): void {
    this.#values.set(worker, value);
  }

  /** The worker has ended. */
  remove(worker: object): void {
    if (this.#merging === 'total') this.#ofEnded += this.#values.get(worker) ?? 0;
    this.#values.delete(worker);
  }

  read(): number {
    const values = [...this.#values.values()];
    if (this.#merging === 'largest') return Math.max(0, ...values);
    if (this.#merging === 'mean') return mean(values.filter((value) => value > 0));
    return values.reduce((sum, value) => sum + value, this.#own() + this.#ofEnded);
  }
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
