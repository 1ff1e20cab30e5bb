import { setImmediate as nextTurn } from 'node:timers/promises';
import { Changes } from '../../../statistics/changes';
import { EvenSamples, type SampleSet } from '../../../statistics/even-samples';
import type { Statistics } from '../../../statistics/statistics';
import type { Timer } from '../../../statistics/timer';
import type { Log } from '../../../streams/ports/log';
import type { StatisticsOutput } from '../../../streams/ports/statistics-output';
import type { LineFormat } from '../lines/line-format';
import { type LineSender, TakenInPart } from './line-sender';
import { asError } from '../../../text/thrown';

export interface SendingOptions {
  readonly statistics: Statistics;
  readonly format: LineFormat;
  readonly sender: LineSender;
  readonly log: Log;
}

/** Lines that are written and sent at a time; other work goes between. */
const LINES = 256;
/** Durations of one timer that are sent in a flush, at most. */
const DURATIONS = 1_000;

/**
 * Sends counters as what they have grown by, gauges as they are, and timers as their single durations. What the receiver did
 * not take stays with us: counters as one larger delta later, durations as an even choice of them; so a receiver that is away
 * costs no memory and loses nothing that it could have had.
 */
export class SendingOutput implements StatisticsOutput {
  readonly #options: SendingOptions;
  readonly #changes: Changes;
  readonly #durations: KeptDurations[] = [];
  #isAway = false;

  constructor(options: SendingOptions) {
    this.#options = options;
    const { statistics } = options;
    this.#changes = new Changes(statistics);
    statistics.watchTimers((timer) => {
      const samples = new EvenSamples(DURATIONS);
      timer.giveTo(samples);
      this.#durations.push({ timer, samples, unsent: NONE });
    });
  }

  async flush(): Promise<void> {
    const { sender, log } = this.#options;
    try {
      await sender.open();
      // First, so that a receiver that refuses does so before there is anything to lose.
      await this.#sendGauges();
      await this.#sendCounters();
      await this.#sendDurations();
    } catch (error) {
      if (!this.#isAway) {
        log.warn('statistics are not taken; they are kept for later', {
          to: sender.destination,
          error: asError(error),
        });
      }
      this.#isAway = true;
      return;
    }
    if (this.#isAway) log.warn('statistics are taken again', { to: sender.destination });
    this.#isAway = false;
  }

  close(): void {
    this.#options.sender.close();
  }

  async #sendGauges(): Promise<void> {
    const { statistics, format, sender } = this.#options;
    const lines: string[] = [];
    for (const { name, read } of statistics.gauges) {
      const value = read();
      if (Number.isFinite(value)) lines.push(format.gauge(name, value));
    }
    if (lines.length > 0) await sender.send(lines);
  }

  async #sendCounters(): Promise<void> {
    const { format } = this.#options;
    for (const changes of this.#changes.batches(LINES)) {
      if (changes.length > 0) {
        const lines = changes.map(({ name, tags, delta }) => format.counter(name, tags, delta));
        await this.#send(lines, (taken) => this.#changes.takeFirst(taken));
      }
      await nextTurn();
    }
  }

  /** What an earlier flush could not send goes before what has come since. */
  async #sendDurations(): Promise<void> {
    for (const kept of this.#durations) {
      await this.#sendUnsent(kept);
      kept.timer.settle();
      kept.unsent = kept.samples.take();
      await this.#sendUnsent(kept);
    }
  }

  async #sendUnsent(kept: KeptDurations): Promise<void> {
    const { format } = this.#options;
    while (kept.unsent.values.length > 0) {
      const { values, rate } = kept.unsent;
      const lines = values.slice(0, LINES).map((milliseconds) => format.timer(kept.timer.name, milliseconds, rate));
      await this.#send(lines, (taken) => (kept.unsent = { values: values.slice(taken), rate }));
      kept.unsent = { values: values.slice(LINES), rate };
      await nextTurn();
    }
  }

  /** @param onPart is told how many of the lines were taken when the rest is refused */
  async #send(lines: readonly string[], onPart: (taken: number) => void): Promise<void> {
    try {
      await this.#options.sender.send(lines);
    } catch (error) {
      if (error instanceof TakenInPart) onPart(error.taken);
      throw error;
    }
  }
}

/** The durations of one timer that this output sends. */
interface KeptDurations {
  readonly timer: Timer;
  readonly samples: EvenSamples;
  unsent: SampleSet;
}

const NONE: SampleSet = { values: [], rate: 1 };
