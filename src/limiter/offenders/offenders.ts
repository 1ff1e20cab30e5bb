import type { Rule } from '../../rules/rule-tree';
import { tableKey } from '../../text/table-key';
import type { LimitedDescriptor } from '../limited-descriptor';
import type { Entry } from '../request';
import { CallSampler } from './call-sampler';
import { type Texts, excerptsOf, lengthsOf, textsIn } from './kept-texts';
import { mergeOffenders } from './merge-offenders';
import type { Offender, OffenderQuery, OffenderSummary } from './offender';
import { type Slot, SpaceSaving } from './space-saving';

export interface OffendersOptions {
  /** How many descriptors are counted in each period: OFFENDERS_SIZE. */
  readonly capacity: number;
  /** The length of a period, in seconds: OFFENDERS_WINDOW. */
  readonly windowSeconds: number;
  /** CACHE_KEY_PREFIX */
  readonly cacheKeyPrefix: string;
}

/** What is kept of a descriptor besides its key. */
interface Limited {
  readonly rule: string;
  isShadow: boolean;
  /** Where the cache key begins in the key of the sketch: after the rule, or at its beginning. */
  readonly bodyAt: number;
  /** Where the texts are in the cache key; the texts themselves when it is kept as a digest. */
  readonly texts: readonly number[] | Texts;
}

type Sketch = SpaceSaving<Limited>;

/**
 * The callers that were limited most in the current and the previous period, so that a caller that has stopped disappears. Memory is
 * constant: a number of descriptors in each period, and bounded texts of each.
 */
export class Offenders {
  readonly #options: OffendersOptions;
  readonly #sampler = new CallSampler();
  #current: Sketch;
  /** Undefined when the period before was without calls over a limit. */
  #previous: Sketch | undefined = undefined;
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
   * @param limited its cache key contains the texts, so that no other text is built for a descriptor that is known
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
    const { key, applied } = limited;
    const withoutWindow = key.slice(0, key.lastIndexOf('_'));
    const body = tableKey(withoutWindow);
    let name = body;
    let slot = sketch.find(name);
    if (slot?.item !== undefined && slot.item.rule !== applied.path) {
      // Rules can share a cache key, as in the Go service: `a_b` with value `c`, and `a` with value `b_c`.
      name = `${applied.path}\n${body}`;
      slot = sketch.find(name);
    }
    if (slot?.item === undefined) {
      sketch.admit(name, weight).item = {
        rule: applied.path,
        isShadow: applied.shadowMode,
        bodyAt: name.length - body.length,
        texts: (body === withoutWindow ? lengthsOf : excerptsOf)(domain, entries, rule),
      };
    } else {
      slot.item.isShadow = applied.shadowMode;
      sketch.increment(slot, weight);
    }
  }

  /** Those with the most limited calls first. */
  top(query: OffenderQuery, nowSeconds: number): readonly Offender[] {
    return topOf(this.summary(nowSeconds), query);
  }

  /** What was counted in the current and the previous period. */
  summary(nowSeconds: number): OffenderSummary {
    this.#follow(nowSeconds);
    const current = this.#summaryOf(this.#current, this.#begun);
    if (this.#previous === undefined) return current;
    return mergeOffenders([this.#summaryOf(this.#previous, this.#previousBegun), current], this.#options.capacity);
  }

  /** Begins a new period when the current one has ended, or when the clock has gone back by more than a store takes to answer. */
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

  #summaryOf(sketch: Sketch, since: number): OffenderSummary {
    return { since, floor: sketch.floor, offenders: sketch.slots().flatMap((slot) => this.#listed(slot) ?? []) };
  }

  #listed({ key, item, count, error }: Slot<Limited>): OffenderSummary['offenders'][number] | undefined {
    if (item === undefined) return undefined;
    const { rule, isShadow, bodyAt, texts } = item;
    const body = key.slice(bodyAt);
    return {
      key: `${rule}\n${body}`,
      rule,
      ...('domain' in texts ? texts : textsIn(body, texts, this.#options.cacheKeyPrefix.length)),
      isShadow,
      limited: count,
      error,
    };
  }
}

/** The first offenders of a summary. */
export function topOf({ offenders }: OffenderSummary, { domain, limit }: OffenderQuery): readonly Offender[] {
  const ofDomain = domain === undefined ? offenders : offenders.filter((offender) => offender.domain === domain);
  return ofDomain.slice(0, limit).map(({ domain: of, rule, descriptor, isShadow, limited, error }) => ({
    domain: of,
    rule,
    descriptor,
    isShadow,
    limited,
    error,
  }));
}
