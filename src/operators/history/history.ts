import { RecentCount } from '../../limiter/recent-count';
import { escapeStatisticsKey } from '../../statistics/escape';
import { RULE_PREFIX, type Statistics } from '../../statistics/statistics';
import { type ShownServers, sumOfRates } from '../../streams/server-views';
import { counted } from '../../text/counted';
import { excerpt, shortened } from '../../text/excerpt';
import type { RecentConfigurations } from '../configurations';
import { Growth } from './growth';
import type { EventMark, History, InstanceReport, LiveRates, LiveRule } from '../live-answers';
import type { StoreInUse } from '../health';
import { Outages } from './outages';
import { INTERVAL, RULES_OF_OTHERS, RuleLines, Recording, SAMPLES, RATES, mergeLine, mergeLines } from './recording';

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

/** Other instances, those that had samples last, and marks of all of them. */
const [OTHERS, MARKS_OF_OTHERS] = [100, 200];
/** Marks that another instance is sent at once. */
export const MARKS_SENT = 24;
/** Seconds after which an instance without a new sample is not waited for. */
const LATE = 30;

/** The hits of a rule since the last sample, with those of its keys with request values. */
interface Hits {
  hits: number;
  over: number;
  shadow: number;
  calls: number;
}

/** A rule with lines of its own. */
class Followed extends RuleLines implements Hits {
  hits = 0;
  over = 0;
  shadow = 0;
  calls = 0;
  /** Hits and calls of the last sample, per second. */
  last = { shadow: 0, calls: 0 };
  readonly recentCalls = new RecentCount();
  /** Hits of a sample; earlier ones count less. */
  mean = 0;
}

export interface HistoryOptions {
  readonly statistics: Statistics;
  readonly servers: ShownServers;
  readonly configurations: RecentConfigurations;
  readonly instance: Pick<InstanceReport, 'id' | 'name' | 'version'>;
  readonly store: StoreInUse;
}

/** Which part of the history is read. */
export interface HistoryQuery {
  /** Unix seconds: what is later. Undefined: everything. */
  readonly since?: number | undefined;
  /** The id of an instance; undefined: the sum of all. */
  readonly instance?: string | undefined;
  /** Most samples, the oldest, with a part of the rules and marks: what instances request from each other. */
  readonly most?: number | undefined;
}

/** What was sampled since some time; rules are read one by one. */
export type RecordedHistory = Omit<History, 'rules'> & { readonly rules: Iterable<History['rules'][number]> };

/** Keeps the last 60 minutes of the statistics, in at most 2 MB, and those of other instances, in 2 MB more. */
export class HistoryRecorder {
  readonly #options: HistoryOptions;
  readonly #growth: Growth;
  readonly #rules = new Map<string, Followed>();
  readonly #own: Recording;
  readonly #others = new Map<string, Recording>();
  readonly #marks: EventMark[] = [];
  /** When the rules that were marked last were loaded, and were rejected. */
  #marked: { readonly loaded?: string | undefined; readonly rejected?: string | undefined } = {};
  readonly #outages = new Outages();
  /** The workers that were replaced before the last sample. */
  #restarts = 0;
  #at = performance.now();

  constructor(options: HistoryOptions) {
    this.#options = options;
    const { id, name } = options.instance;
    this.#own = new Recording(id, name, this.#rules);
    this.#growth = new Growth(options.statistics, MOST_KEYS);
    this.#growth.take(() => undefined);
    this.#mark('start', `weir ${options.instance.version} was started`);
  }

