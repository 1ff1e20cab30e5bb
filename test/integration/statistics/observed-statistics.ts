import { freePorts } from '../../support/processes/free-ports';
import { WeirProcess } from '../../support/processes/weir-process';
import type { TcpReceiver, UdpReceiver } from '../../support/servers/statsd-receivers';
import { startStatsdDaemons } from './statsd-daemons';

/** What was observed of a statistic. */
export interface Observed {
  readonly name: string;
  /** The total of a counter, the number of a timer's durations, or the last value of a gauge. */
  readonly value: number;
  /** The greatest value of a gauge. */
  readonly greatest: number;
}

/** The observations by output, and those of the debug listener. */
export interface Observations {
  readonly pushed: readonly Observed[];
  readonly tagged: readonly Observed[];
  /** Under their Prometheus names, without labels. */
  readonly pulled: readonly Observed[];
  readonly printed: readonly Observed[];
  /** Reported by the debug listeners of the service with the first three outputs, and of the one that prints. */
  readonly known: readonly Observed[];
  readonly knownToPrinter: readonly Observed[];
}

/**
 * Two services with the same settings, except that one has three outputs enabled and the other none, so that it prints its
 * statistics. Both receive the same calls.
 */
export class ObservedServices implements AsyncDisposable {
  readonly #daemons: { readonly tcp: TcpReceiver; readonly udp: UdpReceiver };
  readonly #metricsPort: number;
  readonly #pages: string[] = [];

  private constructor(
    readonly services: readonly [WeirProcess, WeirProcess],
    daemons: { readonly tcp: TcpReceiver; readonly udp: UdpReceiver },
    metricsPort: number,
  ) {
    this.#daemons = daemons;
    this.#metricsPort = metricsPort;
  }

  static async start(env: Readonly<Record<string, string>>): Promise<ObservedServices> {
    const daemons = await startStatsdDaemons();
    const [metricsPort] = await freePorts(1);
    const common = { ...env, STATS_FLUSH_INTERVAL: '50ms' };
    const started = await Promise.allSettled([
      WeirProcess.start({
        env: {
          ...common,
          CACHE_KEY_PREFIX: 'first_',
          USE_PUSHSTATS: 'true',
          USE_TAGGEDSTATS: 'true',
          PUSHSTATS_HOST: '127.0.0.1',
          PUSHSTATS_PORT: String(daemons.tcp.port),
          USE_PULLMETRICS: 'true',
          PULLMETRICS_ADDR: `127.0.0.1:${metricsPort}`,
        },
      }),
      WeirProcess.start({ env: { ...common, CACHE_KEY_PREFIX: 'second_', USE_PUSHSTATS: 'false' } }),
    ]);
    const [first, second] = started;
    if (first.status === 'fulfilled' && second.status === 'fulfilled') {
      return new ObservedServices([first.value, second.value], daemons, metricsPort);
    }
    for (const each of started) if (each.status === 'fulfilled') await each.value[Symbol.asyncDispose]();
    for (const daemon of [daemons.tcp, daemons.udp]) await daemon[Symbol.asyncDispose]();
    throw new Error(started.map((each) => (each.status === 'rejected' ? String(each.reason) : '')).join('\n'));
  }

  /** Runs a function on both services. */
  async both(act: (weir: WeirProcess) => Promise<void>): Promise<void> {
    await Promise.all(this.services.map(act));
  }

  /** The names at `/stats` and on the metrics page of the first service. */
  async known(): Promise<{ readonly stats: readonly string[]; readonly page: readonly string[] }> {
    const stats = [...(await this.services[0].statistics()).keys()].map(withoutTags);
    const page = await (await fetch(`http://127.0.0.1:${this.#metricsPort}/metrics`)).text();
    return { stats, page: observedOnPages([page]).map(({ name }) => name) };
  }

