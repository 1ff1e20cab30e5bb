import { setImmediate as nextTurn } from 'node:timers/promises';
import { firstValueFrom, race } from 'rxjs';
import { RULE_STATS } from '../../statistics/rule-statistics';
import type { Statistics } from '../../statistics/statistics';
import type { Timer } from '../../statistics/timer';
import type { Channel } from '../channel/channel';
import { TOPICS } from '../channel/topics';
import { ChangeFrames, sendNames } from './change-frames';
import { DurationSender } from './duration-sender';
import { PLACES, REPORT, readNumber, writeNumber, writeValues } from './statistics-frames';

/** Counters or rules that are examined between two turns of the event loop. */
const EXAMINED_PER_TURN = 4096;

interface ReportedTimer {
  readonly timer: Timer;
  readonly sender: DurationSender;
}

/**
 * Reports the statistics of a worker to the primary: a name once, with a number, then by how much each counter has grown, every
 * duration, and the values of gauges. The primary asks for reports, so that none pile up when it is slow.
 */
export class StatisticsReporter {
  readonly #statistics: Statistics;
  readonly #channel: Channel;
  readonly #frames: ChangeFrames;
  /** The reported values by place. */
  #reported = new Float64Array(1024);
  #namedCounters = 0;
  #namedGauges = 0;
  readonly #timers: ReportedTimer[] = [];
  #report: Promise<void> | undefined;
  #following: Promise<void> | undefined;

  constructor(statistics: Statistics, channel: Channel) {
    this.#statistics = statistics;
    this.#channel = channel;
    this.#frames = new ChangeFrames(channel);
    const dropped = statistics.counter('ratelimit.workers.dropped_durations');
    statistics.onTimer((timer) => {
      const number = this.#timers.length;
      sendNames(channel, [['timer', number, timer.name]]);
      const sender = new DurationSender(channel, number, dropped);
      this.#timers.push({ timer, sender });
      timer.addRecorder(sender);
    });
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.frames(TOPICS.statistics).subscribe((body) => {
      const flush = readNumber(body);
      void this.report().then(() => channel.send(TOPICS.statistics, writeNumber(REPORT.flushed, flush)));
    });
  }

  /** Reports what has changed until now; resolves when it has been passed to the channel. Never rejects. */
  report(): Promise<void> {
    if (this.#report === undefined) return (this.#report = this.#run());
    // The one that is in progress may have passed a counter that has changed since.
    this.#following ??= this.#report.then(() => {
      this.#following = undefined;
      return (this.#report = this.#run());
    });
    return this.#following;
  }

  async #run(): Promise<void> {
    await this.#reportCounters();
    await this.#reportRules();
    this.#frames.send();
    this.#reportGauges();
    for (const { timer, sender } of this.#timers) {
      timer.flush();
      sender.sendHeld();
    }
    if (this.#following === undefined) this.#report = undefined;
  }

  async #reportCounters(): Promise<void> {
    const { counters } = this.#statistics;
    for (let index = 0; index < counters.length; index += 1) {
      const { fullName, value, rollUp } = counters[index] as (typeof counters)[number];
      if (index === this.#namedCounters) {
        this.#frames.name(['counter', index, fullName, rollUp ?? null]);
        this.#namedCounters += 1;
      }
      this.#compare(index * PLACES, value);
      if (this.#isPauseDue(index)) await this.#pause();
    }
  }

  async #reportRules(): Promise<void> {
    const { rules } = this.#statistics;
    for (let index = 0; index < rules.length; index += 1) {
      const rule = rules[index] as (typeof rules)[number];
      const first = index * PLACES + 1;
      const isUnnamed = RULE_STATS.every((_, stat) => (this.#reported[first + stat] ?? 0) === 0);
      if (isUnnamed && RULE_STATS.some(([, field]) => rule[field] !== 0)) {
        this.#frames.name(['rule', index, rule.name, rule.rollUp ?? null]);
      }
      for (let stat = 0; stat < RULE_STATS.length; stat += 1) {
        this.#compare(first + stat, rule[(RULE_STATS[stat] as (typeof RULE_STATS)[number])[1]]);
      }
      if (this.#isPauseDue(index)) await this.#pause();
    }
  }

  #compare(place: number, value: number): void {
    const delta = value - (this.#reported[place] ?? 0);
    if (delta === 0) return;
    if (place >= this.#reported.length) this.#growTo(place);
    this.#reported[place] = value;
    this.#frames.change(place, delta);
  }

  #growTo(place: number): void {
    const reported = new Float64Array(Math.max(place + 1, this.#reported.length * 2));
    reported.set(this.#reported);
    this.#reported = reported;
  }

  #reportGauges(): void {
    const gauges = [...this.#statistics.gauges];
    // A gauge that replaces another of its name keeps its number, that of its position.
    const named = gauges.slice(this.#namedGauges).map(({ name, tags }, index) => {
      return ['gauge', this.#namedGauges + index, name, tags] as const;
    });
    this.#namedGauges = gauges.length;
    if (named.length > 0) sendNames(this.#channel, named);
    const values = Float64Array.from(gauges, ({ read }) => read());
    this.#channel.send(TOPICS.statistics, writeValues(REPORT.gauges, 0, values));
  }

  /** Also before the next turn when names are so long that the channel would be closed because of what waits. */
  #isPauseDue(index: number): boolean {
    return index % EXAMINED_PER_TURN === EXAMINED_PER_TURN - 1 || this.#channel.isCongested;
  }

  /** Lets other work run, and waits until the primary has read what was sent. */
  async #pause(): Promise<void> {
    this.#frames.send();
    await nextTurn();
    if (!this.#channel.isCongested) return;
    await firstValueFrom(race(this.#channel.drained$, this.#channel.closed$), { defaultValue: undefined });
  }
}
