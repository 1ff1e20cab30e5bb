import { RateLimitClient } from '../../support/clients/grpc-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { StatsdProcess } from '../../support/processes/statsd-process';
import { WeirProcess } from '../../support/processes/weir-process';

const RULES = `
domain: shop
descriptors:
  - { key: k, rate_limit: { unit: day, requests_per_unit: 1000000 } }
  - { key: user, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1000000 } }
`;
const TAGS = '.__az=eu1.__env=prod';
const HITS = `ratelimit.service.rate_limit.shop.k.total_hits${TAGS}`;
const CALLS = `ratelimit_server.ShouldRateLimit.total_requests${TAGS}`;
const TIMES = `ratelimit_server.ShouldRateLimit.response_time${TAGS}`;

/** Makes this many calls, eight at a time. */
async function makeCalls(client: RateLimitClient, calls: number): Promise<void> {
  let left = calls;
  async function caller(): Promise<void> {
    for (; left > 0;) {
      left -= 1;
      await client.shouldRateLimit('shop', ['k'], 2);
    }
  }
  await Promise.all(Array.from({ length: 8 }, caller));
}

describe.each(['tcp', 'udp'])('a statsd daemon over %s', (protocol) => {
  let folder: RuleFolder;
  let statsd: StatsdProcess;
  function start(more: Readonly<Record<string, string>>) {
    return WeirProcess.start({
      env: {
        ...folder.env,
        USE_STATSD: 'true',
        STATSD_HOST: '127.0.0.1',
        STATSD_PORT: String(statsd.port),
        STATSD_PROTOCOL: protocol,
        EXTRA_TAGS: 'env:prod,az:eu1',
        ...more,
      },
    });
  }

  beforeEach(async () => {
    folder = await RuleFolder.with({ 'shop.yaml': RULES });
    statsd = await StatsdProcess.start();
  });
  afterEach(async () => {
    await statsd[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  it('receives exact sums over many flushes, even if it is unavailable for a while', async () => {
    await using weir = await start({ STATS_FLUSH_INTERVAL: '50ms' });
    using client = new RateLimitClient(weir.grpcAddress);
    let calls = 0;
    async function countedCalls(more: number): Promise<void> {
      await makeCalls(client, more);
      calls += more;
    }
    while (statsd.flushesWith(HITS) < 3) await countedCalls(100);
    await statsd.until('the hits to be counted', () => statsd.sum(HITS) === 2 * calls);
    // Whatever the daemon has not flushed is lost when it crashes.
    await statsd.until('the durations', () => statsd.timer(TIMES).count === calls);
    await statsd.crash();
    await weir.line(/cannot send statistics/);
    const before = calls;
    await countedCalls(200);
    await client.shouldRateLimit('shop', ['user=a', 'user=b', 'user=c']);
    calls += 1;
    expect(statsd.sum(HITS)).toBe(2 * before);
    await statsd.run();
    await weir.line(/resumed sending statistics/);
    await countedCalls(100);

    await statsd.until('the rest', () => statsd.sum(HITS) === 2 * (calls - 1));
    await statsd.until('the calls', () => statsd.sum(CALLS) === calls);
    await statsd.until('the durations', () => statsd.timer(TIMES).count === calls);
    expect(statsd.timer(TIMES).sent).toHaveLength(calls);
    await statsd.until('the gauge', () => statsd.gauge(`ratelimit.statistics.runtime_keys${TAGS}`) === 3);
    expect(statsd.gauge(`runtime.num_values${TAGS}`)).toBe(1);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    // Nothing was sent twice, and every line was understood.
    expect([statsd.sum(HITS), statsd.sum(CALLS)]).toEqual([2 * (calls - 1), calls]);
    expect(statsd.sum('statsd.bad_lines_seen')).toBe(0);
    expect(statsd.sum('statsd.metrics_received')).toBeGreaterThan(calls);
  });

  it('counts all durations from a sample of them, and receives names unchanged', async () => {
    await using weir = await start({ STATS_FLUSH_INTERVAL: '1h' });
    using client = new RateLimitClient(weir.grpcAddress);
    const calls = 1600;
    await makeCalls(client, calls);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    // At most 1,000 per flush: every second one, each counted twice.
    await statsd.until('the durations', () => statsd.timer(TIMES).count === calls);
    expect(statsd.timer(TIMES).sent).toHaveLength(calls / 2);
    expect(statsd.sum(HITS)).toBe(2 * calls);
    const own = statsd.counters.filter((name) => !name.startsWith('statsd.'));
    expect(own.length).toBeGreaterThan(3);
    expect(
      own.filter((name) => !/^(?:ratelimit|ratelimit_server|runtime)\.[\w.]+\.__az=eu1\.__env=prod$/.test(name)),
    ).toEqual([]);
  });
});
