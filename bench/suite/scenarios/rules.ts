export const DOMAIN = 'bench';
/** The file that holds {@link RULES}. */
export const RULE_FILE = 'bench.yaml';
/** A limit that no load reaches. */
export const LIMIT = 4_000_000_000;

/** The keys of the descriptors of a call, in this order. */
export const COUNTED_KEYS = [
  'user',
  'account',
  'address',
  'device',
  'session',
  'tenant',
  'region',
  'path',
  'plan',
  'token',
] as const;
/** The key of descriptors that are over their limit from the second hit on. */
export const BLOCKED_KEY = 'blocked';
export const UNLIMITED_KEY = 'free';

/** The rules of every scenario. Counters per day, so that hardly any run sees the beginning of a window. */
export const RULES = `domain: ${DOMAIN}
descriptors:
${COUNTED_KEYS.map((key) => `  - key: ${key}\n    rate_limit: { unit: day, requests_per_unit: ${LIMIT} }\n`).join('')}  - key: ${BLOCKED_KEY}
    rate_limit: { unit: day, requests_per_unit: 1 }
  - key: ${UNLIMITED_KEY}
    rate_limit: { unlimited: true }
`;
