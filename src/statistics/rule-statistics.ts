/**
 * What is counted for one statistics key, in hits (document 1, section 6). Plain numbers, because a decision adds to
 * several of them.
 */
export class RuleStatistics {
  totalHits = 0;
  overLimit = 0;
  nearLimit = 0;
  withinLimit = 0;
  overLimitWithLocalCache = 0;
  shadowMode = 0;
  totalNegativeHits = 0;

  /** @param name the whole name that the statistics stand under, escaped */
  constructor(readonly name: string) {}

  /** The statistics that have moved, each with its whole name. */
  *entries(): IterableIterator<readonly [name: string, value: number]> {
    for (const [stat, field] of RULE_STATS) {
      if (this[field] !== 0) yield [`${this.name}.${stat}`, this[field]];
    }
  }
}

/** The statistics of a rule: what each is called, and where it stands. */
export const RULE_STATS = [
  ['total_hits', 'totalHits'],
  ['over_limit', 'overLimit'],
  ['near_limit', 'nearLimit'],
  ['within_limit', 'withinLimit'],
  ['over_limit_with_local_cache', 'overLimitWithLocalCache'],
  ['shadow_mode', 'shadowMode'],
  ['total_negative_hits', 'totalNegativeHits'],
] as const satisfies readonly (readonly [stat: string, field: keyof RuleStatistics])[];
