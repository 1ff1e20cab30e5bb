import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Shop } from '../../e2e/shop';
import { Daemon } from '../../support/processes/daemon';
import { freePorts } from '../../support/processes/free-ports';
import { isListening } from '../../support/processes/is-listening';

const STATSD = join(__dirname, '../../../.servers/statsd/node_modules/statsd/stats.js');
const BACKEND = join(__dirname, '../../support/processes/statsd-backend.cjs');
/** Milliseconds between two flushes of the daemon. */
const FLUSH = 200;

interface Flush {
  readonly counters: Readonly<Record<string, number>>;
  readonly timers: Readonly<Record<string, readonly number[]>>;
  readonly timerCounts: Readonly<Record<string, number>>;
  readonly gauges: Readonly<Record<string, number>>;
}

/** The statsd daemon of npm on one port of TCP and UDP, and what it has flushed, over all its runs. */
class StatsdProcess extends Daemon {
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

const RULES = `
domain: shop
descriptors:
  - { key: k, rate_limit: { unit: day, requests_per_unit: 1000000 } }
  - { key: user, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1000000 } }
`;
const HITS = 'ratelimit.service.rate_limit.shop.k.total_hits';

test.each(['tcp', 'udp'])(
  "npm's statsd receives exact sums over %s, even if it is unavailable for a while",
  async (protocol) => {
    const tags = '.__az=eu1.__env=prod';
    const total = `ratelimit_server.ShouldRateLimit.total_requests${tags}`;
    const [hits, times] = [`${HITS}${tags}`, total.replace('total_requests', 'response_time')];
    await using statsd = await StatsdProcess.start();
    const env = { STATSD_HOST: '127.0.0.1', STATSD_PORT: String(statsd.port), STATSD_PROTOCOL: protocol };
    const all = { ...env, USE_STATSD: 'true', EXTRA_TAGS: 'env:prod,az:eu1', STATS_FLUSH_INTERVAL: '50ms' };
    await using shop = await Shop.start({ env: all }, RULES);
    const { client, weir } = shop;
    let calls = 0;
    /** Makes this many calls of two hits each, a multiple of eight, eight at a time. */
    async function countedCalls(more: number): Promise<void> {
      async function caller(): Promise<void> {
        for (let call = 0; call < more / 8; call += 1) await client.shouldRateLimit('shop', ['k'], 2);
      }
      await Promise.all(Array.from({ length: 8 }, caller));
      calls += more;
    }
    while (statsd.flushesWith(hits) < 3) await countedCalls(96);
    await statsd.until('the hits to be counted', () => statsd.sum(hits) === 2 * calls);
    // Whatever the daemon has not flushed is lost when it crashes.
    await statsd.until('the durations', () => statsd.timer(times).count === calls);
    await statsd.crash();
    await weir.line(/cannot send statistics/);
    const before = calls;
    // More than are sent: they are sampled, and counted with their rate.
    await countedCalls(1_600);
    await client.shouldRateLimit('shop', ['user=a', 'user=b', 'user=c']);
    calls += 1;
    expect(statsd.sum(hits)).toBe(2 * before);
    await statsd.run();
    await weir.line(/resumed sending statistics/);
    await countedCalls(96);

    await statsd.until('the rest', () => statsd.sum(hits) === 2 * (calls - 1));
    await statsd.until('the calls', () => statsd.sum(total) === calls);
    await statsd.until('the gauge', () => statsd.gauge(`ratelimit.statistics.runtime_keys${tags}`) === 3);
    expect(statsd.timer(times).sent.length).toBeLessThan(calls);
    await shop.drain();
    // Nothing was sent twice, and every line was understood.
    expect([statsd.sum(hits), statsd.sum(total)]).toEqual([2 * (calls - 1), calls]);
    expect(statsd.sum('statsd.bad_lines_seen')).toBe(0);
    const own = statsd.counters.filter((name) => !name.startsWith('statsd.'));
    const known = /^(?:ratelimit|ratelimit_server|runtime)\.[\w.]+\.__az=eu1\.__env=prod$/;
    expect(own.filter((name) => !known.test(name))).toEqual([]);
  },
);
