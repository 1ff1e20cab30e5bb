import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Counter } from '../../statistics/counter';
import { RULE_STATS, type RuleStatistics } from '../../statistics/rule-statistics';
import type { Statistics } from '../../statistics/statistics';
import { NO_TAGS, type Tags, joinTags } from '../../statistics/tags';
import type { SampleRecorder, Timer } from '../../statistics/timer';
import { WideTable } from '../../text/wide-map';
import type { Mapper, Mapping, Observer, StatisticType } from './mapping';
import {
  type FamilyType,
  NumberFamily,
  type NumberSource,
  TimerFamily,
  TimerSeries,
  labelText,
  metricName,
} from './series';

export interface MappedSeriesOptions<Recorder> {
  readonly statistics: Statistics;
  readonly mapper: Mapper;
  /** EXTRA_TAGS: labels of every series. */
  readonly labels: Tags;
  /** Names of metrics that are not from the registry. */
  readonly reserved: ReadonlySet<string>;
  /** Called once for each metric that is omitted because its name or type conflicts with another metric. */
  readonly onConflict: (metric: string) => void;
  /** Where the durations of a series go, given the factor from milliseconds to the unit of the metric. */
  readonly recorderOf: (observer: Observer, scale: number) => Recorder;
}

/** Suffixes that a metric appends to its name. */
const SUFFIXES: Readonly<Record<FamilyType, readonly string[]>> = {
  counter: [''],
  gauge: [''],
  histogram: ['', '_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};

/** The metric and labels that a statistic is exported under. */
interface Target {
  readonly metric: string;
  /** Without braces. */
  readonly labels: string;
  readonly help: string;
  readonly mapping: Mapping | undefined;
}

interface NumberStatistic {
  readonly type: 'counter' | 'gauge';
  readonly name: string;
  readonly tags: Tags;
  readonly source: NumberSource;
}

/**
 * The statistics under the names and labels of Prometheus. A name is mapped once, when it is first exported, and what is kept of it is
 * small: the registry may have a million. Statistics of rules are exported once they have counted something.
 */
export class MappedSeries<Recorder extends SampleRecorder> {
  readonly #options: MappedSeriesOptions<Recorder>;
  readonly #families: (NumberFamily | TimerFamily<Recorder>)[] = [];
  readonly #byMetric = new WideTable<NumberFamily | TimerFamily<Recorder>>();
  /** The names that timers use, with suffixes. */
  readonly #namesOfTimers = new Set<string>();
  readonly #conflicts = new Set<string>();
  /** How many of the counters are mapped. */
  #mappedCounters = 0;
  /** By the index of the rule: a bit for each of its statistics that is mapped, and the labels of the last one. */
  readonly #mappedOfRule: number[] = [];
  readonly #labelsOfRule: string[] = [];
  readonly #mappedGauges = new Set<string>();

  constructor(options: MappedSeriesOptions<Recorder>) {
    this.#options = options;
    options.statistics.onTimer((timer) => this.#addTimer(timer));
  }

  /**
   * All families, after the statistics that are new have been mapped. Families and series that are added later are appended.
   *
   * @param isTurnDue see {@link turnBudget}
   */
  async families(isTurnDue: () => boolean): Promise<readonly (NumberFamily | TimerFamily<Recorder>)[]> {
    for (const _ of this.#mapNew()) if (isTurnDue()) await nextTurn();
    return this.#families;
  }

  /** Maps the statistics that are shown for the first time; yields after each step of the work. */
  *#mapNew(): Generator<void, void, void> {
    const { statistics } = this.#options;
    while (this.#mappedCounters < statistics.counters.length) {
      const counter = statistics.counters[this.#mappedCounters] as Counter;
      this.#mappedCounters += 1;
      const { name, tags } = counter;
      this.#addNumber({ type: 'counter', name, tags, source: () => counter.value });
      yield;
    }
    for (let index = 0; index < statistics.rules.length; index += 1) {
      this.#mapRule(index, statistics.rules[index] as RuleStatistics);
      yield;
    }
    for (const { name, tags } of statistics.gauges) {
      const fullName = joinTags(name, tags);
      if (this.#mappedGauges.has(fullName)) continue;
      this.#mappedGauges.add(fullName);
      this.#addNumber({ type: 'gauge', name, tags, source: () => statistics.readGauge(fullName) });
    }
  }

  #mapRule(index: number, rule: RuleStatistics): void {
    let mapped = (this.#mappedOfRule[index] ??= 0);
    this.#labelsOfRule[index] ??= '';
    for (let stat = 0; stat < RULE_STATS.length; stat += 1) {
      const [suffix, field] = RULE_STATS[stat] as (typeof RULE_STATS)[number];
      if (rule[field] === 0 || (mapped & (1 << stat)) !== 0) continue;
      mapped |= 1 << stat;
      const [name, source] = [`${rule.name}.${suffix}`, index * RULE_STATS.length + stat];
      const labels = this.#addNumber({ type: 'counter', name, tags: NO_TAGS, source }, this.#labelsOfRule[index]);
      if (labels !== undefined) this.#labelsOfRule[index] = labels;
    }
    this.#mappedOfRule[index] = mapped;
  }

  readonly read = (source: NumberSource): number => {
    if (typeof source === 'function') return source();
    const rule = this.#options.statistics.rules[Math.floor(source / RULE_STATS.length)] as RuleStatistics;
    return rule[(RULE_STATS[source % RULE_STATS.length] as (typeof RULE_STATS)[number])[1]];
  };

  /** @param likely a text that is kept instead of an equal one @returns the labels; undefined when the statistic is not exported */
  #addNumber({ type, name, tags, source }: NumberStatistic, likely?: string): string | undefined {
    const target = this.#target(name, type, tags);
    if (target === undefined) return undefined;
    const { metric, help, mapping } = target;
    const labels = target.labels === likely ? likely : target.labels;
    const scale = mapping?.scale ?? 1;
    const scaled = scale === 1 ? source : () => this.read(source) * scale;
    this.#family(metric, type, () => new NumberFamily(metric, type, help))?.add(labels, scaled);
    return labels;
  }

  #addTimer(timer: Timer): void {
    const target = this.#target(timer.name, 'observer', NO_TAGS);
    if (target === undefined) return;
    const { metric, labels, help, mapping } = target;
    const { mapper, recorderOf } = this.#options;
    const observer = mapping?.observer ?? mapper.unmapped;
    const scale = mapping?.scale ?? 1;
    const { kind } = observer;
    this.#family(metric, kind, () => new TimerFamily<Recorder>(metric, kind, help))
      ?.seriesOf(labels, () => new TimerSeries(labels, recorderOf(observer, scale), scale))
      .readFrom(timer);
  }

  /** Undefined when the statistic is not exported. */
  #target(name: string, type: StatisticType, tags: Tags): Target | undefined {
    const { mapper, labels: extra } = this.#options;
    const mapped = mapper.map(name, type);
    if (mapped === undefined) {
      const labels = labelText({ ...extra, ...tags });
      return { metric: metricName(name), labels, help: `The statistic ${name}.`, mapping: undefined };
    }
    const { mapping, labels } = mapped;
    // A name made only of references can expand to an empty one; the statsd exporter does not export that either.
    if (mapping.isDropped || mapped.name === '') return undefined;
    const merged = mapping.honorLabels ? { ...labels, ...extra, ...tags } : { ...extra, ...tags, ...labels };
    const help = mapping.help ?? 'Mapped from statistics.';
    return { metric: metricName(mapped.name), labels: labelText(merged), help, mapping };
  }

  /** Undefined when the metric conflicts with another one. */
  #family<Made extends NumberFamily | TimerFamily<Recorder>>(
    metric: string,
    type: Made['type'],
    make: () => Made,
  ): Made | undefined {
    const known = this.#byMetric.get(metric);
    // Each type has one class of families.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    if (known?.type === type) return known as Made;
    const names = SUFFIXES[type].map((suffix) => metric + suffix);
    if (names.some((name) => this.#isTaken(name))) {
      if (!this.#conflicts.has(metric)) this.#options.onConflict(metric);
      this.#conflicts.add(metric);
      return undefined;
    }
    const family = make();
    this.#families.push(family);
    this.#byMetric.set(metric, family);
    if (family instanceof TimerFamily) for (const name of names) this.#namesOfTimers.add(name);
    return family;
  }

  #isTaken(name: string): boolean {
    return this.#byMetric.get(name) !== undefined || this.#namesOfTimers.has(name) || this.#options.reserved.has(name);
  }
}
