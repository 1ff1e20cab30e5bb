import { countedEntries, countedValue } from '../../limiter/cache-key';
import type { Decision } from '../../limiter/decision';
import type { Entry } from '../../limiter/request';
import type { Resolution } from '../../limiter/resolution';
import { Code } from '../../limiter/verdict';
import type { DecisionLog } from '../../streams/in-flight-decision';

/** Callers that are watched at a time. */
export const MOST_WATCHES = 16;
/** For how long a caller is watched after the last request for it, in milliseconds. */
export const WATCHED_MS = 600_000;
/** Seconds that are kept of each. */
export const WATCHED_SECONDS = 60;

/** A caller, by a descriptor of its calls. */
export interface WatchedCaller {
  readonly domain: string;
  readonly entries: readonly Entry[];
}

/** Calls of a caller in each of the last seconds, in lists of equal length, the newest at the end. */
export interface WatchCounts {
  /** In Unix seconds. */
  readonly times: readonly number[];
  readonly calls: readonly number[];
  /** Calls that were denied because of this descriptor. */
  readonly denied: readonly number[];
}

/** The counts of the last seconds. */
export class SecondCounts {
  readonly #seconds = new Float64Array(WATCHED_SECONDS);
  readonly #calls = new Float64Array(WATCHED_SECONDS);
  readonly #denied = new Float64Array(WATCHED_SECONDS);

