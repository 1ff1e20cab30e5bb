/** A caller that a rule has limited: the descriptor of its calls. */
export interface Offender {
  readonly domain: string;
  /** The path of the rule, as `/rlconfig` shows it: `domain.key_value.key2`. Empty for limits sent with the request. */
  readonly rule: string;
  /**
   * `key=value,key2=value2`. At a level with `share_threshold` the value is the rule's pattern, because its callers
   * share a counter. A long text is cut off and ends with `…`.
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
  /** The callers with the most limited calls come first. */
  readonly offenders: readonly ListedOffender[];
}

/** The summary where callers over their limits are not counted. */
export const NO_OFFENDERS: OffenderSummary = { since: 0, floor: 0, offenders: [] };

export interface ListedOffender extends Offender {
  /** Identifies the descriptor and its rule. */
  readonly key: string;
}

export interface OffenderQuery {
  /** Undefined: of all domains. */
  readonly domain?: string | undefined;
  /** How many are returned at most. */
  readonly limit: number;
}

/** The first offenders of a summary. */
export function topOf({ offenders }: OffenderSummary, { domain, limit }: OffenderQuery): readonly Offender[] {
  const ofDomain = domain === undefined ? offenders : offenders.filter((offender) => offender.domain === domain);
  return ofDomain.slice(0, limit).map(({ key: _key, ...offender }) => offender);
}

/** Callers that are sorted in one step, at least. */
const SORTED_AT_ONCE = 250;

/**
 * Merges what several sketches have counted of parts of the calls: of periods, or of processes. The result has the
 * guarantees of one sketch that counted all of them: `limited` is never too low, and too high by at most `error`.
 *
 * @param capacity how many offenders the result lists at most
 */
export function mergeOffenders(summaries: readonly OffenderSummary[], capacity: number): OffenderSummary {
  const steps = mergingOffenders(summaries, capacity);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** {@link mergeOffenders} in steps of about a millisecond, between which the event loop may turn. */
export function* mergingOffenders(
  summaries: readonly OffenderSummary[],
  capacity: number,
): Generator<undefined, OffenderSummary> {
  const merged = new Map<string, ListedOffender>();
  const floor = summaries.reduce((sum, summary) => sum + summary.floor, 0);
  let [sorted, unsorted]: [ListedOffender[], ListedOffender[]] = [[], []];
  for (const summary of summaries) {
    for (const offender of summary.offenders) {
      const known = merged.get(offender.key);
      // A summary that does not list an offender may have counted up to its floor; that of this one is known exactly.
      const { limited, error } = known ?? { limited: floor, error: floor };
      merged.set(offender.key, {
        ...offender,
        limited: limited - summary.floor + offender.limited,
        error: error - summary.floor + offender.error,
      });
    }
    yield;
  }
  for (const offender of merged.values()) {
    unsorted.push(offender);
    if (unsorted.length < Math.max(SORTED_AT_ONCE, capacity)) continue;
    sorted = firstOf([...sorted, ...unsorted], capacity + 1);
    unsorted = [];
    yield;
  }
  sorted = firstOf([...sorted, ...unsorted], capacity + 1);
  return {
    since: summaries.reduce((earliest, { since }) => Math.min(earliest, since), Infinity),
    floor: Math.max(floor, sorted[capacity]?.limited ?? 0),
    offenders: sorted.slice(0, capacity),
  };
}

function firstOf(offenders: ListedOffender[], most: number): ListedOffender[] {
  return offenders.sort(byLimited).slice(0, most);
}

/** Sorts callers by their limited calls, the most first; equal ones in a fixed order. */
export function byLimited(one: ListedOffender, other: ListedOffender): number {
  return other.limited - one.limited || (one.key < other.key ? -1 : 1);
}
