import { setImmediate as nextTurn } from 'node:timers/promises';
import { turnBudget } from '../../net/turns';
import { printsStatistics } from '../../settings/checks';
import type { LoadedSettings } from '../../settings/read-settings';
import type { Settings } from '../../settings/settings';
import { Cursor } from '../../statistics/cursor';
import type { Statistics } from '../../statistics/statistics';
import { NO_TAGS } from '../../statistics/tags';
import type { SampleRecorder, Timer } from '../../statistics/timer';
import { ConditionLog } from '../../log/condition-log';
import type { Log } from '../../log/log';
import type { StatisticsOutput } from '../../streams/ports/statistics-output';
import { excerpt } from '../../text/excerpt';
import { asError, messageOf } from '../../text/thrown';
import { standardStream } from '../text-outputs';
import { type LineFormat, type Mogrifier, dogstatsdLines, jsonLines, nameTags, statsdLines } from './lines';
import { ConnectionSender, type LineSender, streamSender } from './senders';
import { UdpSender } from './udp-sender';

export interface PushOutputParts extends Pick<LoadedSettings, 'settings' | 'nameOf'> {
  readonly statistics: Statistics;
  readonly log: Log;
}

/**
 * The enabled outputs that are flushed periodically: statsd, DogStatsD, or standard output when no other output is
 * enabled.
 *
 * @throws when the socket of the daemon cannot be used, naming the variable
 */
export async function pushOutputs(parts: PushOutputParts): Promise<readonly StatisticsOutput[]> {
  const { settings, statistics, log } = parts;
  const extra = nameTags(settings.extraTags);
  const outputs: StatisticsOutput[] = [];
  function add(format: LineFormat, sender: LineSender): void {
    outputs.push(new PushOutput({ statistics, format, sender, log }));
  }
  if (settings.usePushstats) {
    add(statsdLines(extra), await senderTo(parts, settings.pushstatsProtocol, 'lines'));
  }
  if (settings.useTaggedstats) {
    const format = dogstatsdLines(extra, await mogrifiersOf(settings));
    add(format, await senderTo(parts, 'udp', 'packets'));
  }
  if (printsStatistics(settings)) add(jsonLines(extra, Date.now), streamSender('standard output', standardStream(1)));
  return outputs;
}

/** @param protocol for a host @param framing for a Unix stream socket */
async function senderTo(
  { settings, nameOf }: PushOutputParts,
  protocol: 'tcp' | 'udp',
  framing: 'lines' | 'packets',
): Promise<LineSender> {
  const { pushstatsHost: to, pushstatsPort: port } = settings;
  if ('host' in to) {
    const { host } = to;
    return protocol === 'tcp' ? new ConnectionSender({ to: { host, port } }) : new UdpSender({ host, port });
  }
  const { socketPath: path, socketType } = to;
  if (socketType === 'stream') return new ConnectionSender({ to: { path }, framing });
  try {
    // Node has no Unix datagram sockets; the native package that provides them is optional, as it lacks builds for some
    // platforms.
    const { UnixDatagramSender } = await import('./unix-datagram-sender.js');
    return new UnixDatagramSender(path);
  } catch (error) {
    const [reason] = messageOf(error).split('\n');
    throw new Error(
      `${nameOf('pushstatsHost')}=unix://${path} cannot be used: the package node-unix-socket, which ` +
        `sends datagrams to it, cannot be loaded on this machine (${reason}); install it with ` +
        'npm install --include=optional, or let the daemon listen on a stream socket, unixstream:///path',
      { cause: error },
    );
  }
}

async function mogrifiersOf({ mogrifiers }: Settings): Promise<readonly Mogrifier[]> {
  if (mogrifiers.length === 0) return [];
  const { compileRe2 } = await import('../../text/re2.js');
  // readSettings has checked the patterns.
  return mogrifiers.map(({ pattern, output, tags }) => ({ pattern: compileRe2(pattern), output, tags }));
}

export interface PushOutputOptions extends Pick<PushOutputParts, 'statistics' | 'log'> {
  readonly format: LineFormat;
  readonly sender: LineSender;
}

/** Lines written and sent between two turns of the event loop. */
const BATCH = 256;
/** Characters of a line that the log shows. */
const SHOWN_OF_LINE = 100;
/** The maximum number of durations per timer in one flush. */
const MAX_DURATIONS = 1_000;

