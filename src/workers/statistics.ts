import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Observable,
  type SchedulerLike,
  asyncScheduler,
  defer,
  lastValueFrom,
  merge,
  takeUntil,
  timer,
} from 'rxjs';
import { shared } from '../net/turns';
import { type Change, Cursor } from '../statistics/cursor';
import { RULE_COUNTS } from '../statistics/rule-statistics';
import type { Statistics } from '../statistics/statistics';
import { type Tags, joinTags } from '../statistics/tags';
import type { Timer } from '../statistics/timer';
import { flushing } from '../streams/flushing';
import type { Channel } from './channel';

/** Milliseconds between two reports of the workers. */
const INTERVAL = 1_000;
/**
 * Milliseconds that a reader of statistics waits for the workers; of those that take longer it gets the values of their
 * last report.
 */
const DEADLINE = 250;
/** Changes that are reported between two turns of the event loop. */
const CHANGES_PER_TURN = 512;
/** Characters of the names in a message from which on it is sent. */
const MESSAGE_SIZE = 64 * 1024;

/** By how much a counter has grown; the statistics of a rule in the order of `RULE_COUNTS`. */
type CounterGrowth = readonly [fullName: string, delta: number];
type RuleGrowth = readonly [name: string, deltas: number[], rollUp: string | null, window: string | null];

const NOTHING: readonly number[] = RULE_COUNTS.map(() => 0);

interface Growth {
  readonly counters: CounterGrowth[];
  readonly rules: RuleGrowth[];
}

/** From a worker. */
interface StatisticsMessage extends Partial<Growth> {
  readonly gauges?: readonly (readonly [name: string, value: number, tags: Tags])[];
  /** The values are doubles in Base64: as numbers in JSON, they would take 0.3 µs each instead of 0.03. */
  readonly durations?: readonly [timer: string, values: string];
}

/**
 * Reports the statistics of a worker to the primary: by how much each counter has grown since the last report, and the
 * values of gauges. The primary requests each report, so that none pile up when it is slow; of requests that arrive
 * during a report, the next one is for all. Durations are sent as they are recorded, each of them: only so are the
 * buckets, quantiles and samples of all outputs those of a single process.
 */
export class StatisticsReporter {
  readonly #statistics: Statistics;
  readonly #channel: Channel;
  readonly #cursor: Cursor;
  readonly #timers: Timer[] = [];

  constructor(statistics: Statistics, channel: Channel) {
    this.#statistics = statistics;
    this.#channel = channel;
    this.#cursor = new Cursor(statistics, RULE_COUNTS);
    const dropped = statistics.counter('ratelimit.workers.dropped_durations');
    statistics.onTimer((recorded) => {
      this.#timers.push(recorded);
      recorded.addRecorder({
        add: (values, count) => {
          // The primary has not read for long.
          if (channel.isCongested) dropped.add(count);
          else
            this.#send({
              durations: [recorded.name, Buffer.from(values.buffer, values.byteOffset, count * 8).toString('base64')],
            });
        },
      });
    });
    channel.serve(
      'report_statistics',
      shared(() => this.report()),
    );
  }

  /** Reports what has changed until now; resolves when it has been sent. Never rejects. */
  async report(): Promise<void> {
    for (const changes of this.#cursor.changes(CHANGES_PER_TURN)) {
      this.#cursor.take(changes);
      for (const growth of growthsOf(changes)) {
        this.#send(growth);
        await this.#channel.sent();
      }
      await nextTurn();
    }
    for (const recorded of this.#timers) recorded.flush();
    const { gauges } = this.#statistics;
    this.#send({ gauges: Array.from(gauges, ({ name, tags, read }) => [name, read(), tags] as const) });
  }

  #send(message: StatisticsMessage): void {
    this.#channel.notify('statistics', message);
  }
}

/**
 * The changes, in messages of bounded size: those of a rule in one, so that they never disagree, also when the worker
 * ends.
 */
function* growthsOf(changes: readonly Change[]): Generator<Growth, void, void> {
  let growth: Growth = { counters: [], rules: [] };
  let size = 0;
  for (const { name, tags, delta, rule, position } of changes) {
    // The statistics of a rule follow one another.
    const isNext = rule === undefined || growth.rules.at(-1)?.[0] !== rule.name;
    if (isNext && size >= MESSAGE_SIZE) {
      yield growth;
      growth = { counters: [], rules: [] };
      size = 0;
    }
    size += name.length;
    if (rule === undefined) growth.counters.push([joinTags(name, tags), delta]);
    else {
      if (isNext) growth.rules.push([rule.name, NOTHING.slice(), rule.rollUp ?? null, rule.window ?? null]);
      (growth.rules.at(-1) as RuleGrowth)[1][position % RULE_COUNTS.length] = delta;
    }
  }
  yield growth;
}

/**
 * Adds the statistics of the workers to those of the primary, which are then those of the instance. What a worker has
 * counted stays when it ends, its gauges go. A worker that ends without a last report loses what it has counted since
 * the one before.
 */
