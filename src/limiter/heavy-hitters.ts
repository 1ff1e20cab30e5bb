import type { Rule } from '../rules/rule-tree';
import type { RuleStatistics } from '../statistics/rule-statistics';
import { statisticsKeyOf } from '../statistics/statistics';
import { excerpt, shortened } from '../text/excerpt';
import { ownText, tableKey } from '../text/table-key';
import { countedEntries, countedValue } from './cache-key';
import { closedUntil } from './judge';
import {
  type ListedOffender,
  type OffenderQuery,
  type OffenderSummary,
  byLimited,
  mergeOffenders,
  topOf,
} from './offender';
import { RECENT_MINUTES, RecentCount } from './recent-count';
import type { Entry } from './request';
import type { LimitedDescriptor } from './resolution';

/** How many characters of each text are kept. */
const EXCERPT = 256;

export interface OffendersOptions {
  /** How many descriptors are counted in each period: OFFENDERS_SIZE. */
  readonly capacity: number;
  /** The length of a period, in seconds: OFFENDERS_WINDOW. */
  readonly windowSeconds: number;
}

/**
 * The callers that were limited most in the current and the previous period, so that a caller that has stopped
 * disappears. Memory is constant: a number of descriptors in each period, and bounded texts of each.
 */
export class HeavyHitters {
  readonly #options: OffendersOptions;
  readonly #sampler = new CallSampler();
  #current: SpaceSaving;
  /** Undefined when the period before was without calls over a limit. */
  #previous: SpaceSaving | undefined = undefined;
  /** When the periods began, in Unix seconds. */
  #begun = Number.NaN;
  #previousBegun = Number.NaN;

  constructor(options: OffendersOptions) {
    this.#options = options;
    this.#current = new SpaceSaving(options.capacity);
  }

