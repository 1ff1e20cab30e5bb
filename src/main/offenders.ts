import { Offenders } from '../limiter/offenders/offenders';
import type { Settings } from '../settings/settings';
import type { OffenderSource } from '../streams/ports/offender-source';

/** Where calls over their limits are counted; undefined with OFFENDERS_SIZE=0. */
export function offendersOf({ offendersSize, offendersWindow, cacheKeyPrefix }: Settings): Offenders | undefined {
  if (offendersSize === 0) return undefined;
  return new Offenders({ capacity: offendersSize, windowSeconds: offendersWindow / 1000, cacheKeyPrefix });
}

/** The callers that are limited most at present; none when they are not counted. */
export function offenderSource(offenders: Offenders | undefined): OffenderSource {
  return { top: async (query) => offenders?.top(query, Math.floor(Date.now() / 1000)) ?? [] };
}
