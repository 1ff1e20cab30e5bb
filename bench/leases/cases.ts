import type { FleetCase } from './simulation';

/** Fleets, by title, each with the demands for which it is simulated. */
export type Cases = Readonly<Record<string, FleetCase & { readonly demands: readonly number[] }>>;

/** Of the twenty instances, the first makes 28 % of the calls, and the last 1.4 %. */
const UNEVEN = { instances: 20, isUneven: true, trip: 1, demands: [0.9, 1.02, 2] };
const TEN_SECONDS = { ...UNEVEN, requestsPerUnit: 10_000, windowSeconds: 10, windows: 3 };
const MINUTE = { ...UNEVEN, windowSeconds: 60, windows: 1 };
const REGIONS = { instances: 30, trip: 80, demands: [0.9, 1.02, 2] };

/** Those of the fast suite. */
export const QUICK: Cases = {
  '20 uneven instances, 1,000 per second': { ...UNEVEN, requestsPerUnit: 1_000, windowSeconds: 1, windows: 20 },
  '20 uneven instances, 10,000 per 10 s': TEN_SECONDS,
};

/** Those of the table. */
export const CASES: Cases = {
  ...QUICK,
  '20 uneven instances, 10,000 per second': { ...UNEVEN, requestsPerUnit: 10_000, windowSeconds: 1, windows: 5 },
  '20 uneven instances, 60,000 per minute': { ...MINUTE, requestsPerUnit: 60_000 },
  '20 uneven instances, 10,000 per 10 s, whose calls end after 6 s': { ...TEN_SECONDS, until: 0.6, demands: [2] },
  '10 instances, 10,000 per second': {
    ...{ instances: 10, trip: 1, requestsPerUnit: 10_000, windowSeconds: 1, windows: 5, demands: [2] },
  },
  '1 instance, 100,000 per minute': { ...MINUTE, instances: 1, requestsPerUnit: 100_000, demands: [0.18] },
  '20 instances, 10,000 per minute, few calls each': {
    ...{ ...MINUTE, isUneven: false, requestsPerUnit: 10_000, demands: [0.96] },
  },
  '30 instances, 80 ms to the store, 10,000 per second': {
    ...{ ...REGIONS, requestsPerUnit: 10_000, windowSeconds: 1, windows: 5 },
  },
  '30 instances, 80 ms to the store, 100,000 per 10 s': {
    ...{ ...REGIONS, requestsPerUnit: 100_000, windowSeconds: 10, windows: 1 },
  },
  '20 uneven instances, sliding window, 10,000 per 10 s': { ...TEN_SECONDS, algorithm: 'sliding_window' },
  '20 uneven instances, bucket of 10,000, 1,000 per second': { ...TEN_SECONDS, algorithm: 'token_bucket' },
  '20 uneven instances, bucket of 1,000, 1,000 per second': {
    ...{ ...TEN_SECONDS, algorithm: 'token_bucket', burst: 1_000 },
  },
};
