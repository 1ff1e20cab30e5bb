import { setImmediate as nextTurn } from 'node:timers/promises';
import { Changes } from '../../../statistics/changes';
import { EvenSamples, type SampleSet } from '../../../statistics/even-samples';
import type { Statistics } from '../../../statistics/statistics';
import type { Timer } from '../../../statistics/timer';
import { ConditionLog } from '../../../streams/condition-log';
import type { Log } from '../../../streams/ports/log';
import type { StatisticsOutput } from '../../../streams/ports/statistics-output';
import { excerpt } from '../../../text/excerpt';
import { asError } from '../../../text/thrown';
import type { LineFormat } from '../lines/line-format';
import { type LineSender, PartialDeliveryError } from './line-sender';

export interface SendingOptions {
  readonly statistics: Statistics;
  readonly format: LineFormat;
  readonly sender: LineSender;
  readonly log: Log;
}

/** Lines written and sent between two turns of the event loop. */
const BATCH = 256;
/** Characters of a line that the log shows. */
const SHOWN_OF_LINE = 100;
/** The maximum number of durations per timer in one flush. */
const MAX_DURATIONS = 1_000;

/**
 * Sends counters as deltas, gauges as values, and timers as individual durations. What the receiver does not accept is kept in
 * bounded space: the delta of a counter grows, and durations are sampled evenly. An unreachable receiver therefore costs no
 * memory, and no count is lost.
 */
export class SendingOutput implements StatisticsOutput {
  readonly #options: SendingOptions;
  readonly #changes: Changes;
  readonly #timers: SampledTimer[] = [];
  readonly #failing: ConditionLog;
  #hasWarnedOfLength = false;

  constructor(options: SendingOptions) {
    this.#options = options;
    const { statistics, log, sender } = options;
    this.#failing = new ConditionLog(log, {
      begins: 'cannot send statistics; will retry',
      ends: 'resumed sending statistics',
      fields: { to: sender.destination },
    });
    this.#changes = new Changes(statistics);
    statistics.onTimer((timer) => {
      const samples = new EvenSamples(MAX_DURATIONS);
      timer.addRecorder(samples);
      this.#timers.push({ timer, samples, unsent: NO_SAMPLES });
    });
  }

  async flush(): Promise<void> {
    try {
      await this.#options.sender.open();
      // First, so that an unreachable receiver is detected before counters or durations are sent.
      await this.#sendGauges();
      await this.#sendCounters();
      await this.#sendDurations();
      this.#failing.ended();
    } catch (error) {
      this.#failing.occurred({ error: asError(error) });
    }
  }

  close(): void {
    this.#options.sender.close();
  }

  async #sendGauges(): Promise<void> {
    const { statistics, format, sender } = this.#options;
    const lines: string[] = [];
    for (const { name, tags, read } of statistics.gauges) {
      const value = read();
      if (Number.isFinite(value)) lines.push(format.gauge(name, tags, value));
    }
    if (lines.length === 0) return;
    this.#checkLengths(lines);
    await sender.send(lines);
  }

  async #sendCounters(): Promise<void> {
    const { format } = this.#options;
    for (const changes of this.#changes.batches(BATCH)) {
      if (changes.length > 0) {
        const lines = changes.map(({ name, tags, delta }) => format.counter(name, tags, delta));
        await this.#send(lines, (delivered) => this.#changes.confirmFirst(delivered));
      }
      await nextTurn();
    }
  }

  /** The durations that an earlier flush could not send precede the newer ones. */
  async #sendDurations(): Promise<void> {
    for (const sampled of this.#timers) {
      await this.#sendUnsent(sampled);
      sampled.timer.flush();
      sampled.unsent = sampled.samples.take();
      await this.#sendUnsent(sampled);
    }
  }

  async #sendUnsent(sampled: SampledTimer): Promise<void> {
    const { format } = this.#options;
    while (sampled.unsent.values.length > 0) {
      const { values, rate } = sampled.unsent;
      const lines = values.slice(0, BATCH).map((milliseconds) => format.timer(sampled.timer.name, milliseconds, rate));
      await this.#send(lines, (delivered) => (sampled.unsent = { values: values.slice(delivered), rate }));
      sampled.unsent = { values: values.slice(BATCH), rate };
      await nextTurn();
    }
  }

  /** @param onPartial called with the number of lines delivered when only the first of them were */
  async #send(lines: readonly string[], onPartial: (delivered: number) => void): Promise<void> {
    this.#checkLengths(lines);
    try {
      await this.#options.sender.send(lines);
    } catch (error) {
      if (error instanceof PartialDeliveryError) onPartial(error.delivered);
      throw error;
    }
  }

  /** Warns once of lines that the sender leaves out. */
  #checkLengths(lines: readonly string[]): void {
    const { sender, log } = this.#options;
    const { maxLineBytes, destination } = sender;
    if (maxLineBytes === undefined || this.#hasWarnedOfLength) return;
    const long = lines.find((line) => Buffer.byteLength(line) > maxLineBytes);
    if (long === undefined) return;
    this.#hasWarnedOfLength = true;
    log.warn('a statistic is not sent, as its name is too long for a datagram', {
      to: destination,
      max_bytes: maxLineBytes,
      name: excerpt(long, SHOWN_OF_LINE),
    });
  }
}

/** A timer with the durations that have not been sent. */
interface SampledTimer {
  readonly timer: Timer;
  /** Durations since the last flush. */
  readonly samples: EvenSamples;
  /** Durations of a flush that has not completed. */
  unsent: SampleSet;
}

const NO_SAMPLES: SampleSet = { values: [], rate: 1 };
