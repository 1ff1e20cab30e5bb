import type { OffenderSummary } from '../../limiter/offender';

/** Where the operators' API finds the callers that are limited most. */
export interface OffenderSource {
  /** Of the current and the previous period of OFFENDERS_WINDOW; without any when they are not counted. */
  summary(): Promise<OffenderSummary>;
}
