import type { Offender, OffenderQuery } from '../../limiter/offender';

/** Where the operators' API finds the callers that are limited most. */
export interface OffenderSource {
  /** Of the current and the previous period of OFFENDERS_WINDOW, those with the most limited calls first; empty when they are not counted. */
  top(query: OffenderQuery): Promise<readonly Offender[]>;
}
