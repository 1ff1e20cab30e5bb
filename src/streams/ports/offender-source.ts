import type { OffenderSummary } from '../../limiter/offender';

/** Where the operators' API finds the callers that are limited most. */
export interface OffenderSource {
  /** The callers limited in the current and the previous period of OFFENDERS_WINDOW; none when they are not counted. */
  summary(): Promise<OffenderSummary>;
}