  add(second: number, calls: number, denied: number): void {
    const at = second % WATCHED_SECONDS;
    if (this.#seconds[at]! > second) return;
    if (this.#seconds[at] !== second) this.#calls[at] = this.#denied[at] = 0;
    this.#seconds[at] = second;
    this.#calls[at]! += calls;
    this.#denied[at]! += denied;
  }

  /** @param after Unix seconds: only later ones are added, and those before `end` */
  addAll({ times, calls, denied }: WatchCounts, after = -Infinity, end = Infinity): void {
    for (const [index, second] of times.entries()) {
      if (second > after && second < end) this.add(second, calls[index] ?? 0, denied[index] ?? 0);
    }
  }

  /** @param first Unix seconds, as is `last` */
  between(first: number, last: number): WatchCounts {
    const begin = Math.max(first, last - WATCHED_SECONDS + 1);
    const times = Array.from({ length: Math.max(0, last - begin + 1) }, (_, index) => begin + index);
    const [calls, denied] = [this.#calls, this.#denied].map((counts) =>
      times.map((second) => {
        const at = second % WATCHED_SECONDS;
        return this.#seconds[at] === second ? counts[at]! : 0;
      }),
    ) as [number[], number[]];
    return { times, calls, denied };
  }
}

interface Watch extends WatchedCaller {
  readonly counts: SecondCounts;
  /** The first whole second, in Unix seconds. */
  readonly since: number;
  readonly end: NodeJS.Timeout;
}

/**
 * Counts the calls of callers that an operator looks at. It takes the place of the log of decisions while there are
 * any, so that decisions do not pay for it otherwise.
 */
export class Watches implements DecisionLog {
  readonly #log: DecisionLog | undefined;
  readonly #replace: (log: DecisionLog | undefined) => void;
  #watches: readonly Watch[] = [];

  /**
   * @param log undefined: decisions are not logged
   * @param replace called with that which takes its place
   */
  constructor(log: DecisionLog | undefined, replace: (log: DecisionLog | undefined) => void) {
    this.#log = log;
    this.#replace = replace;
  }

  /** What receives decisions. */
  get log(): DecisionLog | undefined {
    return this.#watches.length === 0 ? this.#log : this;
  }

  /** The calls of whole seconds since the first request for this caller; undefined when too many others are watched. */
  read({ domain, entries }: WatchedCaller): WatchCounts | undefined {
    const second = Math.floor(Date.now() / 1000);
    const known = this.#watches.find((each) => each.domain === domain && isEqual(each.entries, entries));
    if (known !== undefined) {
      known.end.refresh();
      return known.counts.between(known.since, second - 1);
    }
    if (this.#watches.length === MOST_WATCHES) return undefined;
    const end = setTimeout(() => this.#change(this.#watches.filter((each) => each !== watch)), WATCHED_MS).unref();
    const watch: Watch = { domain, entries, counts: new SecondCounts(), since: second + 1, end };
    this.#change([...this.#watches, watch]);
    return watch.counts.between(watch.since, second - 1);
  }

  decided(...[decision, outcome, source]: Parameters<DecisionLog['decided']>): void {
    this.#log?.decided(decision, outcome, source);
    for (const watch of this.#watches) {
      if (watch.domain !== decision.request.domain) continue;
      const index = indexOf(decision, watch.entries);
      if (index === -1) continue;
      const isDenied =
        'overallCode' in outcome &&
        outcome.overallCode === Code.OVER_LIMIT &&
        outcome.statuses[index]!.code === Code.OVER_LIMIT;
      watch.counts.add(Math.floor(Date.now() / 1000), 1, isDenied ? 1 : 0);
    }
  }

  rejected(...call: Parameters<DecisionLog['rejected']>): void {
    this.#log?.rejected(...call);
  }

  ended(...reservation: Parameters<DecisionLog['ended']>): void {
    this.#log?.ended(...reservation);
  }

  #change(watches: readonly Watch[]): void {
    this.#watches = watches;
    this.#replace(this.log);
  }
}

/** Sums of several processes. */
export function sumOfCounts(all: readonly WatchCounts[]): WatchCounts {
  const times = all.flatMap((counts) => counts.times);
  if (times.length === 0) return { times: [], calls: [], denied: [] };
  const sum = new SecondCounts();
  for (const counts of all) sum.addAll(counts);
  return sum.between(Math.min(...times), Math.max(...times));
}

/** The calls of a caller on all instances. */
export interface FleetWatch extends WatchCounts {
  /** The instances that are not in the sums. */
  readonly missing: readonly string[];
}

/** Seconds by which an instance may be late. */
const LATE = 15;

/** What other instances have counted of a caller. */
export class FleetWatched {
  readonly #caller: WatchedCaller;
  readonly #counts = new SecondCounts();
  /** The last second of each, by its address. */
  readonly #last = new Map<string, number>();
  /** When a viewer has asked last, in milliseconds of the clock of the process. */
  askedAt = 0;

  constructor(caller: WatchedCaller) {
    this.#caller = caller;
  }

  isOf({ domain, entries }: WatchedCaller): boolean {
    return this.#caller.domain === domain && isEqual(this.#caller.entries, entries);
  }

  /** @param ask asks the instance at an address */
  async takeFrom(address: string, ask: (caller: WatchedCaller) => Promise<WatchCounts>): Promise<void> {
    const second = Math.floor(Date.now() / 1000);
    try {
      const counts = await ask(this.#caller);
      // The clock of another instance may be wrong. One that begins to count has no whole second yet: it is missing.
      const [last, end] = [this.#last.get(address) ?? 0, second + 2];
      this.#counts.addAll(counts, Math.max(last, second - WATCHED_SECONDS), end);
      const times = counts.times.filter((time) => time > second - LATE && time < end);
      this.#last.set(address, Math.max(last, ...times));
    } catch {
      // An instance that does not answer is one of those that are missing.
    }
  }

  has(address: string): boolean {
    return this.#lastOf(address) > 0;
  }

  #lastOf(address: string): number {
    const last = this.#last.get(address) ?? 0;
    return last >= Math.floor(Date.now() / 1000) - LATE ? last : 0;
  }

  /** The sums, up to the last second that all have which are not late. */
  with(own: WatchCounts): WatchCounts {
    const lasts = Array.from(this.#last.keys(), (address) => this.#lastOf(address)).filter((last) => last > 0);
    const sum = new SecondCounts();
    const [first = Infinity, last = 0] = [own.times[0], own.times.at(-1)];
    const end = Math.min(last, ...lasts);
    sum.addAll(own);
    sum.addAll(this.#counts.between(first, end));
    return sum.between(first, end);
  }
}

/** The descriptor of a call that is that of a caller, as it was sent, or as it is counted; -1 without one. */
function indexOf({ request: { descriptors }, resolutions }: Decision, watched: readonly Entry[]): number {
  for (let index = 0; index < descriptors.length; index += 1) {
    const { entries } = descriptors[index]!;
    if (entries.length !== watched.length || entries[0]!.key !== watched[0]!.key) continue;
    if (isEqual(entries, watched) || isCountedAs(resolutions[index]!, entries, watched)) return index;
  }
  return -1;
}

function isCountedAs({ rule }: Resolution, entries: readonly Entry[], watched: readonly Entry[]): boolean {
  if (rule === undefined) return false;
  const counted = countedEntries(rule, entries);
  return isEqual(
    counted.map(({ key }, level) => ({ key, value: countedValue(counted, level, rule) })),
    watched,
  );
}

function isEqual(one: readonly Entry[], other: readonly Entry[]): boolean {
  return (
    one.length === other.length &&
    one.every(({ key, value }, level) => key === other[level]!.key && value === other[level]!.value)
  );
}
