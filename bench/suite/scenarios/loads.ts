import { OK, OVER_LIMIT } from '../load/connection';
import { BLOCKED_KEY, COUNTED_KEYS, UNLIMITED_KEY } from './rules';

/** What the calls of a scenario ask for. */
export interface Load {
  readonly title: string;
  /** The keys of the descriptors of each call. */
  readonly descriptors: readonly string[];
  /** Different values of each descriptor. */
  readonly values: number;
  /** The overall code of every answer, once every value has been counted. */
  readonly expected: number;
  readonly protocol: 'grpc' | 'grpc over TLS' | 'json';
  /** Settings of the service in addition to those of the store. */
  readonly settings?: Readonly<Record<string, string>>;
}

const MANY = 10_000;

function counted(title: string, descriptors: number, values: number): Load {
  return { title, descriptors: COUNTED_KEYS.slice(0, descriptors), values, expected: OK, protocol: 'grpc' };
}

const blocked: Load = {
  title: 'over limit',
  descriptors: [BLOCKED_KEY],
  values: MANY,
  expected: OVER_LIMIT,
  protocol: 'grpc',
};

/** The loads by the name that `--only` takes. */
export const LOADS = {
  'hot-key': counted('one hot key', 1, 1),
  '10k-keys': counted('10,000 keys', 1, MANY),
  '1m-keys': counted('1,000,000 keys', 1, 1_000_000),
  '10k-keys-2-workers': { ...counted('10,000 keys, 2 workers', 1, MANY), settings: { WORKERS: '2' } },
  '3-descriptors': counted('3 descriptors', 3, MANY),
  '10-descriptors': counted('10 descriptors', 10, MANY),
  'over-limit': blocked,
  'over-limit-cached': {
    ...blocked,
    title: 'over limit, local cache',
    settings: { LOCAL_CACHE_SIZE_IN_BYTES: String(16 * 1_024 * 1_024) },
  },
  unlimited: { ...counted('unlimited', 1, MANY), descriptors: [UNLIMITED_KEY] },
  json: { ...counted('/json', 1, MANY), protocol: 'json' },
  tls: { ...counted('gRPC over TLS', 1, MANY), protocol: 'grpc over TLS' },
} as const satisfies Readonly<Record<string, Load>>;

export type LoadName = keyof typeof LOADS;

export function protocolOf({ protocol }: Load): 'grpc' | 'json' {
  return protocol === 'json' ? 'json' : 'grpc';
}
