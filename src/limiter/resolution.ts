import type { FailurePolicy } from '../rules/rule-config';
import type { Rule } from '../rules/rule-tree';
import { plainStatisticsKey } from '../rules/statistics-key';
import type { RuleStatistics } from '../statistics/rule-statistics';
import { MOST_REPORTED, type Purpose } from '../counting/algorithms/algorithm';
import type { Limit } from '../counting/limit';
import { type Group, Operation } from '../counting/operation';
import { blockKeyOf } from './cache-key';
import type { DescriptorStatus } from './verdict';

/** A descriptor with the limit that applies to it, during a decision. It is also its operation on the counter. */
export class LimitedDescriptor extends Operation {
  declare readonly limit: Limit;
  declare hits: number;
  declare group: Group | undefined;

  constructor(
    limit: Limit,
    key: string,
    readonly statistics: RuleStatistics,
    /** The hits of the call, which the statistics count whether they are added or not. */
    public callHits: number,
    /** Whether the hits of the call are to be subtracted. */
    public isNegative: boolean,
  ) {
    super(limit, key, isNegative ? -callHits : callHits);
    if (limit.blockFor !== undefined) this.blockKey = blockKeyOf(key, limit);
    if (limit.algorithmName === 'max_concurrent' && !isNegative) this.serve('ask');
  }

  /** The key under which the local cache knows that it is over: that of a block, which outlives windows. */
  get overKey(): string {
    return this.blockKey ?? this.key;
  }

  /** The call does not count if it fits, but asks, or reports. */
  serve(asked: Purpose): void {
    // Open reservations are counted, to which a report adds nothing.
    const purpose = this.limit.algorithmName === 'max_concurrent' ? 'ask' : asked;
    this.purpose = purpose;
    // What asks gives nothing back.
    this.isNegative = false;
    this.callHits = purpose === 'ask' ? 0 : Math.min(MOST_REPORTED, this.callHits);
    this.hits = this.callHits;
  }

  /** The call opens a reservation, which takes what fits, also where other calls ask or report. */
  reserve(): void {
    this.purpose = undefined;
    // Each open reservation is one, whatever its hits are.
    if (this.limit.algorithmName === 'max_concurrent') [this.hits, this.callHits] = [1, 1];
  }

  /** Whether this process has decided it by hits that it held, or by what it knew of a key that it leases. */
  get isLeased(): boolean {
    return this.limit.lease && !this.isSent && this.failure === undefined;
  }

  /** Whether it is over its limit, once that is known. */
  get isOver(): boolean {
    if (this.isKnownOver) return true;
    if (this.outcome !== undefined) return !this.outcome.isAllowed;
    const { countAfter, limit, purpose } = this;
    if (purpose === undefined) return countAfter > limit.requestsPerUnit;
    return countAfter - this.hits >= limit.requestsPerUnit;
  }
}

/** What applies to a descriptor, or why nothing does. */
export type ResolutionKind =
  /** A limit, of a rule or sent with the request. */
  | 'limited'
  /** An unlimited rule. */
  | 'unlimited'
  /** No rule matches, and `on_unmatched` denies that. */
  | 'denied'
  /** The rule that matches has no `rate_limit`. */
  | 'no_limit'
  /** None of the limits of the rule applies at this hour: see `active`. */
  | 'inactive'
  /** Another rule of the request replaces the rule that matches. */
  | 'replaced'
  /** No rule matches. */
  | 'no_match'
  /** No rule names the domain. */
  | 'unknown_domain';

/** The result of the look-up of a descriptor. */
export interface Resolution {
  readonly kind: ResolutionKind;
  /**
   * Undefined unless a limit applies. Of several, the most restrictive one once the decision has its verdict; the first
   * before.
   */
  readonly limited: LimitedDescriptor | undefined;
  /** The limits of a rule with `rate_limits` that apply; undefined for any other rule. */
  readonly limits?: readonly LimitedDescriptor[] | undefined;
  /**
   * The rule that matches, whether it applies or not, or the default; undefined without one, and for a limit override.
   */
  readonly rule: Rule | undefined;
}

/** The result for a descriptor that matches a rule with `rate_limits`. */
export class SeveralLimits implements Resolution {
  readonly kind = 'limited';
  limited: LimitedDescriptor;
  /** The status of each limit, in the order of `limits`; empty until the decision has its verdict. */
  statuses: readonly DescriptorStatus[] = [];

  /** @param limits at least one */
  constructor(
    readonly limits: readonly LimitedDescriptor[],
    readonly rule: Rule,
  ) {
    this.limited = limits[0]!;
  }
}

/** The limits that apply to a descriptor. */
export function limitsOfResolution({ limited, limits }: Resolution): readonly LimitedDescriptor[] {
  if (limits !== undefined) return limits;
  return limited === undefined ? [] : [limited];
}

export const NO_MATCH: Resolution = { kind: 'no_match', limited: undefined, rule: undefined };
export const UNKNOWN_DOMAIN: Resolution = { kind: 'unknown_domain', limited: undefined, rule: undefined };

/** Why a descriptor has its code. */
export type OutcomeReason =
  | Exclude<ResolutionKind, 'limited'>
  | 'within_limit'
  /** In shadow mode, the code is OK nevertheless. */
  | 'over_limit'
  /** The local cache knows the counter to be over its limit, so that it was not counted. */
  | 'over_limit_in_local_cache'
  /** A call before it was over the limit, and has started a block: see `block_for`. */
  | 'blocked'
  /** Negative hits were subtracted, which is always OK. */
  | 'negative_hits'
  /** The store has not counted it, so that the policy for this case has decided. */
  | 'store_unavailable';

/** How the code of a descriptor came about, for what reports it: logs, metadata, the operators' API. */
export interface DescriptorOutcome {
  readonly reason: OutcomeReason;
  /**
   * The path of the rule that matches, as `/rlconfig` shows it: `domain.key_value.key2`. Undefined without one, and for
   * a limit that was sent with the request.
   */
  readonly rule: string | undefined;
  /** The count after the call, with the policy `local` that of this instance; undefined when nothing was counted. */
  readonly count: number | undefined;
  /** The policy that has decided because the store has not counted. */
  readonly policy?: FailurePolicy | undefined;
  /** The rule that limits the descriptor is in shadow mode. */
  readonly isShadow: boolean;
}

/** The outcome of a descriptor of a decision that has its verdict. */
export function outcomeOf({ kind, limited, rule }: Resolution): DescriptorOutcome {
  if (limited === undefined || kind !== 'limited') {
    return { reason: kind as OutcomeReason, rule: rule && plainStatisticsKey(rule), count: undefined, isShadow: false };
  }
  const { limit, isKnownOver, isNegative, countAfter, failure, isOver, outcome } = limited;
  const common = { rule: rule && limit.path, isShadow: limit.shadowMode };
  if (failure !== undefined) {
    const policy = limit.onStoreFailure;
    return { reason: 'store_unavailable', count: policy === 'local' ? countAfter : undefined, policy, ...common };
  }
  return {
    reason: isKnownOver
      ? 'over_limit_in_local_cache'
      : isNegative
        ? 'negative_hits'
        : isOver
          ? outcome?.blockedUntil === undefined || outcome.startsBlock === true
            ? 'over_limit'
            : 'blocked'
          : 'within_limit',
    count: isKnownOver ? undefined : countAfter,
    ...common,
  };
}
