import { escapeStatisticsKey } from '../statistics/escape';
import { QuantileSketch } from '../statistics/quantile-sketch';
import type { RuleStatistics } from '../statistics/rule-statistics';
import { RULE_PREFIX, SERVICE_ERRORS, STORE_ERRORS, type Statistics } from '../statistics/statistics';
import type { LiveEvent, LiveRates, LiveRule } from './live-answers';
import { shortened } from './look-ups';

/** Milliseconds after which a measurement has no part in the next event: nobody has looked meanwhile. */
const OLD = 5_000;
/** What is left of the hits of a rule after a second, where the rules with the most hits are chosen: else they would change too often. */
const KEPT = 0.9;
/** Rules with fewer recent hits are not listed. */
const FEW = 0.01;
const TOP = 10;

const CALLS = 'ratelimit_server.ShouldRateLimit.total_requests';
const RESPONSE_TIME = 'ratelimit_server.ShouldRateLimit.response_time';
const NO_MATCH = 'ratelimit.service.no_match';

/** The hits of a rule, with those of its keys with request values. */
interface Recent {
  readonly key: string;
  /** Of the last interval. */
  hits: number;
  over: number;
  /** Those and earlier ones, which count less and less. */
  recentHits: number;
  recentOver: number;
}

/** Measures what happens between two looks at the statistics. */
export class LiveView {
  readonly #statistics: Statistics;
  #at = -Infinity;
  #sums: Readonly<LiveRates> | undefined;
  #durations = new QuantileSketch();
  /** By the index of the rule: its hits, and those over the limit. */
  #hits: number[] = [];
  #over: number[] = [];
  /** By the index of the rule, and by key; only of rules that were hit. */
  #ofRule: (Recent | undefined)[] = [];
  #recent = new Map<string, Recent>();

  constructor(statistics: Statistics) {
    this.#statistics = statistics;
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
    const sums = this.#count(isFirst);
    const before = this.#sums ?? sums;
    const names = Object.keys(sums) as (keyof LiveRates)[];
    const rates = Object.fromEntries(names.map((name) => [name, (sums[name] - before[name]) / seconds]));
    this.#sums = sums;
    const latency = this.#latency();
    return {
      rates: isFirst ? null : (rates as unknown as LiveRates),
      latency: isFirst ? null : latency,
      rules: { hits: this.#top('recentHits', seconds), denials: this.#top('recentOver', seconds) },
    };
  }

  /** The totals of all rules. Looks at each rule, of which there may be many thousands. */
  #count(isFirst: boolean): LiveRates {
    for (const recent of this.#recent.values()) {
      recent.hits = recent.over = 0;
      recent.recentHits *= KEPT;
      recent.recentOver *= KEPT;
    }
    const { rules } = this.#statistics;
    let [within, near, over, shadow] = [0, 0, 0, 0];
    for (let index = 0; index < rules.length; index += 1) {
      const rule = rules[index] as RuleStatistics;
      within += rule.withinLimit;
      near += rule.nearLimit - rule.nearLimitPartial;
      over += rule.overLimit;
      shadow += rule.shadowMode;
      const hits = rule.totalHits - (this.#hits[index] ?? 0);
      if (hits === 0) continue;
      if (!isFirst) {
        const recent = (this.#ofRule[index] ??= this.#recentOf(rule));
        const denials = rule.overLimit - (this.#over[index] ?? 0);
        recent.hits += hits;
        recent.over += denials;
        recent.recentHits += hits;
        recent.recentOver += denials;
      }
      this.#hits[index] = rule.totalHits;
      this.#over[index] = rule.overLimit;
    }
    const [calls, invalid, storeErrors, noMatch] = [CALLS, SERVICE_ERRORS, STORE_ERRORS, NO_MATCH].map(
      (name) => this.#statistics.counter(name).value,
    ) as [number, number, number, number];
    return { within, near, over, shadow, calls, invalid, storeErrors, noMatch };
  }

  #recentOf({ name, rollUp }: RuleStatistics): Recent {
    const key = rollUp === undefined ? name.slice(RULE_PREFIX.length) : escapeStatisticsKey(rollUp);
    const known = this.#recent.get(key);
    if (known !== undefined) return known;
    const created: Recent = { key, hits: 0, over: 0, recentHits: 0, recentOver: 0 };
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
    return best.map(({ key, hits, over }) => ({
      statisticsKey: shortened(key),
      hits: hits / seconds,
      over: over / seconds,
    }));
  }

  #latency(): LiveEvent['latency'] {
    const all = this.#statistics.durationsOf(RESPONSE_TIME);
    const now = all.without(this.#durations);
    this.#durations = all.without(new QuantileSketch());
    if (now.count === 0) return null;
    return { p50: now.quantile(0.5), p90: now.quantile(0.9), p99: now.quantile(0.99), p999: now.quantile(0.999) };
  }
}
