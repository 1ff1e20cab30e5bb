import { DEFAULT_BUCKETS, DEFAULT_SUMMARY } from './built-in-mapping';
import type { Observer } from './mapping';
import type { DocumentMap } from './mapping-document';

/** The keys that {@link readObserverOptions} reads. */
export const OBSERVER_KEYS: readonly string[] = [
  'observer_type',
  'timer_type',
  'buckets',
  'quantiles',
  'histogram_options',
  'summary_options',
];

/** The options of timers for both kinds of observer, since a mapping may inherit the one and change the other. */
export interface ObserverOptions {
  readonly kind: Observer['kind'];
  readonly buckets: readonly number[];
  readonly quantiles: readonly number[];
  readonly maxAge: number;
}

export const DEFAULT_OBSERVER_OPTIONS: ObserverOptions = { ...DEFAULT_SUMMARY, buckets: DEFAULT_BUCKETS };

export function observerOf({ kind, buckets, quantiles, maxAge }: ObserverOptions): Observer {
  return kind === 'histogram' ? { kind, buckets } : { kind, quantiles, maxAge };
}

/** Reads the options in their present form, or in the older one directly in the map; what is absent is inherited. */
export function readObserverOptions(map: DocumentMap, inherited: ObserverOptions): ObserverOptions {
  const kinds = ['histogram', 'summary'] as const;
  const histogram = map.map('histogram_options');
  histogram.allowOnly(['buckets', 'native_histogram_bucket_factor', 'native_histogram_max_buckets']);
  const summary = map.map('summary_options');
  summary.allowOnly(['quantiles', 'max_age', 'age_buckets', 'buf_cap']);
  const kind = map.choice('observer_type', kinds) ?? map.choice('timer_type', kinds) ?? inherited.kind;
  const buckets = readBuckets(histogram) ?? readBuckets(map) ?? inherited.buckets;
  const quantiles = readQuantiles(summary) ?? readQuantiles(map) ?? inherited.quantiles;
  return { kind, buckets, quantiles, maxAge: summary.duration('max_age') ?? inherited.maxAge };
}

function readBuckets(map: DocumentMap): readonly number[] | undefined {
  const buckets = map.numbers('buckets');
  if (buckets === undefined || buckets.length === 0) return undefined;
  if (buckets.some((bound, index) => index > 0 && bound <= (buckets[index - 1] as number))) {
    map.fail('buckets', 'each bucket must be larger than the previous one');
  }
  // The infinite bucket is always written.
  return buckets.filter(Number.isFinite);
}

function readQuantiles(map: DocumentMap): readonly number[] | undefined {
  const quantiles = map.maps('quantiles').map((item) => {
    item.allowOnly(['quantile', 'error']);
    const quantile = item.number('quantile') ?? item.fail('quantile', 'each item of quantiles requires quantile');
    if (quantile < 0 || quantile > 1) item.fail('quantile', `${quantile} is not between 0 and 1`);
    return quantile;
  });
  return quantiles.length === 0 ? undefined : quantiles;
}
