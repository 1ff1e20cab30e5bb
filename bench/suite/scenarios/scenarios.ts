import { LOADS, type LoadName } from './loads';
import { STORES, type StoreName } from './stores';

export interface Scenario {
  /** As in `--only`, for example `redis/10k-keys`. */
  readonly name: string;
  readonly load: LoadName;
  readonly store: StoreName;
}

/** The loads that are measured on each store. `unlimited`, `json` and `tls` hardly depend on it. */
const MEASURED: Readonly<Record<StoreName, readonly LoadName[]>> = {
  memory: [
    'hot-key',
    '10k-keys',
    '10k-keys-2-workers',
    '1m-keys',
    '3-descriptors',
    '10-descriptors',
    'over-limit',
    'unlimited',
    'json',
    'tls',
  ],
  redis: [
    'hot-key',
    '10k-keys',
    '10k-keys-2-workers',
    '1m-keys',
    '3-descriptors',
    '10-descriptors',
    'over-limit',
    'over-limit-cached',
    'json',
    'tls',
  ],
  'redis-cluster': ['hot-key', '10k-keys', '3-descriptors', '10-descriptors'],
  'redis-1ms': ['hot-key', '10k-keys', '3-descriptors'],
  memcached: ['hot-key', '10k-keys', '1m-keys', '3-descriptors', 'over-limit', 'over-limit-cached'],
};

export const SCENARIOS: readonly Scenario[] = (Object.keys(STORES) as StoreName[]).flatMap((store) =>
  MEASURED[store].map((load) => ({ name: `${store}/${load}`, load, store })),
);

export function titleOf({ load, store }: Scenario): string {
  return `${STORES[store].title}, ${LOADS[load].title}`;
}
