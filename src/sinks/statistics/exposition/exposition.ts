import { setImmediate as nextTurn } from 'node:timers/promises';
import { RULE_STATS } from '../../../statistics/rule-statistics';
import type { Statistics } from '../../../statistics/statistics';
import { NO_TAGS, type Tags } from '../../../statistics/tags';
import type { Timer } from '../../../statistics/timer';
import { Family, type FamilyType, NumberSeries } from './family';
import { labelText, metricName } from './label-text';
import type { Mapped, Mapper, StatisticType } from '../mapping/mapping';
import { timerSeries } from './timer-series';

export interface ExpositionOptions {
  readonly statistics: Statistics;
  readonly mapper: Mapper;
  /** EXTRA_TAGS: labels of every series. */
  readonly labels: Tags;
  /** Names of metrics that others write. */
  readonly reserved: ReadonlySet<string>;
  /** Told once for each metric whose statistics do not fit together, or not beside another. */
  readonly onConflict: (metric: string) => void;
  /** In milliseconds, from any beginning. */
  readonly now: () => number;
}

/** Lines that are written, and statistics that are mapped, before other work has its turn. */
const LINES = 512;

/** Suffixes of the names that a metric takes beside its own. */
const SUFFIXES: Readonly<Record<FamilyType, readonly string[]>> = {
  counter: [''],
  gauge: [''],
  histogram: ['', '_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};

/**
 * The statistics in the text format of Prometheus, 0.0.4. Names are mapped once, when a statistic first moves; the text of a
 * series but for its value is kept; a page is written in chunks between which the event loop turns.
 */
export class Exposition {
  readonly #options: ExpositionOptions;
  readonly #families = new Map<string, Family>();
  /** By each name that a family takes. */
  readonly #claims = new Map<string, Family>();
  readonly #conflicts = new Set<string>();
  readonly #mappedCounters: boolean[] = [];
  readonly #mappedGauges = new Set<string>();
  /** One bit for each statistic of a rule. */
  readonly #mappedRules: number[] = [];

  constructor(options: ExpositionOptions) {
    this.#options = options;
    options.statistics.watchTimers((timer) => this.#addTimer(timer));
  }

  /** A page, chunk by chunk. */
  async *page(): AsyncGenerator<string, void, void> {
    for (const _ of this.#mapWhatMoved()) await nextTurn();
    let chunk = '';
    let lines = 0;
    // What others add meanwhile comes at the end of each list, and is written or not: either is right.
    for (const family of this.#families.values()) {
      chunk += family.head;
      for (const series of family.series) {
        chunk += series.write();
        lines += series.lines;
        if (lines < LINES) continue;
        yield chunk;
        chunk = '';
        lines = 0;
        // Waiting for the receiver does not let others have their turn: mostly there is nothing to wait for.
        await nextTurn();
      }
    }
    if (chunk !== '') yield chunk;
  }

  /** Yields now and then. */
  *#mapWhatMoved(): Generator<void, void, void> {
    const { counters, gauges, rules } = this.#options.statistics;
    let looked = 0;
    for (let index = 0; index < counters.length; index += 1) {
      const counter = counters[index] as (typeof counters)[number];
      if (counter.value !== 0 && this.#mappedCounters[index] !== true) {
        this.#mappedCounters[index] = true;
        this.#addNumber('counter', counter.name, counter.tags, () => counter.value);
      }
      looked += 1;
      if (looked % LINES === 0) yield;
    }
    for (const { name } of gauges) {
      if (this.#mappedGauges.has(name)) continue;
      this.#mappedGauges.add(name);
      this.#addNumber('gauge', name, NO_TAGS, () => this.#options.statistics.readGauge(name));
    }
    for (let index = 0; index < rules.length; index += 1) {
      const rule = rules[index] as (typeof rules)[number];
      const before = this.#mappedRules[index] ?? 0;
      let mapped = before;
      for (const [bit, [stat, field]] of RULE_STATS.entries()) {
        if (rule[field] === 0 || (mapped & (1 << bit)) !== 0) continue;
        mapped |= 1 << bit;
        this.#addNumber('counter', `${rule.name}.${stat}`, NO_TAGS, () => rule[field]);
        looked += 1;
      }
      this.#mappedRules[index] = mapped;
      looked += 1;
      if (looked >= LINES) {
        looked = 0;
        yield;
      }
    }
  }

  #addNumber(type: 'counter' | 'gauge', name: string, tags: Tags, read: () => number): void {
    const place = this.#place(name, type, tags);
    if (place === undefined) return;
    const family = this.#family(place.metric, type, place.help);
    family
      ?.seriesOf(place.labels, () => new NumberSeries(place.metric, place.labels))
      .readFrom(read, place.mapped?.mapping.scale ?? 1);
  }

  #addTimer(timer: Timer): void {
    const place = this.#place(timer.name, 'observer', NO_TAGS);
    if (place === undefined) return;
    const { metric, labels, help, mapped } = place;
    const { mapper, now } = this.#options;
    const observer = mapped?.mapping.observer ?? mapper.unmapped;
    function make() {
      return timerSeries(metric, labels, observer, mapped?.mapping.scale ?? 1, now);
    }
    this.#family(metric, observer.kind, help)?.seriesOf(labels, make).readFrom(timer);
  }

  /** Where a statistic goes; undefined when it is dropped. */
  #place(name: string, type: StatisticType, tags: Tags) {
    const { mapper, labels: extra } = this.#options;
    const mapped: Mapped | undefined = mapper.map(name, type);
    if (mapped === undefined) {
      const help = `The statistic ${name}.`;
      return { metric: metricName(name), labels: labelText({ ...extra, ...tags }), help, mapped };
    }
    const { mapping, labels } = mapped;
    // A name can be empty when it is made of groups only; the exporter leaves such out, too.
    if (mapping.isDropped || mapped.name === '') return undefined;
    const own = mapping.honorLabels ? { ...labels, ...extra, ...tags } : { ...extra, ...tags, ...labels };
    const help = mapping.help ?? 'Mapped from statistics.';
    return { metric: metricName(mapped.name), labels: labelText(own), help, mapped };
  }

  #family(metric: string, type: FamilyType, help: string): Family | undefined {
    const known = this.#families.get(metric);
    if (known?.type === type) return known;
    const names = SUFFIXES[type].map((suffix) => metric + suffix);
    if (names.some((name) => this.#claims.has(name) || this.#options.reserved.has(name))) {
      if (!this.#conflicts.has(metric)) this.#options.onConflict(metric);
      this.#conflicts.add(metric);
      return undefined;
    }
    const family = new Family(metric, type, help);
    this.#families.set(metric, family);
    for (const name of names) this.#claims.set(name, family);
    return family;
  }
}
