import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from './free-ports';
import { isListening } from './is-listening';
import { KeptProcess } from './kept-process';
import { until } from '../waiting/until';

const DAEMON = join(__dirname, '../../../.servers/statsd/node_modules/statsd/stats.js');
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
export class StatsdProcess implements AsyncDisposable {
  readonly #managementPort: number;
  readonly #folder: string;
  #kept: KeptProcess | undefined;
  /** Of runs that are over. */
  readonly #before: string[] = [];

  private constructor(
    readonly port: number,
    managementPort: number,
    folder: string,
  ) {
    this.#managementPort = managementPort;
    this.#folder = folder;
  }

  static async start(): Promise<StatsdProcess> {
    const [port, managementPort] = await freePorts(2);
    const daemon = new StatsdProcess(port, managementPort, await mkdtemp(join(tmpdir(), 'weir-statsd-')));
    await daemon.run();
    return daemon;
  }

  /** Starts the daemon, also again after it was killed. */
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
    const file = join(this.#folder, 'config.js');
    await writeFile(file, JSON.stringify(config));
    this.#kept = new KeptProcess([process.execPath, '--require', BACKEND, DAEMON, file]);
    // The management port is opened last.
    await this.until('it listens', () => isListening(this.#managementPort));
  }

  /** Kills the daemon: what it has not flushed yet is lost. */
  async crash(): Promise<void> {
    await this.#kept?.crash();
    this.#before.push(...(this.#kept?.lines ?? []));
    this.#kept = undefined;
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

  /** As {@link until}; the error holds the program's last lines. */
  async until<T>(what: string, read: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
    try {
      return await until(what, read);
    } catch (error) {
      throw new Error(`${String(error)}; statsd wrote:\n${this.#kept?.lines.slice(-10).join('\n')}`, { cause: error });
    }
  }

  get #flushes(): readonly Flush[] {
    return [...this.#before, ...(this.#kept?.lines ?? [])]
      .filter((line) => line.startsWith('{"counters"'))
      .map((line) => JSON.parse(line) as Flush);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.crash();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
