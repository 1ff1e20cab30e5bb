import type { Counter } from '../../statistics/counter';
import type { SampleRecorder } from '../../statistics/timer';
import type { Channel } from '../channel/channel';
import { TOPICS } from '../channel/topics';
import { REPORT, writeValues } from './statistics-frames';

/** Frames that are kept while the channel is congested: with full ones, 32,768 durations of a timer, in 256 KiB. */
const MAX_HELD = 64;
/** Frames that are sent at once, so that the primary wakes up less often. The report sends all. */
const SENT_AT_ONCE = 8;

/**
 * Sends every duration of a timer: only so are the buckets, quantiles and samples of all outputs those of a single process. Costs 8 bytes and
 * some nanoseconds for a call. When the primary does not read for long, further durations are dropped and counted.
 */
export class DurationSender implements SampleRecorder {
  readonly #channel: Channel;
  readonly #timer: number;
  readonly #dropped: Counter;
  #held: Buffer[] = [];

  /** @param timer the number of the timer */
  constructor(channel: Channel, timer: number, dropped: Counter) {
    this.#channel = channel;
    this.#timer = timer;
    this.#dropped = dropped;
  }

  add(values: Float64Array, count: number): void {
    if (this.#held.length === MAX_HELD) this.sendHeld();
    if (this.#held.length === MAX_HELD) {
      this.#dropped.add(count);
      return;
    }
    this.#held.push(writeValues(REPORT.durations, this.#timer, values.subarray(0, count)));
    if (this.#held.length >= SENT_AT_ONCE) this.sendHeld();
  }

  sendHeld(): void {
    let sent = 0;
    while (sent < this.#held.length && !this.#channel.isCongested) {
      this.#channel.send(TOPICS.statistics, this.#held[sent] as Buffer);
      sent += 1;
    }
    if (sent > 0) this.#held = this.#held.slice(sent);
  }
}
