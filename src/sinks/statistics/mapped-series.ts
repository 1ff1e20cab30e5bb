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

/** The registry, and how its statistics are named in the outputs that have the names and labels of Prometheus. */
export interface MappedStatistics {
  readonly statistics: Statistics;
  readonly mapper: Mapper;
  /** EXTRA_TAGS: labels of every series. */
  readonly labels: Tags;
  /** Called once for each metric that is omitted because its name or type conflicts with another metric. */
  readonly onConflict: (metric: string) => void;
}

/** Where the durations of a series go, given the factor from milliseconds to the unit of the metric. */
export type RecorderOf<Recorder> = (observer: Observer, scale: number) => Recorder;

/** Suffixes that a metric appends to its name. */
const SUFFIXES: Readonly<Record<FamilyType, readonly string[]>> = {
  counter: [''],
  gauge: [''],
  histogram: ['', '_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};

type Family<Recorder extends SampleRecorder> = NumberFamily | TimerFamily<Recorder>;

/** What a statistic is exported as. */
interface Target extends Pick<Mapping, 'observer' | 'scale'> {
  readonly metric: string;
  /** Without braces. */
  readonly labels: string;
  readonly help: string;
}

/**
 * The statistics under the names and labels of Prometheus. A name is mapped once, when it is first exported, and what
 * is kept of it is small: the registry may have a million. Statistics of rules are exported once they have counted
 * something.
 */
export class MappedSeries<Recorder extends SampleRecorder> {
  readonly #mapped: MappedStatistics;
  readonly #recorderOf: RecorderOf<Recorder>;
  readonly #reserved: ReadonlySet<string>;
  readonly #families: Family<Recorder>[] = [];
  readonly #byMetric = new WideTable<Family<Recorder>>();
  /** The names that timers use, with suffixes. */
  readonly #namesOfTimers = new Set<string>();
  readonly #conflicts = new Set<string>();
  /** How many of the counters are mapped. */
  #mappedCounters = 0;
  /** By the index of the rule: a bit for each of its statistics that is mapped, and the labels of the last one. */
  readonly #mappedOfRule: number[] = [];
  readonly #labelsOfRule: string[] = [];
  readonly #mappedGauges = new Set<string>();

  /** @param reserved names of metrics that are not from the registry */
  constructor(
    mapped: MappedStatistics,
    recorderOf: RecorderOf<Recorder>,
    reserved: ReadonlySet<string> = new Set<string>(),
  ) {
    this.#mapped = mapped;
    this.#recorderOf = recorderOf;
    this.#reserved = reserved;
    mapped.statistics.onTimer((timer) => this.#addTimer(timer));
  }

  /**
   * All families, after the statistics that are new have been mapped; undefined is a step of that work. Families and
   * series that are added later are appended.
   */
  *families(): Generator<Family<Recorder> | undefined, void, void> {
    const { statistics } = this.#mapped;
    while (this.#mappedCounters < statistics.counters.length) {
      const counter = statistics.counters[this.#mappedCounters] as Counter;
      this.#mappedCounters += 1;
      this.#addNumber('counter', this.#target(counter.name, 'counter', counter.tags), () => counter.value);
      yield undefined;
    }
    for (let index = 0; index < statistics.rules.length; index += 1) {
      this.#mapRule(index, statistics.rules[index] as RuleStatistics);
      yield undefined;
    }
    for (const { name, tags } of statistics.gauges) {
      const fullName = joinTags(name, tags);
      if (this.#mappedGauges.has(fullName)) continue;
      this.#mappedGauges.add(fullName);
      this.#addNumber('gauge', this.#target(name, 'gauge', tags), () => statistics.readGauge(fullName));
    }
    yield* this.#families;
  }

  #mapRule(index: number, rule: RuleStatistics): void {
    let mapped = (this.#mappedOfRule[index] ??= 0);
    const window = this.#mapped.mapper.hasWindowLabel ? rule.window : undefined;
    const name = window === undefined ? rule.name : rule.name.slice(0, -window.length - 1);
    const tags = window === undefined ? NO_TAGS : { window };
    for (let stat = 0; stat < RULE_STATS.length; stat += 1) {
      const [suffix, field] = RULE_STATS[stat] as (typeof RULE_STATS)[number];
      if (rule[field] === 0 || (mapped & (1 << stat)) !== 0) continue;
      mapped |= 1 << stat;
      const target = this.#target(`${name}.${suffix}`, 'counter', tags);
      if (target === undefined) continue;
      // One text for all statistics of the rule.
      const last = this.#labelsOfRule[index];
      const labels = last === target.labels ? last : target.labels;
      this.#labelsOfRule[index] = labels;
      this.#addNumber('counter', { ...target, labels }, index * RULE_STATS.length + stat);
    }
    this.#mappedOfRule[index] = mapped;
  }

  readonly read = (source: NumberSource): number => {
    if (typeof source === 'function') return source();
    const rule = this.#mapped.statistics.rules[Math.floor(source / RULE_STATS.length)] as RuleStatistics;
    return rule[(RULE_STATS[source % RULE_STATS.length] as (typeof RULE_STATS)[number])[1]];
  };

  #addNumber(type: 'counter' | 'gauge', target: Target | undefined, source: NumberSource): void {
    if (target === undefined) return;
    const { metric, labels, help, scale } = target;
    const scaled = scale === 1 ? source : () => this.read(source) * scale;
    this.#family(metric, type, () => new NumberFamily(metric, type, help))?.add(labels, scaled);
  }

  #addTimer(timer: Timer): void {
    const target = this.#target(timer.name, 'observer');
    if (target === undefined) return;
    const { metric, labels, help, observer, scale } = target;
    const { kind } = observer;
    const family = this.#family(metric, kind, () => new TimerFamily<Recorder>(metric, kind, help));
    if (family === undefined) return;
    const series = family.series.get(labels) ?? new TimerSeries(labels, this.#recorderOf(observer, scale), scale);
    family.series.set(labels, series);
    series.readFrom(timer);
  }

  /** Undefined when the statistic is not exported. */
  #target(name: string, type: StatisticType, tags = NO_TAGS): Target | undefined {
    const { mapper, labels: extra } = this.#mapped;
    const mapped = mapper.map(name, type);
    if (mapped === undefined) {
      const labels = labelText({ ...extra, ...tags });
      const help = `The statistic ${name}.`;
      return { metric: metricName(name), labels, help, observer: mapper.unmapped, scale: 1 };
    }
    const { isDropped, honorLabels, help = 'Mapped from statistics.', observer, scale } = mapped.mapping;
    // A name made only of references can expand to an empty one; the statsd exporter does not export that either.
    if (isDropped || mapped.name === '') return undefined;
    const merged = honorLabels ? { ...mapped.labels, ...extra, ...tags } : { ...extra, ...tags, ...mapped.labels };
    return { metric: metricName(mapped.name), labels: labelText(merged), help, observer, scale };
  }

  /** Undefined when the metric conflicts with another one. */
  #family<Made extends Family<Recorder>>(metric: string, type: Made['type'], make: () => Made): Made | undefined {
    const known = this.#byMetric.get(metric);
    // Each type has one class of families.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    if (known?.type === type) return known as Made;
    const names = SUFFIXES[type].map((suffix) => metric + suffix);
    if (names.some((name) => this.#isTaken(name))) {
      if (!this.#conflicts.has(metric)) this.#mapped.onConflict(metric);
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
    return this.#byMetric.get(name) !== undefined || this.#namesOfTimers.has(name) || this.#reserved.has(name);
  }
}
