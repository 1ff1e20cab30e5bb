import { escapeStatisticsKey } from '../statistics/escape';
import { QuantileSketch } from '../statistics/quantile-sketch';
import type { RuleStatistics } from '../statistics/rule-statistics';
import { RULE_PREFIX, SERVICE_ERRORS, STORE_ERRORS, type Statistics } from '../statistics/statistics';
import type { LiveEvent, LiveRates, LiveRule } from '../streams/ports/operator';
import { BREAKER_OPEN } from '../streams/store-faults';
import { shortened } from './look-ups';

/** Milliseconds after which a measurement has no part in the next event: nobody has looked meanwhile. */
const OLD = 5_000;
/** What is left of the hits of a rule after a second, where the rules with the most hits are chosen: else they would change too often. */
const KEPT = 0.9;
/** Rules with fewer recent hits are forgotten. */
const FEW = 0.01;
const TOP = 10;

const CALLS = 'ratelimit_server.ShouldRateLimit.total_requests';
const RESPONSE_TIME = 'ratelimit_server.ShouldRateLimit.response_time';
const NO_MATCH = 'ratelimit.service.no_match';
/** The statistics that are shown as rates. */
const COUNTERS = [CALLS, SERVICE_ERRORS, STORE_ERRORS, NO_MATCH] as const;
const FIELDS = ['withinLimit', 'nearLimit', 'overLimit', 'shadowMode'] as const satisfies (keyof RuleStatistics)[];

/** A rule that was hit lately. */
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
  readonly #recent = new Map<string, Recent>();
  #at = -Infinity;
  #counters: number[] = [];
  /** By the index of the rule: its hits, and those over the limit. */
  #hits: number[] = [];
  #over: number[] = [];
  #sums: number[] = [];
  #durations = new QuantileSketch();

  constructor(statistics: Statistics) {
    this.#statistics = statistics;
  }

  /** What has happened since the last call, per second. Without rates if that is long ago. */
  measure(): Pick<LiveEvent, 'rates' | 'latency' | 'rules' | 'servers'> {
    const now = performance.now();
    const seconds = (now - this.#at) / 1000;
    const isFirst = now - this.#at > OLD;
    this.#at = now;
    if (isFirst) this.#recent.clear();
    const rates = this.#rates(seconds, isFirst);
    const latency = this.#latency();
    return {
      rates: isFirst ? null : rates,
      latency: isFirst ? null : latency,
      rules: { hits: this.#top('recentHits', seconds), denials: this.#top('recentOver', seconds) },
      servers: this.#servers(),
    };
  }

  #rates(seconds: number, isFirst: boolean): LiveRates {
    const sums = [0, 0, 0, 0];
    for (const recent of this.#recent.values()) {
      recent.hits = recent.over = 0;
      recent.recentHits *= KEPT;
      recent.recentOver *= KEPT;
      if (recent.recentHits < FEW) this.#recent.delete(recent.key);
    }
    for (const [index, rule] of this.#statistics.rules.entries()) {
      FIELDS.forEach((field, at) => (sums[at]! += rule[field]));
      const hits = rule.totalHits - (this.#hits[index] ?? 0);
      if (hits === 0) continue;
      if (!isFirst) this.#addTo(rule, hits, rule.overLimit - (this.#over[index] ?? 0));
      this.#hits[index] = rule.totalHits;
      this.#over[index] = rule.overLimit;
    }
    const counters = COUNTERS.map((name) => this.#statistics.counter(name).value);
    const [within, near, over, shadow] = sums.map((sum, at) => (sum - (this.#sums[at] ?? 0)) / seconds);
    const [calls, invalid, storeErrors, noMatch] = counters.map(
      (value, at) => (value - (this.#counters[at] ?? 0)) / seconds,
    );
    this.#sums = sums;
    this.#counters = counters;
    return {
      within: within!,
      near: near!,
      over: over!,
      shadow: shadow!,
      calls: calls!,
      invalid: invalid!,
      storeErrors: storeErrors!,
      noMatch: noMatch!,
    };
  }

  #addTo({ name, rollUp }: RuleStatistics, hits: number, over: number): void {
    const key = rollUp === undefined ? name.slice(RULE_PREFIX.length) : escapeStatisticsKey(rollUp);
    let recent = this.#recent.get(key);
    if (recent === undefined) this.#recent.set(key, (recent = { key, hits: 0, over: 0, recentHits: 0, recentOver: 0 }));
    recent.hits += hits;
    recent.over += over;
    recent.recentHits += hits;
    recent.recentOver += over;
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

  #servers(): LiveEvent['servers'] {
    const gauges = Array.from(this.#statistics.gauges).filter(({ name }) => name === BREAKER_OPEN);
    return gauges.map(({ tags: { server = '', store = '' }, read }) => ({ server, store, isOpen: read() > 0 }));
  }
}
