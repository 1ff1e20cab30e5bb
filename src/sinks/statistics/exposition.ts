import { setImmediate as nextTurn } from 'node:timers/promises';
import { Cursor } from '../../statistics/cursor';
import type { Statistics } from '../../statistics/statistics';
import { NO_TAGS, type Tags, joinTags } from '../../statistics/tags';
import type { Timer } from '../../statistics/timer';
import type { Mapper, Mapping, StatisticType } from './mapping';
import { Family, type FamilyType, NumberSeries, TimerSeries, labelText, metricName } from './series';

export interface ExpositionOptions {
  readonly statistics: Statistics;
  readonly mapper: Mapper;
  /** EXTRA_TAGS: labels of every series. */
  readonly labels: Tags;
  /** Names of metrics that are written elsewhere on the page. */
  readonly reserved: ReadonlySet<string>;
  /** Called once for each metric that is omitted because its name or type conflicts with another metric. */
  readonly onConflict: (metric: string) => void;
  /** Monotonic time in milliseconds. */
  readonly now: () => number;
}

/** Lines written, or statistics mapped, between two turns of the event loop. */
const BATCH = 512;

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
  readonly read: () => number;
}

/**
 * The statistics in the Prometheus text format, 0.0.4. A name is mapped once, for the first page that shows it, and the text of a
 * series except its value is cached. Statistics of rules are shown once they have counted something. A page is written in chunks, with a turn of the event loop between them.
 */
export class Exposition {
  readonly #options: ExpositionOptions;
  readonly #families = new Map<string, Family>();
  /** Every name that a family uses, with suffixes. */
  readonly #names = new Set<string>();
  readonly #conflicts = new Set<string>();
  /** The counters that are mapped. */
  readonly #cursor: Cursor;
  readonly #mappedGauges = new Set<string>();

  constructor(options: ExpositionOptions) {
    this.#options = options;
    this.#cursor = new Cursor(options.statistics);
    options.statistics.onTimer((timer) => this.#addTimer(timer));
  }

  /** The chunks of a page. */
  async *page(): AsyncGenerator<string, void, void> {
    await this.#mapNew();
    let chunk = '';
    let lines = 0;
    // Families and series that are added in the meantime are appended; whether this page includes them does not matter.
    for (const family of this.#families.values()) {
      chunk += family.head;
      for (const series of family.series) {
        chunk += series.write();
        lines += series.lines;
        if (lines < BATCH) continue;
        yield chunk;
        chunk = '';
        lines = 0;
        // Waiting for the receiver alone does not yield to the event loop: mostly its buffer has room.
        await nextTurn();
      }
    }
    if (chunk !== '') yield chunk;
  }

  /** Maps the statistics that are shown for the first time, with a turn of the event loop after every {@link BATCH} of them. */
  async #mapNew(): Promise<void> {
    const { statistics } = this.#options;
    for (const changes of this.#cursor.changes(BATCH)) {
      // Before the turn, because another page may begin in it.
      this.#cursor.take(changes);
      for (const { name, tags, readNew } of changes) {
        if (readNew !== undefined) this.#addNumber({ type: 'counter', name, tags, read: readNew });
      }
      await nextTurn();
    }
    for (const { name, tags } of statistics.gauges) {
      const fullName = joinTags(name, tags);
      if (this.#mappedGauges.has(fullName)) continue;
      this.#mappedGauges.add(fullName);
      this.#addNumber({ type: 'gauge', name, tags, read: () => statistics.readGauge(fullName) });
    }
  }

  #addNumber({ type, name, tags, read }: NumberStatistic): void {
    const target = this.#target(name, type, tags);
    if (target === undefined) return;
    const { metric, labels, help, mapping } = target;
    this.#family(metric, type, help)
      ?.seriesOf(labels, () => new NumberSeries(metric, labels))
      .readFrom(read, mapping?.scale ?? 1);
  }

  #addTimer(timer: Timer): void {
    const target = this.#target(timer.name, 'observer', NO_TAGS);
    if (target === undefined) return;
    const { metric, labels, help, mapping } = target;
    const { mapper, now } = this.#options;
    const observer = mapping?.observer ?? mapper.unmapped;
    const scale = mapping?.scale ?? 1;
    this.#family(metric, observer.kind, help)
      ?.seriesOf(labels, () => new TimerSeries({ metric, labels, observer, scale, now }))
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
  #family(metric: string, type: FamilyType, help: string): Family | undefined {
    const known = this.#families.get(metric);
    if (known?.type === type) return known;
    const names = SUFFIXES[type].map((suffix) => metric + suffix);
    if (names.some((name) => this.#names.has(name) || this.#options.reserved.has(name))) {
      if (!this.#conflicts.has(metric)) this.#options.onConflict(metric);
      this.#conflicts.add(metric);
      return undefined;
    }
    const family = new Family(metric, type, help);
    this.#families.set(metric, family);
    for (const name of names) this.#names.add(name);
    return family;
  }
}