export class MergedStatistics {
  readonly #statistics: Statistics;
  readonly #scheduler: SchedulerLike;
  readonly #gauges = new Map<string, MergedGauge | undefined>();
  /** The channels of the workers that run. */
  readonly #channels = new Set<Channel>();

  constructor(statistics: Statistics, scheduler: SchedulerLike = asyncScheduler) {
    this.#statistics = statistics;
    this.#scheduler = scheduler;
  }

  /** Adds a worker, before its channel is read. It is removed when its channel closes. */
  add(channel: Channel): void {
    this.#channels.add(channel);
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.notifications<StatisticsMessage>('statistics').subscribe({
      next: (message) => this.#arrived(channel, message),
      complete: () => {
        for (const gauge of this.#gauges.values()) gauge?.ended(channel);
        this.#channels.delete(channel);
      },
    });
  }

  /** Has every worker report; resolves when all that run have, at the latest after `deadline` milliseconds. */
  async collect(deadline = DEADLINE): Promise<void> {
    const reports = Array.from(this.#channels, (channel) => channel.request('report_statistics', null));
    const late$ = timer(deadline, this.#scheduler);
    await lastValueFrom(merge(...reports).pipe(takeUntil(late$)), { defaultValue: undefined });
  }

  /** Collects every second while there is a subscriber. */
  collecting(): Observable<never> {
    return flushing(() => defer(() => this.collect()), INTERVAL, this.#scheduler);
  }

  #arrived(channel: Channel, { counters, rules, gauges, durations }: StatisticsMessage): void {
    const statistics = this.#statistics;
    for (const [fullName, delta] of counters ?? []) statistics.counter(fullName).add(delta);
    for (const [name, deltas, rollUp, window] of rules ?? []) {
      const rule = statistics.adoptRule({ name, rollUp: rollUp ?? undefined, window: window ?? undefined });
      for (let stat = 0; stat < RULE_COUNTS.length; stat += 1) {
        rule[(RULE_COUNTS[stat] as (typeof RULE_COUNTS)[number])[1]] += deltas[stat] as number;
      }
    }
    for (const [name, value, tags] of gauges ?? []) this.#gauge(name, tags)?.set(channel, value);
    if (durations !== undefined) {
      const values = new Float64Array(Uint8Array.from(Buffer.from(durations[1], 'base64')).buffer);
      statistics.timer(durations[0]).recordAll(values, values.length);
    }
  }

  /**
   * The gauge that merges those of this name. A gauge that the primary has itself is that of the instance: what workers
   * report under its name is ignored, except for the totals, to which they are added.
   */
  #gauge(name: string, tags: Tags): MergedGauge | undefined {
    const fullName = joinTags(name, tags);
    if (this.#gauges.has(fullName)) return this.#gauges.get(fullName);
    const merging = MERGING[name] ?? 'sum';
    const own = [...this.#statistics.gauges].find((gauge) => joinTags(gauge.name, gauge.tags) === fullName);
    const merged = own === undefined || merging === 'total' ? new MergedGauge(merging, own?.read) : undefined;
    this.#gauges.set(fullName, merged);
    if (merged !== undefined) this.#statistics.gauge(name, () => merged.read(), tags);
    return merged;
  }
}

/** How the values of the workers become one. Gauges that are not listed are added up. */
type Merging = 'sum' | 'total' | 'largest' | 'mean';

const MERGING: Readonly<Record<string, Merging>> = {
  // Totals count since the start: what a worker has counted stays when it ends.
  'ratelimit.localcache.lookupCount': 'total',
  'ratelimit.localcache.hitCount': 'total',
  'ratelimit.localcache.missCount': 'total',
  'ratelimit.localcache.expiredCount': 'total',
  'ratelimit.localcache.evacuateCount': 'total',
  'ratelimit.localcache.overwriteCount': 'total',
  'ratelimit.statistics.rolled_up': 'total',
  'ratelimit.pipeline.window_size': 'largest',
  'ratelimit.store.breaker_open': 'largest',
  // A time.
  'ratelimit.localcache.averageAccessTime': 'mean',
};

/** The values of one gauge in the workers that run, and in the primary. */
class MergedGauge {
  readonly #merging: Merging;
  readonly #values = new Map<object | 'ended', number>();
  readonly #own: () => number;

  constructor(merging: Merging, own: () => number = () => 0) {
    this.#merging = merging;
    this.#own = own;
  }

  set(worker: object, value: number): void {
    this.#values.set(worker, value);
  }

  ended(worker: object): void {
    const [last, others] = [this.#values.get(worker) ?? 0, this.#values.get('ended') ?? 0];
    this.#values.delete(worker);
    if (this.#merging === 'total') this.#values.set('ended', others + last);
  }

  read(): number {
    const values = [...this.#values.values(), this.#own()];
    if (this.#merging === 'largest') return Math.max(...values);
    const sum = values.reduce((total, value) => total + value, 0);
    return this.#merging === 'mean' ? sum / Math.max(1, values.filter((value) => value > 0).length) : sum;
  }
}
