import type { RuleStatistics } from '../../statistics/rule-statistics';
import { type Statistics, statisticsKeyOf } from '../../statistics/statistics';
import { type Grown, Growth, mapRates } from './growth';
import type { LiveEvent, LiveRule } from '../live-answers';
import { shortened } from '../../text/excerpt';

/** Milliseconds after which a measurement has no part in the next event: no event was read meanwhile. */
const OLD = 5_000;
/**
 * What is left of the hits of a rule after a second, where the rules with the most hits are chosen: else they would
 * change too often.
 */
const KEPT = 0.9;
/** Rules with fewer recent hits are not listed. */
const FEW = 0.01;
const TOP = 10;

/** The hits of a rule, with those of its keys with request values. */
interface Recent {
  readonly key: string;
  /** The hits of the last interval, as are `over`, `shadow` and `calls`. */
  hits: number;
  over: number;
  shadow: number;
  calls: number;
  /** Hits of this and earlier intervals, which count less and less. */
  recentHits: number;
  recentOver: number;
}

/** Measures what happens between two looks at the statistics. */
export class LiveView {
  readonly #statistics: Statistics;
  readonly #growth: Growth;
  #at = -Infinity;
  /** By the index of the rule, and by key; only of rules that were hit. */
  #ofRule: (Recent | undefined)[] = [];
  #recent = new Map<string, Recent>();

  constructor(statistics: Statistics) {
    this.#statistics = statistics;
    this.#growth = new Growth(statistics);
  }

  /** What has happened since the last call, per second. Without rates if that is long ago. */
  measure(): Pick<LiveEvent, 'rates' | 'latency' | 'rules'> {
    const now = performance.now();
    const seconds = (now - this.#at) / 1000;
    const isFirst = now - this.#at > OLD;
    this.#at = now;
    if (isFirst) {
      this.#ofRule = [];
      this.#recent = new Map();
    }
    for (const recent of this.#recent.values()) {
      recent.hits = recent.over = recent.shadow = recent.calls = 0;
      recent.recentHits *= KEPT;
      recent.recentOver *= KEPT;
    }
    const { totals, durations } = this.#growth.take((index, hits, ofHits) => {
      if (!isFirst) this.#add(index, { hits, ...ofHits });
    });
    return {
      rates: isFirst ? null : mapRates(totals, (value) => value / seconds),
      latency: isFirst ? null : latencyOf(durations),
      rules: { hits: this.#top('recentHits', seconds), denials: this.#top('recentOver', seconds) },
    };
  }

  #add(index: number, { hits, over, shadow, calls }: Omit<LiveRule, 'statisticsKey'>): void {
    const recent = (this.#ofRule[index] ??= this.#recentOf(this.#statistics.rules[index] as RuleStatistics));
    recent.hits += hits;
    recent.over += over;
    recent.shadow += shadow;
    recent.calls += calls;
    recent.recentHits += hits;
    recent.recentOver += over;
  }

  #recentOf(statistics: RuleStatistics): Recent {
    const key = statisticsKeyOf(statistics);
    const known = this.#recent.get(key);
    if (known !== undefined) return known;
    const created: Recent = { key, hits: 0, over: 0, shadow: 0, calls: 0, recentHits: 0, recentOver: 0 };
    this.#recent.set(key, created);
    return created;
  }

  #top(by: 'recentHits' | 'recentOver', seconds: number): readonly LiveRule[] {
    const best: Recent[] = [];
    for (const recent of this.#recent.values()) {
      if (recent[by] < FEW || (best.length === TOP && recent[by] <= best[TOP - 1]![by])) continue;
      const place = best.findIndex((other) => other[by] < recent[by]);
      best.splice(place === -1 ? best.length : place, 0, recent);
      best.length = Math.min(best.length, TOP);
    }
    return best.map(({ key, hits, over, shadow, calls }) => ({
      statisticsKey: shortened(key),
      hits: hits / seconds,
      over: over / seconds,
      shadow: shadow / seconds,
      calls: calls / seconds,
    }));
  }
}

function latencyOf(durations: Grown['durations']): LiveEvent['latency'] {
  if (durations.count === 0) return null;
  const [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map((share) => durations.quantile(share)) as [
    number,
    number,
    number,
    number,
  ];
  return { p50, p90, p99, p999 };
}