/**
 * Sends counters as deltas, gauges as values, and timers as individual durations. What the receiver does not accept is
 * kept in bounded space: the delta of a counter grows, and durations are sampled evenly. An unreachable receiver
 * therefore costs no memory, and no count is lost. Of a batch of which it is not known how many lines arrived, counters
 * are sent again, durations are not.
 */
export class PushOutput implements StatisticsOutput {
  readonly #options: PushOutputOptions;
  readonly #cursor: Cursor;
  /** The durations since the last flush. */
  readonly #durations = new Map<Timer, EvenSamples>();
  readonly #failing: ConditionLog;
  #hasWarnedOfLength = false;

  constructor(options: PushOutputOptions) {
    this.#options = options;
    const { statistics, log, sender } = options;
    this.#failing = new ConditionLog(log, {
      begins: 'cannot send statistics; will retry',
      ends: 'resumed sending statistics',
      fields: { to: sender.destination },
    });
    this.#cursor = new Cursor(statistics);
    statistics.onTimer((timer) => {
      const samples = new EvenSamples(MAX_DURATIONS);
      timer.addRecorder(samples);
      this.#durations.set(timer, samples);
    });
  }

  async flush(): Promise<void> {
    try {
      await this.#options.sender.open?.();
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
    const { statistics, format } = this.#options;
    const lines: string[] = [];
    for (const { name, tags, read } of statistics.gauges) {
      const value = read();
      if (Number.isFinite(value)) lines.push(format({ type: 'gauge', name, tags, value }));
    }
    await this.#send(lines);
  }

  async #sendCounters(): Promise<void> {
    const { format } = this.#options;
    const isTurnDue = turnBudget();
    for (const changes of this.#cursor.changes(BATCH)) {
      const lines: string[] = [];
      for (const { name, tags, delta } of changes) {
        if (delta !== 0) lines.push(format({ type: 'counter', name, tags, value: delta }));
        // With mogrifiers, a line may take as long as a decision.
        if (isTurnDue()) await nextTurn();
      }
      await this.#send(lines);
      this.#cursor.take(changes);
      await nextTurn();
    }
  }

  async #sendDurations(): Promise<void> {
    const { format } = this.#options;
    for (const [timer, samples] of this.#durations) {
      timer.flush();
      const { values, rate } = samples.take();
      const statistic = { type: 'timer', name: timer.name, tags: NO_TAGS, rate } as const;
      for (let at = 0; at < values.length; at += BATCH) {
        await this.#send(values.slice(at, at + BATCH).map((value) => format({ ...statistic, value })));
        await nextTurn();
      }
    }
  }

  async #send(lines: readonly string[]): Promise<void> {
    const fitting = lines.filter((line) => this.#fits(line));
    if (fitting.length > 0) await this.#options.sender.send(fitting);
  }

  /** Warns once of lines that are left out. */
  #fits(line: string): boolean {
    const { sender, log } = this.#options;
    const { maxLineBytes: maxBytes = Infinity, destination: to } = sender;
    // A character has at most three bytes.
    if (line.length * 3 <= maxBytes || Buffer.byteLength(line) <= maxBytes) return true;
    if (!this.#hasWarnedOfLength) {
      const fields = { to, max_bytes: maxBytes, name: excerpt(line, SHOWN_OF_LINE) };
      log.warn('a statistic is not sent, as its name is too long for a datagram', fields);
    }
    this.#hasWarnedOfLength = true;
    return false;
  }
}

/**
 * Keeps a limited number of samples, evenly distributed over the recorded ones: at first every sample; when the limit
 * is reached, every second, then every fourth, and so on.
 */
export class EvenSamples implements SampleRecorder {
  readonly #limit: number;
  #kept: number[] = [];
  #stride = 1;
  #untilNext = 0;

  /**
   * @param limit an even number, so that the stride is still regular after every second sample of a full set is removed
   */
  constructor(limit: number) {
    this.#limit = limit;
  }

  add(values: Float64Array, count: number): void {
    let at = this.#untilNext;
    while (at < count) {
      if (this.#kept.length === this.#limit) {
        this.#kept = this.#kept.filter((_, index) => index % 2 === 0);
        this.#stride *= 2;
      }
      this.#kept.push(values[at] as number);
      at += this.#stride;
    }
    this.#untilNext = at - count;
  }

  /** Returns the kept samples, each of which represents `1 / rate` recorded ones, and starts again with none. */
  take(): { readonly values: readonly number[]; readonly rate: number } {
    const set = { values: this.#kept, rate: 1 / this.#stride };
    this.#kept = [];
    this.#stride = 1;
    this.#untilNext = 0;
    return set;
  }
}
