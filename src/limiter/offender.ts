import { isoTime } from '../text/iso-time';

/** A caller that a rule has limited: the descriptor of its calls. */
interface Counted {
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
  /** The statistics key of its rule, as GET /api/rules has it; empty in reports of older versions. */
  readonly statisticsKey: string;
  /** The part of `limited` in the last ten minutes. */
  readonly recent: number;
}

/** A caller that is limited, as operators see it. */
export interface Offender extends Counted {
  /** The part of all calls that its rule counted in these ten minutes, from 0 to 1; null: not known, or not yet. */
  readonly share: number | null;
  /** Since when it is limited, without ten minutes in which no call was; null: none was in the last ones. */
  readonly since: string | null;
  /** Whether its next call passes, as far as the last call over the limit has shown; `never`: its limit is 0. */
  readonly state: 'passes' | 'limited' | 'never';
  /** Until when it is limited; null: in another state. */
  readonly until: string | null;
  /** What helps where clearing its counter does not; null: that helps, or nothing has to. */
  readonly todo: { readonly text: string; readonly link: string } | null;
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

export interface ListedOffender extends Counted {
  /** Identifies the descriptor and its rule. */
  readonly key: string;
  /** Calls of all callers that its rule counted in the last ten minutes; null: they are not known. */
  readonly calls: number | null;
  /** As {@link Offender.since} and `until`, in Unix seconds; 0: none. */
  readonly since: number;
  readonly until: number;
  /** Whether the limit is 0. */
  readonly isZero: boolean;
}

export interface OffenderQuery {
  /** Undefined: of all domains. */
  readonly domain?: string | undefined;
  /** How many are returned at most. */
  readonly limit: number;
}

/** The first offenders of a summary. */
export function topOf({ offenders }: OffenderSummary, { domain, limit }: OffenderQuery): readonly ListedOffender[] {
  const ofDomain = domain === undefined ? offenders : offenders.filter((offender) => offender.domain === domain);
  return ofDomain.slice(0, limit);
}

/** A caller as operators see it at a time. */
export function shownOffender(
  { key: _key, calls, since, until, isZero, ...offender }: ListedOffender,
  nowSeconds: number,
): Offender {
  const { recent, isShadow, rule } = offender;
  const isOver = !isShadow && (isZero || until > nowSeconds);
  const state = isOver ? (isZero ? 'never' : 'limited') : 'passes';
  const change = rule === '' ? 'change it where the calls get it' : 'raise it, or add a rule for this caller alone';
  return {
    ...offender,
    // Calls are counted some seconds later than those that were limited.
    share: !calls || calls < recent ? null : Number((recent / calls).toPrecision(3)),
    since: since === 0 ? null : isoTime(since),
    state,
    until: state === 'limited' ? isoTime(until) : null,
    todo:
      state === 'never'
        ? { text: `the limit is 0, so that clearing its counter unblocks nobody: ${change}`, link: ZERO_LINK }
        : null,
  };
}

const ZERO_LINK = 'docs/rules.md#a-limit-per-user-with-exceptions';

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
  const calls = new Map<string, number | null>();
  const floor = summaries.reduce((sum, summary) => sum + summary.floor, 0);
  let [sorted, unsorted]: [ListedOffender[], ListedOffender[]] = [[], []];
  for (const summary of summaries) {
    const ofRules = new Map(summary.offenders.map((offender) => [offender.statisticsKey, offender.calls]));
    for (const [rule, count] of ofRules) {
      const before = calls.get(rule);
      calls.set(rule, before === null || count === null ? null : (before ?? 0) + count);
    }
    for (const offender of summary.offenders) {
      const known = merged.get(offender.key);
      // A summary that does not list an offender may have counted up to its floor; that of this one is known exactly.
      const { limited, error } = known ?? { limited: floor, error: floor };
      merged.set(offender.key, {
        ...offender,
        limited: limited - summary.floor + offender.limited,
        error: error - summary.floor + offender.error,
        recent: (known?.recent ?? 0) + offender.recent,
        since: earlierOf(known?.since ?? 0, offender.since),
        until: Math.max(known?.until ?? 0, offender.until),
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
    offenders: sorted.slice(0, capacity).map((each) => ({ ...each, calls: calls.get(each.statisticsKey) ?? null })),
  };
}

/** @param one a time, as is the other; 0: not known */
function earlierOf(one: number, other: number): number {
  return one === 0 || other === 0 ? Math.max(one, other) : Math.min(one, other);
}

function firstOf(offenders: ListedOffender[], most: number): ListedOffender[] {
  return offenders.sort(byLimited).slice(0, most);
}

/** Sorts callers by their limited calls, the most first; equal ones in a fixed order. */
export function byLimited(one: ListedOffender, other: ListedOffender): number {
  return other.limited - one.limited || (one.key < other.key ? -1 : 1);
}
