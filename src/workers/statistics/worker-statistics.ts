import type { Counter } from '../../statistics/counter';
import { RULE_STATS, type RuleStatistics } from '../../statistics/rule-statistics';
import type { Statistics } from '../../statistics/statistics';
import type { Timer } from '../../statistics/timer';
import type { Channel } from '../channel/channel';
import { TOPICS } from '../channel/topics';
import type { MergedGauge, MergedGauges } from './merged-gauges';
import {
  FLUSH,
  PLACES,
  REPORT,
  type SeriesName,
  readChanges,
  readNames,
  readNumber,
  readPartOfNames,
  readValues,
  writeNumber,
} from './statistics-frames';

/** Flushes that a worker may leave unanswered before it is asked for no more. */
const MAX_UNANSWERED = 16;

/** The reports of one worker: adds what it counts to the registry of the primary. */
export class WorkerStatistics {
  readonly #statistics: Statistics;
  readonly #merged: MergedGauges;
  readonly #channel: Channel;
  /** By the numbers of the worker. Runtime keys that the instance has no room for share the counters of their roll-up. */
  readonly #counters: Counter[] = [];
  readonly #rules: RuleStatistics[] = [];
  readonly #timers: Timer[] = [];
  readonly #gauges: (MergedGauge | undefined)[] = [];
  /** Of the names whose last part has not arrived: the parts of one text follow each other. */
  #partsOfNames: Buffer[] = [];
  /** By number: who waits for the answer. */
  readonly #flushes = new Map<number, (() => void)[]>();
  #lastFlush = 0;
  #hasEnded = false;

  constructor(statistics: Statistics, merged: MergedGauges, channel: Channel) {
    this.#statistics = statistics;
    this.#merged = merged;
    this.#channel = channel;
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.frames(TOPICS.statistics).subscribe({ next: (body) => this.#arrived(body), complete: () => this.#ended() });
  }

  /** Asks the worker for a report; resolves when all of it is in the registry, or the worker has ended. */
  flush(): Promise<void> {
    if (this.#hasEnded) return Promise.resolve();
    return new Promise((resolve) => {
      const last = this.#flushes.get(this.#lastFlush);
      if (last !== undefined && this.#flushes.size >= MAX_UNANSWERED) {
        // The worker is late anyway, and its next report will be complete.
        last.push(resolve);
        return;
      }
      this.#lastFlush = (this.#lastFlush + 1) >>> 0;
      this.#flushes.set(this.#lastFlush, [resolve]);
      this.#channel.send(TOPICS.statistics, writeNumber(FLUSH, this.#lastFlush));
    });
  }

  #arrived(body: Buffer): void {
    switch (body[0]) {
      case REPORT.names: {
        const names = readNames([...this.#partsOfNames, readPartOfNames(body)]);
        this.#partsOfNames = [];
        for (const series of names) this.#named(series);
        break;
      }
      case REPORT.partOfNames: {
        this.#partsOfNames.push(Buffer.from(readPartOfNames(body)));
        break;
      }
      case REPORT.changes: {
        this.#changed(body);
        break;
      }
      case REPORT.gauges: {
        readValues(body).forEach((value, number) => this.#gauges[number]?.set(this, value));
        break;
      }
      case REPORT.durations: {
        const values = readValues(body);
        this.#timers[readNumber(body)]?.recordAll(values, values.length);
        break;
      }
      default: {
        const flush = readNumber(body);
        for (const resolve of this.#flushes.get(flush) ?? []) resolve();
        this.#flushes.delete(flush);
      }
    }
  }

  #named(series: SeriesName): void {
    const [kind, number, name] = series;
    if (kind === 'counter') this.#counters[number] = this.#statistics.adoptCounter(name, series[3] ?? undefined);
    else if (kind === 'rule') this.#rules[number] = this.#statistics.adoptRule(name, series[3] ?? undefined);
    else if (kind === 'timer') this.#timers[number] = this.#statistics.timer(name);
    else this.#gauges[number] = this.#merged.gauge(name, series[3]);
  }

  #changed(body: Buffer): void {
    const { places, deltas } = readChanges(body);
    for (let at = 0; at < places.length; at += 1) {
      const place = places[at] as number;
      const delta = deltas[at] as number;
      const number = Math.floor(place / PLACES);
      const stat = RULE_STATS[(place % PLACES) - 1];
      if (stat === undefined) this.#counters[number]?.add(delta);
      else (this.#rules[number] as RuleStatistics)[stat[1]] += delta;
    }
  }

  #ended(): void {
    this.#hasEnded = true;
    for (const gauge of this.#gauges) gauge?.remove(this);
    for (const resolve of [...this.#flushes.values()].flat()) resolve();
    this.#flushes.clear();
  }
}
