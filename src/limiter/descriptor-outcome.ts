import { plainStatisticsKey } from '../rules/statistics-key';
import type { Resolution, ResolutionKind } from './resolution';

/** Why a descriptor has its code. */
export type OutcomeReason =
  | Exclude<ResolutionKind, 'limited'>
  | 'within_limit'
  /** In shadow mode, the code is OK nevertheless. */
  | 'over_limit'
  /** The local cache knows the counter to be over its limit, so that it was not counted. */
  | 'over_limit_in_local_cache'
  /** Negative hits were subtracted, which is always OK. */
  | 'negative_hits';

/** How the code of a descriptor came about, for what reports it: logs, metadata, the operators' API. */
export interface DescriptorOutcome {
  readonly reason: OutcomeReason;
  /**
   * The path of the rule that matches, as `/rlconfig` shows it: `domain.key_value.key2`. Undefined without one, and for a limit
   * that was sent with the request.
   */
  readonly rule: string | undefined;
  /** The count after the call; undefined when nothing was counted. */
  readonly count: number | undefined;
  /** The rule that limits the descriptor is in shadow mode. */
  readonly isShadow: boolean;
}

/** The outcome of a descriptor of a decision that has its verdict. */
export function outcomeOf({ kind, limited, rule }: Resolution): DescriptorOutcome {
  if (limited === undefined || kind !== 'limited') {
    return { reason: kind as OutcomeReason, rule: rule && plainStatisticsKey(rule), count: undefined, isShadow: false };
  }
  const { applied, overByLocalCache, isNegative, after } = limited;
  return {
    reason: overByLocalCache
      ? 'over_limit_in_local_cache'
      : isNegative
        ? 'negative_hits'
        : after > applied.requestsPerUnit
          ? 'over_limit'
          : 'within_limit',
    rule: rule && applied.path,
    count: overByLocalCache ? undefined : after,
    isShadow: applied.shadowMode,
  };
}