  /** Scrapes the metrics page, and waits until the present values of gauges have been sent. */
  async observe(): Promise<void> {
    this.#pages.push(await (await fetch(`http://127.0.0.1:${this.#metricsPort}/metrics`)).text());
    const { tcp, udp } = this.#daemons;
    const from = [tcp, udp].map(({ lines }) => lines.length);
    function hasFlushed(lines: readonly string[], first = 0) {
      return lines.slice(first).filter((line) => line.startsWith('ratelimit.statistics.runtime_keys:')).length > 1;
    }
    await tcp.until('two flushes', () => hasFlushed(tcp.lines, from[0]));
    await udp.until('two flushes', () => hasFlushed(udp.lines, from[1]));
    const printer = this.services[1];
    const printed = printer.output.length;
    await printer.until(
      'two flushes',
      () => printer.output.slice(printed).split('"ratelimit.statistics.runtime_keys"').length > 2,
    );
  }

  /** Ends the services and returns everything that was observed of them. */
  async end(): Promise<Observations> {
    const { tcp, udp } = this.#daemons;
    const [known = [], knownToPrinter = []] = await Promise.all(
      this.services.map(async (weir) => observedAtDebug(await weir.statistics())),
    );
    await this.observe();
    await this.both(async (weir) => {
      weir.signal('SIGTERM');
      expect(await weir.exited).toBe(0);
    });
    return {
      pushed: observedInLines(tcp.lines),
      tagged: observedInLines(udp.lines),
      pulled: observedOnPages(this.#pages),
      printed: observedInJson(this.services[1].output.split('\n')),
      known,
      knownToPrinter,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const weir of this.services) await weir[Symbol.asyncDispose]();
    for (const daemon of [this.#daemons.tcp, this.#daemons.udp]) await daemon[Symbol.asyncDispose]();
  }
}

type Kind = 'counter' | 'gauge' | 'timer';
const KINDS: Readonly<Record<string, Kind>> = { c: 'counter', g: 'gauge', ms: 'timer' };

function observedInLines(lines: readonly string[]): readonly Observed[] {
  const tally = new Tally();
  for (const line of lines) {
    const [, name, value, mark] = /^([^:]+):(-?[\d.]+)\|(c|g|ms)(?:\|#.*)?$/.exec(line) ?? [];
    if (name === undefined) throw new Error(`${line} is not a statsd line`);
    tally.add(withoutTags(name), KINDS[mark ?? ''] ?? 'gauge', Number(value));
  }
  return tally.all;
}

interface Printed {
  readonly json?: { readonly name: string; readonly type: Kind; readonly value: string };
}

function observedInJson(lines: readonly string[]): readonly Observed[] {
  const tally = new Tally();
  for (const line of lines) {
    if (!line.startsWith('{')) continue;
    const { json } = JSON.parse(line) as Printed;
    if (json !== undefined) tally.add(withoutTags(json.name), json.type, Number(json.value));
  }
  return tally.all;
}

/** One entry per series; for a histogram or summary, the number of durations. */
function observedOnPages(pages: readonly string[]): readonly Observed[] {
  const series = new Map<string, Observed>();
  for (const line of pages.flatMap((page) => page.split('\n'))) {
    const [, written = '', name = '', text] = /^(([\w:]+)(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
    if (written === '') continue;
    const value = Number(text);
    const greatest = Math.max(value, series.get(written)?.greatest ?? 0);
    series.set(written, { name: name.replace(/_count$/, ''), value, greatest });
  }
  return [...series.values()];
}

function observedAtDebug(statistics: ReadonlyMap<string, number>): readonly Observed[] {
  return [...statistics]
    .filter(([name]) => !/\.(?:p50|p99|max)_ms$/.test(name))
    .map(([name, value]) => ({
      name: withoutTags(name).replace(/response_time\.count$/, 'response_time'),
      value,
      greatest: value,
    }));
}

function withoutTags(name: string): string {
  return name.replace(/\.__.*$/, '');
}

class Tally {
  readonly #observed = new Map<string, Observed>();

  add(name: string, kind: Kind, value: number): void {
    const before = this.#observed.get(name) ?? { name, value: 0, greatest: 0 };
    const added = { counter: before.value + value, gauge: value, timer: before.value + 1 };
    this.#observed.set(name, { name, value: added[kind], greatest: Math.max(before.greatest, value) });
  }

  get all(): readonly Observed[] {
    return [...this.#observed.values()];
  }
}
