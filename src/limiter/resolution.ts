import type { Rule } from '../rules/rule-tree';
import type { LimitedDescriptor } from './limited-descriptor';

/** What applies to a descriptor, or why nothing does. */
export type ResolutionKind =
  /** A limit, of a rule or sent with the request. */
  | 'limited'
  /** An unlimited rule. */
  | 'unlimited'
  /** The rule that matches has no `rate_limit`. */
  | 'no_limit'
  /** Another rule of the request replaces the rule that matches. */
  | 'replaced'
  /** No rule matches. */
  | 'no_match'
  /** No rule names the domain. */
  | 'unknown_domain';

/** The result of the look-up of a descriptor. */
export interface Resolution {
  readonly kind: ResolutionKind;
  /** Undefined unless a limit applies. */
  readonly limited: LimitedDescriptor | undefined;
  /** The rule that matches, whether it applies or not; undefined without one, and for a limit override. */
  readonly rule: Rule | undefined;
}

export const NO_MATCH: Resolution = { kind: 'no_match', limited: undefined, rule: undefined };
export const UNKNOWN_DOMAIN: Resolution = { kind: 'unknown_domain', limited: undefined, rule: undefined };
