import { DecisionError } from '../../src/counting/decision-error';
import { DEFAULT_OPTIONS, type LimiterOptions } from '../../src/limiter/options';
import type { Limiter } from '../../src/limiter/limiter';
import type { RateLimitRequest } from '../../src/limiter/request';
import { StoredReservations } from '../../src/reservations/reservations';
import { descriptor, request } from '../support/data/requests';
import { type RuleSketch, limit, rulesetOf, unlimited } from '../support/data/rules';
import { TestService } from '../support/data/service';
import { readMarkdown } from './markdown-files';
import { rulesetOf as rulesetOfFile } from './play-decisions';

/** What an example has in its column "With". */
interface Scene {
  readonly rule?: Partial<RuleSketch>;
  readonly options?: Partial<LimiterOptions>;
  readonly denyUnmatched?: boolean;
  /** Another descriptor of the calls. */
  readonly other?: string;
  readonly isReserved?: boolean;
  readonly hasFailed?: boolean;
  /** The end of the statistics key of the rule. */
  readonly suffix?: string;
}

const LIMIT = limit(10, 'MINUTE');
const SCENES: Readonly<Record<string, Scene>> = {
  '': {},
  '`LOCAL_CACHE_SIZE_IN_BYTES=100000`': { options: { localCacheBytes: 100_000 } },
  '`algorithm: sliding_window`': { rule: { rateLimit: { ...LIMIT, algorithm: 'sliding_window' } } },
  '`all_or_nothing: true`': {
    rule: { allOrNothing: true, rateLimits: [limit(5, 'SECOND'), LIMIT] },
    suffix: '.minute',
  },
  reservations: { isReserved: true },
  '`shadow_mode: true`': { rule: { shadowMode: true } },
  '`unlimited: true`': { rule: { rateLimit: unlimited() } },
  '`on_unmatched: deny`': { denyUnmatched: true },
  '`STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true`': { options: { stopIncrementWhenOverLimit: true }, other: 'over=x' },
  '`STORE_FAILURE_POLICY=error`': { hasFailed: true },
  '`STORE_FAILURE_POLICY=deny`': { hasFailed: true, options: { onStoreFailure: 'deny' } },
};

type Example = readonly [place: string, scene: Scene | undefined, hits: readonly number[], numbers: readonly number[]];

const EXAMPLES = Array.from(
  readMarkdown('docs/architecture.md').matchAll(/^\| ([^|]+) \| ([^|]*?) ?\| `([-\d, ]+)` \|((?: \d+ \|){5})$/gm),
  ([, what = '', given = '', hits = '', numbers = '']): Example => [
    `${what} (${given})`,
    SCENES[given],
    hits.split(', ').map(Number),
    Array.from(numbers.matchAll(/\d+/g), Number),
  ],
);

/** Calls a service with these hits, and returns what its statistics have. */
async function play(scene: Scene, hits: readonly number[]): Promise<ReadonlyMap<string, number>> {
  const { rule = {}, options = {}, denyUnmatched = false, other, isReserved = false, hasFailed = false } = scene;
  const ruleset = denyUnmatched
    ? rulesetOfFile('domain: d\ndescriptors: []\non_unmatched: deny\n').ruleset
    : rulesetOf('d', { key: 'k', rateLimit: LIMIT, ...rule }, { key: 'over', rateLimit: limit(0, 'DAY') });
  const all = { ...DEFAULT_OPTIONS, ...options };
  // At the start of a minute.
  const service = new TestService(ruleset, all, 1_700_000_040_000, 0);
  const reservations = new StoredReservations({
    ...{ limiter: service.limiter, options: all, ruleset: () => ruleset, store: service.counters },
    ...{ statistics: service.statistics, now: () => service.now, onFree: () => undefined },
  });
  try {
    for (const [index, each] of hits.entries()) {
      const own = descriptor('k=x', { hitsAddend: Math.abs(each), isNegativeHits: each < 0 });
      const call = request('d', other === undefined ? [own] : [own, other]);
      if (isReserved) await reservations.reserve({ request: call, ttl: 1000, id: `r-${index}`, onExpiry: 'settle' });
      else if (hasFailed) fail(service.limiter, call, ruleset, service.now);
      else service.decide(call);
    }
    return new Map(service.statistics.entries());
  } finally {
    await service.close();
  }
}

/** A call that the store has not counted. */
function fail(limiter: Limiter, call: RateLimitRequest, ...given: [Parameters<Limiter['begin']>[1], number]): void {
  const decision = limiter.begin(call, ...given);
  const isAnswered = decision.operations.every(({ limit: { onStoreFailure } }) => onStoreFailure !== 'error');
  if (!isAnswered) return decision.failed();
  for (const operation of decision.operations) operation.failure = new DecisionError('store_failed', 'failed');
  decision.verdict();
}

describe('the examples of total_hits in docs/architecture.md', () => {
  it('have each setting once', () => {
    expect(EXAMPLES.length).toBeGreaterThan(15);
    expect(new Set(EXAMPLES.map(([, scene]) => scene))).toEqual(new Set(Object.values(SCENES)));
  });

  it.each(EXAMPLES)('%s: the statistics of the rule are these', async (_, scene, hits, expected) => {
    const statistics = await play(scene!, hits);
    const key = scene!.denyUnmatched ? 'on_unmatched_deny' : `k${scene!.suffix ?? ''}`;
    function valueOf(name: string): number {
      return statistics.get(`ratelimit.service.rate_limit.d.${key}.${name}`) ?? 0;
    }
    const [total, within, over, near] = ['total_hits', 'within_limit', 'over_limit', 'near_limit'].map(valueOf);
    expect([total, within, over, total! - within! - over!, near]).toEqual(expected);
    const nearWithin = near! - valueOf('near_limit_partial');
    expect([nearWithin >= 0, nearWithin <= within!]).toEqual([true, true]);
    const cached = scene!.options?.localCacheBytes === undefined ? 0 : hits.at(-1);
    expect(valueOf('over_limit_with_local_cache')).toBe(cached);
    expect(valueOf('shadow_mode')).toBe(scene!.rule?.shadowMode ? over : 0);
    expect(valueOf('total_negative_hits')).toBe(-hits.reduce((sum, each) => sum + Math.min(0, each), 0) || 0);
  });
});
