import type { RateLimitClient } from '../../support/clients/grpc-client';
import { Shop } from '../../e2e/shop';
import { StatsdProcess } from '../../support/processes/statsd-process';

const RULES = `
domain: shop
descriptors:
  - { key: k, rate_limit: { unit: day, requests_per_unit: 1000000 } }
  - { key: user, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1000000 } }
`;
const HITS = 'ratelimit.service.rate_limit.shop.k.total_hits';

/** Makes this many calls of two hits each, a multiple of eight, eight at a time. */
async function makeCalls(client: RateLimitClient, calls: number): Promise<void> {
  async function caller(): Promise<void> {
    for (let call = 0; call < calls / 8; call += 1) await client.shouldRateLimit('shop', ['k'], 2);
  }
  await Promise.all(Array.from({ length: 8 }, caller));
}

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
    async function countedCalls(more: number): Promise<void> {
      await makeCalls(client, more);
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
