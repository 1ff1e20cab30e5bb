/** A caller that a rule has limited: the descriptor of its calls. */
export interface Offender {
  readonly domain: string;
  /** The path of the rule, as `/rlconfig` shows it: `domain.key_value.key2`. Empty for limits sent with the request. */
  readonly rule: string;
  /**
   * `key=value,key2=value2`. At a level with `share_threshold` the value is the rule's pattern, because its callers share a counter.
   * A long text is cut off and ends with `…`.
   */
  readonly descriptor: string;
  /** Whether the rule was in shadow mode at the last call: the calls passed. */
  readonly isShadow: boolean;
  /** How many calls were over the limit. At high rates an estimate, from a sample of the calls. */
  readonly limited: number;
  /** At most this many of the calls counted in `limited` are of other descriptors. */
  readonly error: number;
}

/** What a sketch has counted, as plain data: it can be sent between processes. */
export interface OffenderSummary {
  /** Unix seconds: only calls since then are counted. */
  readonly since: number;
  /** How many calls of a descriptor that is not listed may have been limited. */
  readonly floor: number;
  /** Those with the most limited calls first. `key` identifies the descriptor and its rule. */
  readonly offenders: readonly (Offender & { readonly key: string })[];
}

export interface OffenderQuery {
  /** Undefined: of all domains. */
  readonly domain?: string | undefined;
  /** How many are returned at most. */
  readonly limit: number;
}
