import { escapeStatisticsKey } from '../statistics/escape';
import { RULE_PREFIX, type Statistics } from '../statistics/statistics';
import { type ShownServers, sumOfRates } from '../streams/server-views';
import { counted } from '../text/counted';
import { excerpt, shortened } from '../text/excerpt';
import type { RecentConfigurations } from './configurations';
import { Growth, mapRates } from './growth';
import type { EventMark, History, InstanceReport, LiveRates, LiveRule } from './live-answers';
import { Outages } from './outages';

/** Seconds between two samples. */
export const INTERVAL = 10;
/** 60 minutes. */
const SAMPLES = 360;
/** Keys of rules that are looked at one by one: 16 bytes each. */
const MOST_KEYS = 50_000;
/**
 * Rules with lines of their own, which have a place while they are among those with the most hits, and how many are
 * listed.
 */
const FOLLOWED = 100;
const LISTED = 50;
/** What is left of the mean rate of a rule after a sample: half after two minutes. */
const KEPT = 0.94;
/**
 * A rule takes the place of another one with so many times its mean rate, so that those that change little keep theirs.
 */
const BUSIER = 1.5;
const MARKS = 200;
/** In characters. */
const MARK_TEXT = 200;

/** One number of each sample. */
class Line {
  readonly #values = new Float32Array(SAMPLES).fill(Number.NaN);

  get bytes(): number {
    return this.#values.byteLength;
  }

  set(sample: number, value: number): void {
    this.#values[sample % SAMPLES] = value;
  }

  at(sample: number): number {
    return this.#values[sample % SAMPLES] as number;
  }

  /** The values of some samples, to three digits; null where there is none. */
  read(samples: readonly number[]): readonly (number | null)[] {
    return samples.map((sample) => {
      const value = this.#values[sample % SAMPLES] as number;
      return Number.isNaN(value) ? null : Number(value.toPrecision(3));
    });
  }

  get sum(): number {
    return this.#values.reduce((sum, value) => (value > 0 ? sum + value : sum), 0);
  }
}

/** The hits of a rule since the last sample, with those of its keys with request values. */
class Hits {
  hits = 0;
  over = 0;
}

/** A rule with lines of its own. */
class Followed extends Hits {
  readonly hitsLine = new Line();
  readonly overLine = new Line();
  /** Hits of a sample; earlier ones count less. */
  mean = 0;

  constructor(readonly statisticsKey: string) {
    super();
  }
}

export interface HistoryOptions {
  readonly statistics: Statistics;
  readonly servers: ShownServers;
  readonly configurations: RecentConfigurations;
  readonly instance: Pick<InstanceReport, 'version'>;
}

/** What was sampled since some time; rules are read one by one. */
export type RecordedHistory = Omit<History, 'rules'> & { readonly rules: Iterable<History['rules'][number]> };

