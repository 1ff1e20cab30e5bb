import { X509Certificate } from 'node:crypto';
import { type Observable, type SchedulerLike, asyncScheduler, filter, map, throttleTime, timer } from 'rxjs';

/** When a certificate is valid, in milliseconds since 1970. */
export interface Validity {
  readonly from: number;
  readonly until: number;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const LONGEST_LEAD = 30 * DAY;

/** The validity of the first certificate of a chain in PEM format. */
export function validityOf(chain: string): Validity {
  const { validFrom, validTo } = new X509Certificate(chain);
  return { from: Date.parse(validFrom), until: Date.parse(validTo) };
}

/**
 * Emits the milliseconds that are left, negative after the expiry, from 30 days before a certificate expires: on subscribe or when
 * that time comes, then once a day. Certificates that are valid for less than 90 days are renewed later: for these it is a third of
 * their validity. Never completes.
 */
export function expiryWarnings(
  { from, until }: Validity,
  scheduler: SchedulerLike = asyncScheduler,
): Observable<number> {
  const lead = Math.min(LONGEST_LEAD, (until - from) / 3);
  return timer(0, HOUR, scheduler).pipe(
    map(() => until - scheduler.now()),
    filter((left) => left <= lead),
    throttleTime(DAY, scheduler),
  );
}