  /** The bytes of its numbers, and of its texts if all are as long as they may be. */
  get bytes(): number {
    const recordings = this.#all;
    const keys = recordings.flatMap(({ rules }) => [...rules.values()].map(({ statisticsKey }) => statisticsKey));
    const texts = 2 * keys.reduce((sum, key) => sum + key.length, (MARKS + MARKS_OF_OTHERS) * MARK_TEXT);
    return recordings.reduce((sum, { bytes }) => sum + bytes, texts + this.#growth.bytes);
  }

  get #all(): readonly Recording[] {
    return [this.#own, ...this.#others.values()];
  }

  /** To be called every ten seconds. */
  sample(slot = slotNow()): void {
    if (slot === this.#own.last) return;
    const now = performance.now();
    // The first one is of a part of the interval.
    const seconds = Math.max(INTERVAL, (now - this.#at) / 1000);
    this.#at = now;
    const { rules: statistics } = this.#options.statistics;
    const names = new Map<string, string>();
    const others = new Map<string, Hits>();
    const [, idlest] = this.#idlest();
    const { totals, durations } = this.#growth.take((index, hits, { over, shadow, calls }) => {
      const { name: own, rollUp } = statistics[index]!;
      const name = rollUp === undefined ? own : nameOf(rollUp, names);
      let rule = this.#rules.get(name) ?? others.get(name);
      if (rule === undefined) {
        // Most rules, where there are many.
        if (rollUp === undefined && hits <= idlest) return;
        others.set(name, (rule = { hits: 0, over: 0, shadow: 0, calls: 0 }));
      }
      rule.hits += hits;
      rule.over += over;
      rule.shadow += shadow;
      rule.calls += calls;
    });
    this.#own.begin(slot);
    for (const name of RATES) this.#own.line('rates', name).set(slot, totals[name] / seconds);
    this.#own.line('latency', 'p50').set(slot, durations.quantile(0.5));
    this.#own.line('latency', 'p99').set(slot, durations.quantile(0.99));
    this.#follow(others, seconds, slot);
    this.#count(slot);
    this.#markLoads();
  }

  /** The process ends. */
  leave(): void {
    this.#mark('stop', `weir ${this.#options.instance.version} was stopped`);
    this.sample(Math.max(slotNow(), this.#own.last + 1));
  }

  /** To be called when {@link ShownServers.changed$} emits. */
  seeServers(): void {
    this.#outages.see(this.#options.servers.shown);
  }

  /** Undefined when there is no such instance. */
  read({ since = 0, instance, most = SAMPLES }: HistoryQuery = {}): RecordedHistory | undefined {
    this.#markLoads();
    // The calls of an outage that lasts.
    this.seeServers();
    this.#own.marks = [...this.#marks, ...this.#outages.marks(this.#options.store.policy)];
    const all = this.#all;
    const shown = instance === undefined ? all : all.filter(({ id }) => id === instance);
    if (shown.length === 0) return undefined;
    const newest = Math.max(...shown.map(({ last }) => last));
    // A sum without some of them would be too low.
    const end = Math.min(...shown.map(({ last }) => last).filter((last) => last >= newest - LATE / INTERVAL));
    const slots: number[] = [];
    for (let slot = newest - SAMPLES + 1; slot <= end && slots.length < most; slot += 1) {
      if (slot * INTERVAL > since && shown.some((recording) => recording.has(slot))) slots.push(slot);
    }
    const marks = shown.flatMap(({ marks: of, name }) => of.map((mark) => ({ ...mark, instance: name })));
    return {
      interval: INTERVAL,
      instances: all.map(({ id, name, last }) => ({ id, name, until: last * INTERVAL })),
      times: slots.map((slot) => slot * INTERVAL),
      ...mergeLines(shown, slots),
      marks: marks.sort((one, other) => one.at - other.at).slice(most < SAMPLES ? -MARKS_SENT : -MARKS),
      rules: rulesOf(shown, slots, most < SAMPLES ? RULES_OF_OTHERS : LISTED),
    };
  }

  /** Keeps what another instance has sent of its history, or of that of a third one. */
  take({ id, name }: Pick<InstanceReport, 'id' | 'name'>, history: History): void {
    if (id === this.#own.id) return;
    const known = this.#others.get(id);
    const recording = known ?? new Recording(id, name);
    recording.name = name;
    recording.take(history, slotNow());
    this.#others.set(id, recording);
    const oldest = [...this.#others.values()].sort((one, other) => one.last - other.last).slice(0, -OTHERS);
    for (const { id: ended } of oldest) this.#others.delete(ended);
    const others = [...this.#others.values()];
    const times = others.flatMap(({ marks }) => marks.map(({ at }) => at)).sort((one, other) => other - one);
    const earliest = times[MARKS_OF_OTHERS - 1] ?? -Infinity;
    for (const other of others) other.marks = other.marks.filter(({ at }) => at >= earliest);
  }

  /** The time of the last sample of an instance, in Unix seconds; 0: there is none. */
  lastOf(id: string): number {
    return (this.#others.get(id)?.last ?? 0) * INTERVAL;
  }

  /** The last sample, with the rules that have the most hits in it. @param most how many */
  latest(most: number): Pick<InstanceReport, 'rates' | 'latency' | 'rules'> {
    const own = this.#own;
    const { last: at } = own;
    if (at === 0) return { rates: null, latency: null, rules: { hits: [], denials: [] } };
    const rates = Object.fromEntries(RATES.map((name) => [name, own.line('rates', name).at(at)]));
    const [p50, p99] = [own.line('latency', 'p50').at(at), own.line('latency', 'p99').at(at)];
    const rules = Array.from(this.#rules.values(), ({ statisticsKey, hitsLine, overLine, last }) => {
      return { statisticsKey, hits: hitsLine.at(at), over: overLine.at(at), ...last };
    });
    function top(by: 'hits' | 'over'): readonly LiveRule[] {
      const busy = rules.filter((rule) => rule[by] > 0);
      return busy.sort((one, other) => other[by] - one[by]).slice(0, most);
    }
    return {
      rates: rates as unknown as LiveRates,
      latency: Number.isNaN(p50) ? null : { p50, p99 },
      rules: { hits: top('hits'), denials: top('over') },
    };
  }

  /** The calls of the last ten minutes of the rules that are followed, by their statistics keys. */
  get recentCalls(): ReadonlyMap<string, number> {
    const now = Date.now() / 1000;
    return new Map(
      Array.from(this.#rules.values(), ({ statisticsKey, recentCalls }) => [statisticsKey, recentCalls.at(now)]),
    );
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
      followed.last = { shadow: followed.shadow / seconds, calls: followed.calls / seconds };
      followed.recentCalls.add(followed.calls, at * INTERVAL);
      followed.hits = followed.over = followed.shadow = followed.calls = 0;
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
    this.#own.line('store', 'requests').set(at, requests);
    this.#own.line('store', 'errors').set(at, failures);
    this.#own.line('store', 'latency').set(at, latency ?? Number.NaN);
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

function slotNow(): number {
  return Math.round(Date.now() / 1000 / INTERVAL);
}

/** The rules with the most hits. @param most how many */
function* rulesOf(shown: readonly Recording[], slots: readonly number[], most: number) {
  const byKey = new Map<string, { sum: number; readonly of: (readonly [Recording, RuleLines])[] }>();
  for (const recording of shown) {
    for (const lines of recording.rules.values()) {
      const rule = byKey.get(lines.statisticsKey) ?? { sum: 0, of: [] };
      rule.of.push([recording, lines]);
      rule.sum += lines.hitsLine.sum;
      byKey.set(lines.statisticsKey, rule);
    }
  }
  const busiest = [...byKey].sort(([, one], [, other]) => other.sum - one.sum).slice(0, most);
  for (const [statisticsKey, { of }] of busiest) {
    const hits = of.map(([recording, { hitsLine }]) => [recording, hitsLine] as const);
    const over = of.map(([recording, { overLine }]) => [recording, overLine] as const);
    yield { statisticsKey, hits: mergeLine(hits, slots), over: mergeLine(over, slots) };
  }
}