/** Keeps the last 60 minutes of the statistics, in at most 2 MB. */
export class HistoryRecorder {
  readonly #options: HistoryOptions;
  readonly #growth: Growth;
  /** Unix seconds of each sample. */
  readonly #times = new Float64Array(SAMPLES);
  readonly #rates = linesOf('within', 'near', 'over', 'shadow', 'calls', 'invalid', 'storeErrors', 'noMatch');
  readonly #latency = linesOf('p50', 'p99');
  readonly #store = linesOf('requests', 'errors', 'latency');
  readonly #rules = new Map<string, Followed>();
  readonly #marks: EventMark[] = [];
  /** When the rules that were marked last were loaded, and were rejected. */
  #marked: { readonly loaded?: string | undefined; readonly rejected?: string | undefined } = {};
  readonly #outages = new Outages();
  /** The workers that were replaced before the last sample. */
  #restarts = 0;
  #at = performance.now();
  /** How many samples there have been. */
  #size = 0;

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.#growth = new Growth(options.statistics, MOST_KEYS);
    this.#growth.take(() => undefined);
    this.#mark('start', `weir ${options.instance.version} was started`);
  }

  /** The bytes of its numbers, and of its texts if all are as long as they may be. */
  get bytes(): number {
    const rules = [...this.#rules.values()];
    const lines = [this.#rates, this.#latency, this.#store].flatMap((each) => Object.values(each));
    const all = [...lines, ...rules.flatMap(({ hitsLine, overLine }) => [hitsLine, overLine])];
    const texts = rules.reduce((sum, { statisticsKey }) => sum + 2 * statisticsKey.length, MARKS * 2 * MARK_TEXT);
    return all.reduce((sum, { bytes }) => sum + bytes, texts + this.#times.byteLength + this.#growth.bytes);
  }

  /** To be called every ten seconds. */
  sample(): void {
    const now = performance.now();
    const seconds = Math.max(0.001, (now - this.#at) / 1000);
    this.#at = now;
    const at = this.#size;
    const { rules: statistics } = this.#options.statistics;
    const names = new Map<string, string>();
    const others = new Map<string, Hits>();
    const [, idlest] = this.#idlest();
    const { totals, durations } = this.#growth.take((index, hits, over) => {
      const { name: own, rollUp } = statistics[index]!;
      const name = rollUp === undefined ? own : nameOf(rollUp, names);
      let rule = this.#rules.get(name) ?? others.get(name);
      if (rule === undefined) {
        // Most rules, where there are many.
        if (rollUp === undefined && hits <= idlest) return;
        others.set(name, (rule = new Hits()));
      }
      rule.hits += hits;
      rule.over += over;
    });
    this.#times[at % SAMPLES] = Math.round(Date.now() / 1000);
    for (const name of Object.keys(this.#rates) as (keyof LiveRates)[])
      this.#rates[name].set(at, totals[name] / seconds);
    this.#latency.p50.set(at, durations.quantile(0.5));
    this.#latency.p99.set(at, durations.quantile(0.99));
    this.#follow(others, seconds, at);
    this.#count(at);
    this.#size += 1;
    this.#markLoads();
  }

  /** To be called when {@link ShownServers.changed$} emits. */
  seeServers(): void {
    this.#outages.see(this.#options.servers.shown);
  }

  /** @param since Unix seconds: what is later. Without it, everything */
  read(since = 0): RecordedHistory {
    this.#markLoads();
    const samples: number[] = [];
    for (let sample = Math.max(0, this.#size - SAMPLES); sample < this.#size; sample += 1) {
      if (this.#times[sample % SAMPLES]! > since) samples.push(sample);
    }
    const listed = [...this.#rules.values()]
      .map(({ statisticsKey, hitsLine: hits, overLine: over }) => ({ statisticsKey, hits, over, sum: hits.sum }))
      .sort((one, other) => other.sum - one.sum)
      .slice(0, LISTED);
    function* rules() {
      for (const { statisticsKey, hits, over } of listed) {
        yield { statisticsKey, hits: hits.read(samples), over: over.read(samples) };
      }
    }
    return {
      interval: INTERVAL,
      times: samples.map((sample) => this.#times[sample % SAMPLES]!),
      rates: readAll(this.#rates, samples),
      latency: readAll(this.#latency, samples),
      store: readAll(this.#store, samples),
      marks: [...this.#marks, ...this.#outages.marks].toSorted((one, other) => one.at - other.at).slice(-MARKS),
      rules: rules(),
    };
  }

  /** The last sample, with the rules that have the most hits in it. @param most how many */
  latest(most: number): Pick<InstanceReport, 'rates' | 'latency' | 'rules'> {
    const at = this.#size - 1;
    if (at < 0) return { rates: null, latency: null, rules: { hits: [], denials: [] } };
    const rates = mapRates(this.#rates, (line) => line.at(at));
    const [p50, p99] = [this.#latency.p50.at(at), this.#latency.p99.at(at)];
    const rules = Array.from(this.#rules.values(), ({ statisticsKey, hitsLine, overLine }) => {
      return { statisticsKey, hits: hitsLine.at(at), over: overLine.at(at) };
    });
    function top(by: 'hits' | 'over'): readonly LiveRule[] {
      const busy = rules.filter((rule) => rule[by] > 0);
      return busy.sort((one, other) => other[by] - one[by]).slice(0, most);
    }
    return {
      rates,
      latency: Number.isNaN(p50) ? null : { p50, p99 },
      rules: { hits: top('hits'), denials: top('over') },
    };
  }

  /** @param others the hits of rules that are not followed, those of all that may be from now on */
  #follow(others: ReadonlyMap<string, Hits>, seconds: number, at: number): void {
    const busiest = [...others].sort(([, one], [, other]) => other.hits - one.hits).slice(0, FOLLOWED);
    for (const [name, hits] of busiest) {
      const [idlest, mean] = this.#idlest();
      if (hits.hits <= mean) break;
      if (idlest !== undefined) this.#rules.delete(idlest);
      const followed = new Followed(shortened(name.slice(RULE_PREFIX.length)));
      this.#rules.set(name, Object.assign(followed, hits, { mean: hits.hits }));
    }
    for (const followed of this.#rules.values()) {
      followed.hitsLine.set(at, followed.hits / seconds);
      followed.overLine.set(at, followed.over / seconds);
      followed.mean = followed.mean * KEPT + followed.hits * (1 - KEPT);
      followed.hits = followed.over = 0;
    }
  }

  /** The rule that another one displaces, and the hits above which it does: none while there is room. */
  #idlest(): readonly [name: string | undefined, hits: number] {
    if (this.#rules.size < FOLLOWED) return [undefined, 0];
    const [name, { mean }] = [...this.#rules].reduce((idlest, each) => (each[1].mean < idlest[1].mean ? each : idlest));
    return [name, BUSIER * mean];
  }

  /** The requests to the store, their failures, and the workers that were replaced. */
  #count(at: number): void {
    const { statistics, servers } = this.#options;
    const { requests, failures, latency } = sumOfRates(servers.shown.map(({ rates }) => rates));
    this.#store.requests.set(at, requests);
    this.#store.errors.set(at, failures);
    this.#store.latency.set(at, latency ?? Number.NaN);
    // There is no such counter without workers.
    const restarts = statistics.counters.find(({ name }) => name === 'ratelimit.workers.restarts')?.value ?? 0;
    if (restarts > this.#restarts) this.#mark('worker', `${counted(restarts - this.#restarts, 'worker')} replaced`);
    this.#restarts = restarts;
  }

  #markLoads(): void {
    const { active, rejected } = this.#options.configurations.list;
    const { loaded, rejected: rejectedBefore } = this.#marked;
    this.#marked = { loaded: active?.at, rejected: rejected?.at };
    if (active !== null && active.at !== loaded) {
      this.#mark('reload', `${counted(active.rules, 'rule')} loaded, version ${active.version}`, active.at);
    }
    if (rejected !== null && rejected.at !== rejectedBefore) {
      this.#mark('rejection', `rules rejected: ${rejected.reason}`, rejected.at);
    }
  }

  /** @param iso when; the present by default */
  #mark(kind: EventMark['kind'], text: string, iso?: string): void {
    const at = (iso === undefined ? Date.now() : Date.parse(iso)) / 1000;
    this.#marks.push({ at: Math.round(at), kind, text: excerpt(text, MARK_TEXT) });
    if (this.#marks.length > MARKS) this.#marks.shift();
  }
}

/** The name of the statistics of a rule by the key into which keys with request values are rolled up. */
function nameOf(rollUp: string, names: Map<string, string>): string {
  let name = names.get(rollUp);
  if (name === undefined) names.set(rollUp, (name = RULE_PREFIX + escapeStatisticsKey(rollUp)));
  return name;
}

function linesOf<const Name extends string>(...names: readonly Name[]): Readonly<Record<Name, Line>> {
  return Object.fromEntries(names.map((name) => [name, new Line()])) as Record<Name, Line>;
}

function readAll<Name extends string>(lines: Readonly<Record<Name, Line>>, samples: readonly number[]) {
  const entries = Object.entries<Line>(lines).map(([name, line]) => [name, line.read(samples)] as const);
  return Object.fromEntries(entries) as Record<Name, readonly (number | null)[]>;
}
