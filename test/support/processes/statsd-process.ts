import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Daemon } from './daemon';
import { freePorts } from './free-ports';
import { isListening } from './is-listening';

const STATSD = join(__dirname, '../../../.servers/statsd/node_modules/statsd/stats.js');
const BACKEND = join(__dirname, 'statsd-backend.cjs');
/** Milliseconds between two flushes of the daemon. */
const FLUSH = 200;

interface Flush {
  readonly counters: Readonly<Record<string, number>>;
  readonly timers: Readonly<Record<string, readonly number[]>>;
  readonly timerCounts: Readonly<Record<string, number>>;
  readonly gauges: Readonly<Record<string, number>>;
}

/** The statsd daemon of npm on one port of TCP and UDP, and what it has flushed, over all its runs. */
export class StatsdProcess extends Daemon {
  readonly #managementPort: number;
  /** What runs that are over have written. */
  readonly #before: string[] = [];

  private constructor(
    readonly port: number,
    managementPort: number,
  ) {
    super();
    this.#managementPort = managementPort;
  }

  static async start(): Promise<StatsdProcess> {
    return new StatsdProcess(...(await freePorts(2))).started();
  }

  async run(): Promise<void> {
    const address = '127.0.0.1';
    const config = {
      servers: ['tcp', 'udp'].map((protocol) => ({ server: `./servers/${protocol}`, address, port: this.port })),
      mgmt_address: address,
      mgmt_port: this.#managementPort,
      flushInterval: FLUSH,
      backends: [BACKEND],
      automaticConfigReload: false,
    };
    const file = join(this.folder, 'config.js');
    await writeFile(file, JSON.stringify(config));
    this.launch(process.execPath, '--require', BACKEND, STATSD, file);
    // The management port is opened last.
    await this.until('it listens', () => isListening(this.#managementPort));
  }

  /** What it has not flushed yet is lost. */
  override async crash(): Promise<void> {
    const { lines } = this;
    await super.crash();
    this.#before.push(...lines);
  }

  /** The names of all counters that it received. */
  get counters(): readonly string[] {
    return [...new Set(this.#flushes.flatMap(({ counters }) => Object.keys(counters)))];
  }

  /** The total of a counter. */
  sum(counter: string): number {
    return this.#flushes.reduce((sum, { counters }) => sum + (counters[counter] ?? 0), 0);
  }

  /** The number of durations that a timer represents, and the durations that were sent. */
  timer(name: string): { readonly count: number; readonly sent: readonly number[] } {
    return {
      count: this.#flushes.reduce((sum, { timerCounts }) => sum + (timerCounts[name] ?? 0), 0),
      sent: this.#flushes.flatMap(({ timers }) => timers[name] ?? []),
    };
  }

  /** The last value of a gauge. */
  gauge(name: string): number | undefined {
    return this.#flushes.findLast(({ gauges }) => name in gauges)?.gauges[name];
  }

  /** In how many flushes a counter grew. */
  flushesWith(counter: string): number {
    return this.#flushes.filter(({ counters }) => (counters[counter] ?? 0) > 0).length;
  }

  get #flushes(): readonly Flush[] {
    return [...this.#before, ...this.lines]
      .filter((line) => line.startsWith('{"counters"'))
      .map((line) => JSON.parse(line) as Flush);
  }
}
