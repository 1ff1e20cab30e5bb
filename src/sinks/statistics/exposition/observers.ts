import type { Observer } from './mapping';

/** The buckets of a histogram that names none, as every client library of Prometheus has them; made for seconds. */
export const USUAL_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const MAX_AGE = 10 * 60_000;

/** The summary of a timer that nothing else is said of. */
export const USUAL_SUMMARY: Observer & { readonly kind: 'summary' } = {
  kind: 'summary',
  quantiles: [{ share: 0.5 }, { share: 0.9 }, { share: 0.99 }],
  maxAge: MAX_AGE,
};
