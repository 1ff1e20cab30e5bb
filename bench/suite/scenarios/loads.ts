import type { AlgorithmName } from '../../../src/rules/rule-config';
import { OK, OVER_LIMIT } from '../load/connection';

export const DOMAIN = 'bench';
/** The file that holds the rules. */
export const RULE_FILE = 'bench.yaml';
/**
 * A limit a day that no load reaches, of which a hit takes whole microseconds of a token bucket, as with most limits:
 * 25.
 */
const LIMIT = 3_456_000_000;

/** Other rules than those with one fixed window: with an algorithm, with a block, or with two fixed windows. */
export type RuleKind = AlgorithmName | 'block_for' | 'rate_limits' | 'all_or_nothing';

/** The keys of the descriptors of a call, in this order. */
const COUNTED_KEYS: readonly string[] = 'user account address device session tenant region path plan token'.split(' ');
/** The key of descriptors that are over their limit from the second hit on. */
const BLOCKED_KEY = 'blocked';
const UNLIMITED_KEY = 'free';

/**
 * The rules of every scenario. Counters per day, so that hardly any run sees the beginning of a window.
 *
 * @param kind of the rules whose limits are not reached
 */
export function rulesWith(kind?: RuleKind): string {
  return `domain: ${DOMAIN}
descriptors:
${COUNTED_KEYS.map((key) => `  - key: ${key}\n    ${limitsOf(kind)}\n`).join('')}  - key: ${BLOCKED_KEY}
    rate_limit: { unit: day, requests_per_unit: 1 }
  - key: ${UNLIMITED_KEY}
    rate_limit: { unlimited: true }
`;
}

function limitsOf(kind: RuleKind | undefined): string {
  const day = `unit: day, requests_per_unit: ${LIMIT}`;
  if (kind === 'block_for') return `rate_limit: { ${day}, block_for: 48h }`;
  if (kind !== 'rate_limits' && kind !== 'all_or_nothing') {
    return `rate_limit: { ${day}${kind === undefined ? '' : `, algorithm: ${kind}`} }`;
  }
  const limits = `rate_limits: [{ ${day} }, { unit: year, requests_per_unit: ${LIMIT} }]`;
  return kind === 'rate_limits' ? limits : `${limits}\n    all_or_nothing: true`;
}

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
  /** The header blocks of gRPC calls: as Envoy sends them, or as grpc-go does with deadlines; the default: Envoy. */
  readonly headers?: 'envoy' | 'deadline';
  /** Settings of the service in addition to those of the store. */
  readonly settings?: Settings;
}

/** Settings of the service by name. */
export type Settings = Readonly<Record<string, string>>;

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
  '10-keys': counted('10 hot keys', 1, 10),
  '100-keys': counted('100 hot keys', 1, 100),
  '10k-keys': counted('10,000 keys', 1, MANY),
  '100k-keys': counted('100,000 keys', 1, 100_000),
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
  deadlines: { ...counted('10,000 keys, a new deadline in each call', 1, MANY), headers: 'deadline' },
} as const satisfies Readonly<Record<string, Load>>;

export type LoadName = keyof typeof LOADS;

/** Connections, and the calls in flight on each in a closed loop: the same number of calls with both protocols. */
export function connectionsFor({ protocol }: Load): { readonly connections: number; readonly outstanding: number } {
  // HTTP/1.1 has one call in flight per connection.
  return protocol === 'json' ? { connections: 256, outstanding: 1 } : { connections: 8, outstanding: 32 };
}

export function protocolOf({ protocol }: Load): 'grpc' | 'json' {
  return protocol === 'json' ? 'json' : 'grpc';
}
