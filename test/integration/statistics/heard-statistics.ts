import { freePorts } from '../../support/processes/free-ports';
import { WeirProcess } from '../../support/processes/weir-process';
import type { TcpReceiver, UdpReceiver } from '../../support/servers/statsd-receivers';
import { bothDaemons } from './both-daemons';

/** What was heard of a statistic. */
export interface Heard {
  readonly name: string;
  /** What a counter came to, how many durations a timer had, or a gauge's last value. */
  readonly value: number;
  /** Of a gauge. */
  readonly greatest: number;
}

/** By the names of the outputs, and of the debug listener. */
export interface Wires {
  readonly pushed: readonly Heard[];
  readonly tagged: readonly Heard[];
  /** By the names of Prometheus, without labels. */
  readonly pulled: readonly Heard[];
  readonly printed: readonly Heard[];
  /** What the debug listener of the service with the first three said, and of the one that prints. */
  readonly known: readonly Heard[];
  readonly knownToPrinter: readonly Heard[];
}

/**
 * Two services of the same settings, one with the three outputs that run side by side, and one that prints, as there is no
 * other output then; all is done to both.
 */
export class HeardServices implements AsyncDisposable {
  readonly #daemons: { readonly tcp: TcpReceiver; readonly udp: UdpReceiver };
  readonly #pullPort: number;
  readonly #pages: string[] = [];

  private constructor(
    readonly services: readonly [WeirProcess, WeirProcess],
    daemons: { readonly tcp: TcpReceiver; readonly udp: UdpReceiver },
    pullPort: number,
  ) {
    this.#daemons = daemons;
    this.#pullPort = pullPort;
  }

  static async start(env: Readonly<Record<string, string>>): Promise<HeardServices> {
    const daemons = await bothDaemons();
    const [pullPort] = await freePorts(1);
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
          PULLMETRICS_ADDR: `127.0.0.1:${pullPort}`,
        },
      }),
      WeirProcess.start({ env: { ...common, CACHE_KEY_PREFIX: 'second_', USE_PUSHSTATS: 'false' } }),
    ]);
    const [first, second] = started;
    if (first.status === 'fulfilled' && second.status === 'fulfilled') {
      return new HeardServices([first.value, second.value], daemons, pullPort);
    }
    for (const each of started) if (each.status === 'fulfilled') await each.value[Symbol.asyncDispose]();
    for (const daemon of [daemons.tcp, daemons.udp]) await daemon[Symbol.asyncDispose]();
    throw new Error(started.map((each) => (each.status === 'rejected' ? String(each.reason) : '')).join('\n'));
  }

  /** Does something to both services. */
  async both(act: (weir: WeirProcess) => Promise<void>): Promise<void> {
    await Promise.all(this.services.map(act));
  }

  /** Looks at what is offered to be scraped, and waits for gauges to be sent as they are. */
  async look(): Promise<void> {
    this.#pages.push(await (await fetch(`http://127.0.0.1:${this.#pullPort}/metrics`)).text());
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

  /** Ends the services and gives everything that was heard of them. */
  async end(): Promise<Wires> {
    const { tcp, udp } = this.#daemons;
    const [known = [], knownToPrinter = []] = await Promise.all(
      this.services.map(async (weir) => heardAtDebug(await weir.statistics())),
    );
    await this.look();
    await this.both(async (weir) => {
      weir.signal('SIGTERM');
      expect(await weir.exited).toBe(0);
    });
    return {
      pushed: heardInLines(tcp.lines),
      tagged: heardInLines(udp.lines),
      pulled: heardOnPages(this.#pages),
      printed: heardInJson(this.services[1].output.split('\n')),
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

function heardInLines(lines: readonly string[]): readonly Heard[] {
  const heard = new Tally();
  for (const line of lines) {
    const [, name, value, mark] = /^([^:]+):(-?[\d.]+)\|(c|g|ms)$/.exec(line) ?? [];
    if (name === undefined) throw new Error(`${line} is no line of statsd`);
    heard.add(name, KINDS[mark ?? ''] ?? 'gauge', Number(value));
  }
  return heard.all;
}

interface Printed {
  readonly json?: { readonly name: string; readonly type: Kind; readonly value: string };
}

function heardInJson(lines: readonly string[]): readonly Heard[] {
  const heard = new Tally();
  for (const line of lines) {
    if (!line.startsWith('{')) continue;
    const { json } = JSON.parse(line) as Printed;
    if (json !== undefined) heard.add(json.name, json.type, Number(json.value));
  }
  return heard.all;
}

/** Each series by itself; of a histogram or summary the number of its durations. */
function heardOnPages(pages: readonly string[]): readonly Heard[] {
  const series = new Map<string, Heard>();
  for (const line of pages.flatMap((page) => page.split('\n'))) {
    const [, written = '', name = '', text] = /^(([\w:]+)(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
    if (written === '') continue;
    const value = Number(text);
    const greatest = Math.max(value, series.get(written)?.greatest ?? 0);
    series.set(written, { name: name.replace(/_count$/, ''), value, greatest });
  }
  return [...series.values()];
}

function heardAtDebug(statistics: ReadonlyMap<string, number>): readonly Heard[] {
  return [...statistics]
    .filter(([name]) => !/\.(?:p50|p99|max)_ms$/.test(name))
    .map(([name, value]) => ({ name: name.replace(/response_time\.count$/, 'response_time'), value, greatest: value }));
}

class Tally {
  readonly #heard = new Map<string, Heard>();

  add(name: string, kind: Kind, value: number): void {
    const before = this.#heard.get(name) ?? { name, value: 0, greatest: 0 };
    const added = { counter: before.value + value, gauge: value, timer: before.value + 1 };
    this.#heard.set(name, { name, value: added[kind], greatest: Math.max(before.greatest, value) });
  }

  get all(): readonly Heard[] {
    return [...this.#heard.values()];
  }
}