  /**
   * Counts a call over its limit, also one that shadow mode lets pass; under load, a sample of them.
   *
   * @param limited its cache key identifies the descriptor, so that no text is built for one that is known
   * @param rule undefined for a limit override
   */
  add(
    limited: LimitedDescriptor,
    rule: Rule | undefined,
    domain: string,
    entries: readonly Entry[],
    nowSeconds: number,
  ): void {
    const weight = this.#sampler.weightAt(nowSeconds);
    if (weight === 0) return;
    this.#follow(nowSeconds);
    const sketch = this.#current;
    const { key, limit } = limited;
    // Each limit of a rule with several has a key of its own, after the braces.
    const body = tableKey(key.slice(0, key.lastIndexOf(limit.isOneOfSeveral ? '}' : '_')));
    let name = body;
    let slot = sketch.find(name);
    if (slot !== undefined && slot.rule !== limit.path) {
      // Rules can share a cache key, as in the Go service: `a_b` with value `c`, and `a` with value `b_c`.
      name = `${limit.path}\n${body}`;
      slot = sketch.find(name);
    }
    if (slot === undefined) {
      slot = sketch.admit(name);
      slot.body = body;
      slot.rule = limit.path;
      slot.domain = ownText(excerpt(domain, EXCERPT));
      slot.descriptor = ownText(descriptorText(rule ? countedEntries(rule, entries) : entries, rule));
      slot.follow(this.#previous?.find(name));
    }
    slot.isShadow = limit.shadowMode;
    slot.isZero = limit.capacity === 0;
    slot.statistics = limited.statistics;
    slot.add(weight, nowSeconds);
    // The local cache has a call that was over the limit before it.
    if (!limited.isKnownOver || slot.until <= nowSeconds) slot.until = passesFrom(limited, nowSeconds);
  }

  /** The callers that match a query, those with the most limited calls first. */
  top(query: OffenderQuery, nowSeconds: number): readonly ListedOffender[] {
    return topOf(this.summary(nowSeconds), query);
  }

  /** What was counted in the current and the previous period. */
  summary(nowSeconds: number): OffenderSummary {
    this.#follow(nowSeconds);
    const current = this.#current.summary(this.#begun, nowSeconds);
    if (this.#previous === undefined) return current;
    const previous = this.#previous.summary(this.#previousBegun, nowSeconds);
    return mergeOffenders([previous, current], this.#options.capacity);
  }

  /**
   * Begins a new period when the current one has ended, or when the clock has gone back by more than a store takes to
   * answer.
   */
  #follow(nowSeconds: number): void {
    const { windowSeconds, capacity } = this.#options;
    const elapsed = nowSeconds - this.#begun;
    if (elapsed < windowSeconds && elapsed > -windowSeconds) return;
    const isNext = elapsed >= 0 && elapsed < 2 * windowSeconds;
    this.#previous = isNext ? this.#current : undefined;
    this.#previousBegun = this.#begun;
    this.#begun = isNext ? this.#begun + windowSeconds : nowSeconds;
    this.#current = new SpaceSaving(capacity);
  }
}

/** The beginning of the texts of the entries, as they are in the cache key. */
function descriptorText(entries: readonly Entry[], rule: Rule | undefined): string {
  let text = '';
  for (let level = 0; level < entries.length && text.length <= EXCERPT; level += 1) {
    text += `${level === 0 ? '' : ','}${(entries[level] as Entry).key}=${countedValue(entries, level, rule)}`;
  }
  return excerpt(text, EXCERPT);
}

/** When a caller whose call is over a limit can pass again, in Unix seconds, for all that this call shows. */
function passesFrom({ limit, outcome }: LimitedDescriptor, nowSeconds: number): number {
  const until = closedUntil(limit, outcome, nowSeconds);
  return limit.schedule === undefined ? until : Math.min(until, limit.schedule.changesAfter(nowSeconds));
}

/** Seconds without a call over the limit after which a caller begins anew to be limited. */
const PAUSE = 60 * RECENT_MINUTES;

/** A descriptor that is counted. */
class Slot {
  /** The cache key without its window, or its digest. */
  body = '';
  rule = '';
  domain = '';
  descriptor = '';
  isShadow = false;
  /** How often the key occurred, at least; at most `error` of it is of keys that had the slot before. */
  count = 0;
  error = 0;
  isZero = false;
  statistics: RuleStatistics | undefined = undefined;
  /** In Unix seconds: as of {@link ListedOffender}, and the last call over the limit. */
  since = 0;
  until = 0;
  last = 0;
  readonly recent: RecentCount;

  /** @param key the body, or rule and body where another rule has the same body */
  constructor(
    public key: string,
    ...recent: ConstructorParameters<typeof RecentCount>
  ) {
    this.recent = new RecentCount(...recent);
  }

  /** Begins to count a descriptor, as it was known in the period before. */
  follow(before: Slot | undefined): void {
    const isSame = before?.rule === this.rule;
    [this.since, this.until, this.last] = isSame ? [before.since, before.until, before.last] : [0, 0, 0];
    this.recent.clear();
  }

  add(weight: number, nowSeconds: number): void {
    this.count += weight;
    this.recent.add(weight, nowSeconds);
    if (nowSeconds - this.last > PAUSE) this.since = nowSeconds;
    this.last = Math.max(this.last, nowSeconds);
  }
}

/**
 * The keys that occur most often in a stream of any length, in constant memory: the Space-Saving algorithm (Metwally,
 * Agrawal, El Abbadi, 2005). A key without a slot takes that of the rarest one and inherits its count as an error.
 * After `n` occurrences, every key with more than `n / capacity` of them has a slot, and no count is too high by more
 * than that.
 */
class SpaceSaving {
  readonly #capacity: number;
  readonly #byKey = new Map<string, Slot>();
  readonly #slots: Slot[] = [];
  readonly #recent: Uint32Array<ArrayBuffer>;
  /** The least count when it was last determined: no key without a slot has occurred more often. */
  #floor = 0;
  /** The slots before this one have counts above the floor, because counts only grow. */
  #next = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#recent = new Uint32Array(capacity * RECENT_MINUTES);
  }

  find(key: string): Slot | undefined {
    return this.#byKey.get(key);
  }

  /** A slot for a key that has none. The caller adds the occurrences to its count, and sets the rest. */
  admit(key: string): Slot {
    let slot: Slot;
    if (this.#slots.length < this.#capacity) {
      slot = new Slot(key, this.#recent, this.#slots.length * RECENT_MINUTES);
      this.#slots.push(slot);
    } else {
      slot = this.#rarest();
      this.#byKey.delete(slot.key);
      slot.key = key;
      slot.error = slot.count;
    }
    this.#byKey.set(key, slot);
    return slot;
  }

  /** @param begun when counting began, in Unix seconds */
  summary(begun: number, nowSeconds: number): OffenderSummary {
    const offenders = this.#slots.map((slot): ListedOffender => {
      const { body, domain, rule, descriptor, isShadow, count, error, statistics, since, until, isZero } = slot;
      const recent = slot.recent.at(nowSeconds);
      return {
        ...{ key: `${rule}\n${body}`, domain, rule, descriptor, isShadow, limited: count, error },
        ...{ statisticsKey: shortened(statisticsKeyOf(statistics!)), recent, calls: null },
        ...{ since: recent === 0 ? 0 : since, until, isZero },
      };
    });
    return { since: begun, floor: this.#floor, offenders: offenders.sort(byLimited) };
  }

  /**
   * A slot of the least count: the next one in their order, and after the last one the least count is determined again.
   */
  #rarest(): Slot {
    for (; this.#next < this.#slots.length; this.#next += 1) {
      const slot = this.#slots[this.#next] as Slot;
      if (slot.count === this.#floor) return slot;
    }
    this.#floor = this.#slots.reduce((least, { count }) => Math.min(least, count), Infinity);
    this.#next = 0;
    return this.#rarest();
  }
}

/** How many calls of each second are counted exactly. */
const EXACT_PER_SECOND = 1000;
/** One of so many calls beyond EXACT_PER_SECOND is counted for all of them, on average. */
const STRIDE = 16;
/** A clock that is behind by more seconds has been set back; by less, a store has answered late. */
const LATE = 60;

/**
 * Chooses the calls that are counted, so that counting costs little however many there are: under load every call that
 * is counted stands for several. The gaps are random: callers that take turns would otherwise be counted for each
 * other.
 */
class CallSampler {
  #second = Number.NaN;
  #exactLeft = 0;
  #untilNext = 1;
  #random = 1;

  /** How many calls the next call stands for; 0 if it is not counted. */
  weightAt(nowSeconds: number): number {
    if (!(nowSeconds <= this.#second && nowSeconds > this.#second - LATE)) {
      this.#second = nowSeconds;
      this.#exactLeft = EXACT_PER_SECOND;
    }
    if (this.#exactLeft > 0) {
      this.#exactLeft -= 1;
      return 1;
    }
    this.#untilNext -= 1;
    if (this.#untilNext > 0) return 0;
    this.#untilNext = this.#nextGap();
    return STRIDE;
  }

  /**
   * From 1 to 2 × STRIDE − 1, all equally likely: the upper bits of a linear congruential generator (Numerical
   * Recipes).
   */
  #nextGap(): number {
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) >>> 0;
    return 1 + Math.floor((this.#random / 2 ** 32) * (2 * STRIDE - 1));
  }
}
