import { type Answers, type Attack, type Target, concurrently } from '../peers';

const RULES = {
  'reserved.yaml': `domain: reserved
descriptors:
  - { key: user, rate_limit: { unit: year, requests_per_unit: 1000000 } }
  - { key: quota, quota_mode: true, rate_limit: { unit: year, requests_per_unit: 10 } }
  - { key: room, quota_mode: true, rate_limit: { unit: year, requests_per_unit: 1000000 } }
`,
};

interface Call {
  readonly entry?: string;
  readonly hits?: string;
  readonly domain?: string;
  readonly id?: string;
}

/** Makes a call, and returns its status. */
async function call({ weir }: Target, method: string, path: string, content?: unknown): Promise<string> {
  const init = content === undefined ? { method } : { method, body: JSON.stringify(content) };
  const response = await weir.http(`/v1/reservations${path}`, init);
  await response.arrayBuffer();
  return String(response.status);
}

function reserve(target: Target, { entry = 'user', hits = '1', domain = 'reserved', ...more }: Call): Promise<string> {
  const descriptors = [{ entries: [{ key: entry, value: 'x' }], hitsAddend: hits }];
  // Quotas deny together: with one that has room, one that is used up denies nothing.
  if (entry === 'quota') descriptors.push({ entries: [{ key: 'room', value: 'x' }], hitsAddend: '1' });
  return call(target, 'POST', '', { domain, descriptors, ttl: '3600s', onExpiry: 'cancel', ...more });
}

/** Reserves so often, and cancels each at once. */
async function cancelled(target: Target, answers: Answers, more: Call & { count: number }): Promise<void> {
  await concurrently(more.count, 50, async (at) => {
    const { count: _, ...own } = more;
    answers.add(await reserve(target, { ...own, id: `r${at}` }));
    answers.add(await call(target, 'DELETE', `/r${at}`));
  });
}

/** Reserves so often, and leaves it at that. */
async function left(target: Target, answers: Answers, { count, ...own }: Call & { count: number }): Promise<void> {
  await concurrently(count, 50, async () => void answers.add(await reserve(target, own)));
}

/** Reservations that are to take what others need. */
export const RESERVATIONS = {
  '2,000 reservations at once, with Redis': {
    rules: RULES,
    store: 'redis',
    run: async (target, answers) => {
      await concurrently(2_000, 2_000, async () => void answers.add(await reserve(target, {})));
      const opened = (await target.weir.statistics()).get('ratelimit.redis_pool.cx_total')!;
      answers.add(opened <= 100 ? '100 connections to Redis at most' : `${opened} connections to Redis`);
    },
  },
  '20,000 reservations that are cancelled at once': {
    rules: RULES,
    run: (target, answers) => cancelled(target, answers, { count: 20_000 }),
  },
  '20,000 reservations that no limit needs, of a domain without rules': {
    rules: RULES,
    run: async (target, answers) => {
      await left(target, answers, { count: 20_000, domain: 'unknown' });
      answers.add(await reserve(target, {}));
    },
  },
  '11,000 reservations of 0 hits on one counter, with Redis': {
    rules: RULES,
    store: 'redis',
    run: async (target, answers) => {
      await left(target, answers, { count: 11_000, hits: '0' });
      answers.add(await reserve(target, {}));
    },
  },
  '50 reservations of 2^53 − 1 hits on a quota that is used up, which are cancelled': {
    rules: RULES,
    run: async (target, answers) => {
      answers.add(await reserve(target, { entry: 'quota', hits: '10', id: 'used' }));
      await cancelled(target, answers, { count: 50, entry: 'quota', hits: String(Number.MAX_SAFE_INTEGER) });
      answers.add(`${await usedOf(target, 'quota')} used`);
    },
  },
} as const satisfies Record<string, Attack>;

/** The present count of a counter. */
async function usedOf({ weir }: Target, key: string): Promise<number> {
  const answer = await weir.debug(`/api/counters?domain=reserved&descriptor=${key}=x`);
  return (JSON.parse(answer) as { readonly count: number }).count;
}
