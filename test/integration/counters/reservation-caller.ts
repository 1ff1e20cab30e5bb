import { NEVER, asapScheduler } from 'rxjs';
import { DEFAULT_OPTIONS } from '../../../src/limiter/options';
import { Limiter } from '../../../src/limiter/limiter';
import { Code } from '../../../src/limiter/verdict';
import { StoredReservations } from '../../../src/reservations/reservations';
import { Statistics } from '../../../src/statistics/statistics';
import type { OnExpiry, ReservationStore, Reservations } from '../../../src/streams/ports/reservations';
import { descriptor, request } from '../../support/data/requests';
import { atATime, limit, rulesetOf, unlimited } from '../../support/data/rules';

export const LIMITS = { user: 100, team: 150, tried: 10, free: Infinity };
export type Name = keyof typeof LIMITS;
export const NAMES = Object.keys(LIMITS) as readonly Name[];
export const RULES = rulesetOf(
  'd',
  { key: 'user', rateLimit: limit(LIMITS.user, 'MINUTE') },
  { key: 'team', rateLimit: limit(LIMITS.team, 'MINUTE', { unitMultiplier: 2 }) },
  { key: 'tried', rateLimit: limit(LIMITS.tried, 'MINUTE'), shadowMode: true },
  { key: 'both', rateLimits: [limit(10, 'MINUTE'), limit(100, 'HOUR')] },
  {
    key: 'blocks',
    rateLimit: limit(10, 'MINUTE', { blockFor: { first: 60, factor: 1, most: 60, forgottenAfter: 0 } }),
  },
  { key: 'quotas', rateLimits: [limit(10, 'MINUTE'), limit(100, 'HOUR')], quotaMode: true },
  { key: 'year', rateLimit: limit(10, 'YEAR', { calendar: { timeZone: 'Asia/Tokyo', startsOn: 1 } }) },
  { key: 'unlimited', rateLimit: unlimited() },
  { key: 'second', rateLimit: limit(10, 'SECOND') },
  { key: 'first', rateLimit: limit(10, 'MINUTE'), quotaMode: true },
  { key: 'other', rateLimit: limit(20, 'MINUTE'), quotaMode: true },
  { key: 'slid100', rateLimit: limit(100, 'MINUTE', { algorithm: 'sliding_window' }) },
  { key: 'bucket100', rateLimit: limit(100, 'MINUTE', { algorithm: 'token_bucket' }) },
  { key: 'fast', rateLimit: limit(10, 'SECOND', { algorithm: 'token_bucket', burst: 100 }) },
  { key: 'slow', rateLimit: limit(100, 'HOUR', { algorithm: 'token_bucket' }) },
  // A hit takes no whole number of microseconds.
  { key: 'odd', rateLimit: limit(7, 'MINUTE', { algorithm: 'token_bucket', burst: 90 }) },
  { key: 'all100', rateLimits: [limit(100, 'MINUTE'), limit(300, 'HOUR')], allOrNothing: true },
  {
    key: 'mixed',
    rateLimits: [
      limit(40, 'MINUTE', { algorithm: 'token_bucket' }),
      limit(60, 'HOUR', { algorithm: 'sliding_window' }),
    ],
  },
  { key: 'tokens', rateLimit: limit(60, 'MINUTE', { algorithm: 'token_bucket', burst: 30, postpaid: true }) },
  { key: 'usage', rateLimit: limit(100, 'MINUTE', { algorithm: 'sliding_window', postpaid: true }) },
  { key: 'closed', rateLimit: limit(0, 'MINUTE') },
  { key: 'three', rateLimit: atATime(3) },
  { key: 'jobs', rateLimits: [limit(100, 'MINUTE'), atATime(2)] },
  { key: 'watched', rateLimit: atATime(1), shadowMode: true },
  { key: 'most', rateLimit: atATime(10_000) },
  {
    key: 'several',
    rateLimits: [
      limit(10, 'MINUTE', { algorithm: 'sliding_window' }),
      limit(100, 'HOUR', { algorithm: 'token_bucket' }),
      limit(1_000, 'DAY'),
    ],
    allOrNothing: true,
  },
);
export const WINDOW: Readonly<Record<Name, number>> = { user: 60_000, team: 120_000, tried: 60_000, free: 1 };
/** Five seconds before the windows end. */
export const STARTS_AT = 1_700_000_035_000;

/** What a store needs for what is due, which it does not look for. */
export const DUE = { dueKey: 'due', connected$: NEVER, scheduler: asapScheduler, onGivenBack: () => undefined };

/** Reservations at a time that the test sets, with keys of their own. */
export class Caller {
  now = STARTS_AT;
  readonly reservations: Reservations;
  readonly freed: string[] = [];
  readonly statistics = new Statistics(100);

  constructor(
    readonly store: ReservationStore | string,
    readonly cacheKeyPrefix: string,
  ) {
    const options = { ...DEFAULT_OPTIONS, cacheKeyPrefix };
    this.reservations = new StoredReservations({
      limiter: new Limiter(options, this.statistics),
      options,
      ruleset: () => RULES,
      store,
      statistics: this.statistics,
      now: () => this.now,
      onFree: (key) => this.freed.push(key),
    });
  }

  /** The hits that are left of each limit, or what went wrong. */
  async reserve(
    id: string,
    uses: readonly { name: string; hits: number }[],
    { ttl = 5_000, onExpiry = 'settle' }: Terms = {},
  ) {
    const descriptors = uses.map(({ name, hits }) => descriptor(`${name}=x`, { hitsAddend: hits }));
    const call = { request: request('d', descriptors), ttl, id, onExpiry };
    return this.reservations.reserve(call).then(({ id: given, verdict: { overallCode, statuses } }) => {
      const left = statuses.map(({ limitRemaining }) => limitRemaining);
      return `${given === undefined ? 'denied' : 'reserved'} ${overallCode === Code.OK} ${left.join()}`;
    }, codeOf);
  }

  settle(id: string, hits: number | readonly number[]) {
    return this.reservations.settle(id, hits).then(endOf, codeOf);
  }

  cancel(id: string) {
    return this.reservations.cancel(id).then(endOf, codeOf);
  }
}

export interface Terms {
  readonly ttl?: number;
  readonly onExpiry?: OnExpiry;
}

function codeOf({ code }: { readonly code: string }): string {
  return code;
}

function endOf({ state, descriptors }: Awaited<ReturnType<Reservations['cancel']>>): string {
  return `${state} ${descriptors.map(({ reserved, hits, added }) => `${reserved}>${hits}:${added}`).join()}`;
}
