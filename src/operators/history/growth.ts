import { QuantileSketch } from '../../statistics/quantile-sketch';
import type { RuleStatistics } from '../../statistics/rule-statistics';
import { SERVICE_ERRORS, STORE_ERRORS, type Statistics } from '../../statistics/statistics';
import type { LiveRates, LiveRule } from '../live-answers';

const CALLS = 'ratelimit_server.ShouldRateLimit.total_requests';
const RESPONSE_TIME = 'ratelimit_server.ShouldRateLimit.response_time';
const NO_MATCH = 'ratelimit.service.no_match';

/** By how much the statistics have grown. */
export interface Grown {
  readonly totals: LiveRates;
  /** The durations of gRPC calls. */
  readonly durations: QuantileSketch;
}

type OnRule = (index: number, hits: number, ofHits: Pick<LiveRule, 'over' | 'shadow' | 'calls'>) => void;

/** What is counted between two looks at the statistics. */
export class Growth {
  readonly #statistics: Statistics;
  readonly #most: number;
  #totals: LiveRates | undefined;
  #durations = new QuantileSketch();
  /** By the index of a key: its hits, those over the limit, those of them in shadow mode, and its calls. */
  #hits = new Float64Array(0);
  #over = new Float64Array(0);
  /** Modulo 2^32 to save memory, as are the calls: their growth is exact up to 429 million hits per second. */
  #shadow = new Uint32Array(0);
  #calls = new Uint32Array(0);

  /** @param most the keys of rules that are looked at one by one, the oldest; the others are in the totals only */
  constructor(statistics: Statistics, most = Infinity) {
    this.#statistics = statistics;
    this.#most = most;
  }

  /** The bytes that the counts of before take. */
  get bytes(): number {
    return 2 * (this.#hits.byteLength + this.#calls.byteLength) + QuantileSketch.BYTES;
  }

  /**
   * Since the last call. Looks at each rule, of which there may be many thousands.
   *
   * @param onRule called with each key of a rule that was hit: its index, its hits, and of them those over the limit
   */
  take(onRule: OnRule): Grown {
    const { rules } = this.#statistics;
    this.#makeRoom(Math.min(rules.length, this.#most));
    let [within, near, over, shadow] = [0, 0, 0, 0];
    for (let index = 0; index < rules.length; index += 1) {
      const rule = rules[index] as RuleStatistics;
      within += rule.withinLimit;
      // Only of calls that are within the limit as a whole.
      near += rule.nearLimit - rule.nearLimitPartial;
      over += rule.overLimit;
      shadow += rule.shadowMode;
      const before = this.#hits[index];
      if (before === undefined || rule.totalHits === before) continue;
      this.#hits[index] = rule.totalHits;
      onRule(index, rule.totalHits - before, {
        over: grown(this.#over, index, rule.overLimit),
        shadow: grown(this.#shadow, index, rule.shadowMode) >>> 0,
        calls: grown(this.#calls, index, rule.calls) >>> 0,
      });
    }
    const [calls, invalid, storeErrors, noMatch] = [CALLS, SERVICE_ERRORS, STORE_ERRORS, NO_MATCH].map(
      (name) => this.#statistics.counter(name).value,
    ) as [number, number, number, number];
    const totals = { within, near, over, shadow, calls, invalid, storeErrors, noMatch };
    const before = this.#totals;
    this.#totals = totals;
    const all = this.#statistics.durationsOf(RESPONSE_TIME);
    const durations = all.without(this.#durations);
    this.#durations = all.without(new QuantileSketch());
    const ofTotals = before === undefined ? totals : mapRates(totals, (value, name) => value - before[name]);
    return { totals: ofTotals, durations };
  }

  #makeRoom(keys: number): void {
    if (keys <= this.#hits.length) return;
    const length = Math.min(this.#most, Math.max(1_024, keys, 2 * this.#hits.length));
    function wider<Counts extends Float64Array | Uint32Array>(after: Counts, before: Counts): Counts {
      after.set(before);
      return after;
    }
    this.#hits = wider(new Float64Array(length), this.#hits);
    this.#over = wider(new Float64Array(length), this.#over);
    this.#shadow = wider(new Uint32Array(length), this.#shadow);
    this.#calls = wider(new Uint32Array(length), this.#calls);
  }
}

/** Keeps a count, and returns by how much it has grown. */
function grown(counts: Float64Array | Uint32Array, index: number, count: number): number {
  const before = counts[index] as number;
  counts[index] = count;
  return count - before;
}

/** Rates, made of something that there is for each of them. */
export function mapRates<Value>(
  rates: Readonly<Record<keyof LiveRates, Value>>,
  change: (value: Value, name: keyof LiveRates) => number,
): LiveRates {
  const names = Object.keys(rates) as (keyof LiveRates)[];
  return Object.fromEntries(names.map((name) => [name, change(rates[name], name)])) as unknown as LiveRates;
}
