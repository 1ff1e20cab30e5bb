/** The stores by the name that `--only` takes. */
export const STORES = {
  memory: { title: 'memory' },
  redis: { title: 'Redis' },
  'redis-cluster': { title: 'Redis Cluster, 3 nodes' },
  'redis-1ms': { title: 'Redis, 1 ms away' },
  memcached: { title: 'memcached' },
} as const;

export type StoreName = keyof typeof STORES;
