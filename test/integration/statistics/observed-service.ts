import { freePorts } from '../../support/processes/free-ports';
import { WeirProcess } from '../../support/processes/weir-process';
import type { Lines, TcpReceiver, UdpReceiver } from '../../support/servers/statsd-receivers';
import { startStatsdDaemons } from './statsd-daemons';

/** By name without tags: the total of a counter, the number of a timer's durations, or the greatest value of a gauge. */
export type Observed = ReadonlyMap<string, number>;

export interface Observations {
  readonly pushed: Observed;
  readonly tagged: Observed;
  /** Under their Prometheus names, without labels. */
  readonly pulled: Observed;
  /** Reported by the debug listener. */
  readonly known: Observed;
}

/** A service with three outputs, all of which are observed. */
export class ObservedService implements AsyncDisposable {
  readonly #pages: string[] = [];

  private constructor(
    readonly weir: WeirProcess,
    readonly daemons: { readonly tcp: TcpReceiver; readonly udp: UdpReceiver },
    readonly metricsUrl: string,
  ) {}

  static async start(env: Readonly<Record<string, string>>): Promise<ObservedService> {
    const daemons = await startStatsdDaemons();
    const [metricsPort] = await freePorts(1);
    try {
      const weir = await WeirProcess.start({
        env: {
          ...env,
          STATS_FLUSH_INTERVAL: '50ms',
          USE_PUSHSTATS: 'true',
          USE_TAGGEDSTATS: 'true',
          PUSHSTATS_HOST: '127.0.0.1',
          PUSHSTATS_PORT: String(daemons.tcp.port),
          USE_PULLMETRICS: 'true',
          PULLMETRICS_ADDR: `127.0.0.1:${metricsPort}`,
        },
      });
      return new ObservedService(weir, daemons, `http://127.0.0.1:${metricsPort}/metrics`);
    } catch (error) {
      for (const daemon of [daemons.tcp, daemons.udp]) await daemon[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The values at `/stats`. */
  async known(): Promise<Observed> {
    const all = [...(await this.weir.statistics())].filter(([name]) => !/\.(?:p50|p99|max)_ms$/.test(name));
    return tally(all.map(([name, value]) => ({ name: name.replace(/(response_time)\.count$/, '$1'), value })));
  }

  /** The metrics page. */
  async page(): Promise<Observed> {
    return observedOnPages([await (await fetch(this.metricsUrl)).text()]);
  }

  /** Keeps the metrics page, and waits until the present values of gauges have been sent. */
  async observe(): Promise<void> {
    this.#pages.push(await (await fetch(this.metricsUrl)).text());
    for (const receiver of [this.daemons.tcp, this.daemons.udp] satisfies Lines[]) {
      const from = receiver.lines.length;
      const gauge = 'ratelimit.statistics.runtime_keys:';
      await receiver.until(
        'two flushes',
        () => receiver.lines.slice(from).filter((line) => line.startsWith(gauge)).length > 1,
      );
    }
  }

  /** Ends the service and returns everything that was observed of it. */
  async end(): Promise<Observations> {
    const known = await this.known();
    await this.observe();
    this.weir.signal('SIGTERM');
    expect(await this.weir.exited).toBe(0);
    const { tcp, udp } = this.daemons;
    return {
      pushed: observedInLines(tcp.lines),
      tagged: observedInLines(udp.lines),
      pulled: observedOnPages(this.#pages),
      known,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.weir[Symbol.asyncDispose]();
    for (const daemon of [this.daemons.tcp, this.daemons.udp]) await daemon[Symbol.asyncDispose]();
  }
}

interface Sample {
  readonly name: string;
  readonly value: number;
  /** It is not added to those before, but replaces smaller ones. */
  readonly isGauge?: boolean;
}

function tally(samples: readonly Sample[]): Observed {
  const observed = new Map<string, number>();
  for (const { name: tagged, value, isGauge = false } of samples) {
    const name = tagged.replace(/\.__.*$/, '');
    const before = observed.get(name) ?? 0;
    observed.set(name, isGauge ? Math.max(before, value) : before + value);
  }
  return observed;
}

function observedInLines(lines: readonly string[]): Observed {
  return tally(
    lines.map((line) => {
      const [, name, value, type] = /^([^:]+):(-?[\d.]+)\|(c|g|ms)(?:\|#.*)?$/.exec(line) ?? [];
      if (name === undefined) throw new Error(`${line} is not a statsd line`);
      return { name, value: type === 'ms' ? 1 : Number(value), isGauge: type === 'g' };
    }),
  );
}

/** The greatest value of each series on the pages; of a histogram or summary, the number of durations. */
function observedOnPages(pages: readonly string[]): Observed {
  const series = new Map<string, number>();
  for (const [, name = '', value] of pages.join('').matchAll(/^([\w:]+(?:\{.*\})?) (\S+)$/gm)) {
    series.set(name, Math.max(Number(value), series.get(name) ?? 0));
  }
  return tally([...series].map(([name, value]) => ({ name: name.replace(/\{.*/s, '').replace(/_count$/, ''), value })));
}
