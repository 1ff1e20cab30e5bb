import { LOADS, type LoadName } from './loads';

/** The titles of the stores by the name that `--only` takes. */
export const STORES = {
  memory: 'memory',
  redis: 'Redis',
  'redis-cluster': 'Redis Cluster, 3 nodes',
  memcached: 'memcached',
} as const;

export type StoreName = keyof typeof STORES;

export interface Scenario {
  /** As in `--only`, for example `redis/10k-keys`. */
  readonly name: string;
  readonly load: LoadName;
  readonly store: StoreName;
}

const COUNTED = ['hot-key', '10k-keys', '3-descriptors', '10-descriptors'] as const;
const ON_ONE_SERVER = [...COUNTED, '10k-keys-2-workers', '1m-keys', 'over-limit', 'json', 'tls'] as const;

/** The loads that are measured on each store. `unlimited`, `json` and `tls` hardly depend on it. */
const MEASURED: Readonly<Record<StoreName, readonly LoadName[]>> = {
  memory: [...ON_ONE_SERVER, 'unlimited'],
  redis: [...ON_ONE_SERVER, 'over-limit-cached'],
  'redis-cluster': COUNTED,
  memcached: ['hot-key', '10k-keys', '1m-keys', '3-descriptors', 'over-limit', 'over-limit-cached'],
};

export const SCENARIOS: readonly Scenario[] = (Object.keys(STORES) as StoreName[]).flatMap((store) =>
  MEASURED[store].map((load) => ({ name: `${store}/${load}`, load, store })),
);

export function titleOf({ load, store }: Pick<Scenario, 'load' | 'store'>): string {
  return `${STORES[store]}, ${LOADS[load].title}`;
}
