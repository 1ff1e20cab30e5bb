/**
 * The statistics of one key of the rules, in hits. Plain numbers instead of counters, because a decision adds to
 * several of them.
 */
export class RuleStatistics {
  totalHits = 0;
  overLimit = 0;
  nearLimit = 0;
  /**
   * Hits of `nearLimit` that are not in `withinLimit`: they still fit, but their call as a whole is over the limit.
   */
  nearLimitPartial = 0;
  withinLimit = 0;
  overLimitWithLocalCache = 0;
  shadowMode = 0;
  totalNegativeHits = 0;
  /** Calls of `totalHits`: a call may have several hits, or none. */
  calls = 0;
  /** Calls that asked whether anything was left, without hits; and those that were denied. */
  asks = 0;
  asksDenied = 0;
  /** Blocks that calls have started, not hits. */
  blocks = 0;
  /** Descriptors of a domain without rules: the key is the domain. */
  domainNotFound = 0;

  /**
   * @param name the full name of the key, escaped, without the name of the statistic
   * @param rollUp for a key with request values: the key that counts instead when there are too many, unescaped
   * @param window of a limit of a rule with `rate_limits`: the window with which the name ends, such as `5minute`
   */
  constructor(
    readonly name: string,
    readonly rollUp?: string,
    readonly window?: string,
  ) {}

  /** The statistics that are not 0, each with its full name. */
  *entries(): IterableIterator<readonly [name: string, value: number]> {
    for (const [stat, field] of RULE_STATS) {
      if (this[field] !== 0) yield [`${this.name}.${stat}`, this[field]];
    }
  }
}

/** The statistics of a rule: the name of each, and its field. */
export const RULE_STATS = [
  ['total_hits', 'totalHits'],
  ['over_limit', 'overLimit'],
  ['near_limit', 'nearLimit'],
  ['within_limit', 'withinLimit'],
  ['over_limit_with_local_cache', 'overLimitWithLocalCache'],
  ['shadow_mode', 'shadowMode'],
  ['total_negative_hits', 'totalNegativeHits'],
  ['domain_not_found', 'domainNotFound'],
  ['near_limit_partial', 'nearLimitPartial'],
  ['asks', 'asks'],
  ['asks_denied', 'asksDenied'],
  ['blocks', 'blocks'],
] as const satisfies readonly (readonly [stat: string, field: keyof RuleStatistics])[];

/** What workers report of a rule: also what no output of statistics has. */
export const RULE_COUNTS = [...RULE_STATS, ['calls', 'calls']] as const;
