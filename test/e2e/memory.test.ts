import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { peakMemory } from '../support/processes/process-memory';
import { WeirProcess } from '../support/processes/weir-process';

const MIB = 2 ** 20;
const RULES = {
  'shop.yaml': `
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: year, requests_per_unit: 1000}
  - key: path
    rate_limit: {unit: second, requests_per_unit: 1000}
  - key: agent
    value_to_metric: true
    rate_limit: {unit: day, requests_per_unit: 1}
`,
};

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

/** The service with a heap of 128 MiB, and 48 MiB for objects that were just created. */
function start(env: Readonly<Record<string, string>> = {}): Promise<WeirProcess> {
  return WeirProcess.start({ env: { ...rules.env, NODE_OPTIONS: '--max-old-space-size=128', ...env } });
}

/** Calls once for each number below `count`, four at a time. */
async function flood(count: number, call: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  async function caller(): Promise<void> {
    for (let index = next; index < count; index = next) {
      next += 1;
      await call(index);
    }
  }
  await Promise.all(Array.from({ length: 4 }, caller));
}

function descriptorOf(key: string, value: string) {
  return { entries: [{ key, value }], limit: undefined, hitsAddend: undefined, isNegativeHits: false };
}

async function remaining(client: RateLimitClient): Promise<number | undefined> {
  return (await client.shouldRateLimit('shop', ['user=regular'])).statuses[0]?.limitRemaining;
}

describe('a service with a small heap', () => {
  it('survives calls whose values are new and take 250 KB each, and counts its other callers exactly', async () => {
    await using weir = await start({ LOCAL_CACHE_SIZE_IN_BYTES: String(MIB), LOG_LEVEL: 'debug' });
    using client = new RateLimitClient(weir.grpcAddress);
    expect(await remaining(client)).toBe(999);
    await flood(800, (index) =>
      client.shouldRateLimit('shop', [descriptorOf('user', `${'x'.repeat(250_000)}${index}`)], 2000),
    );
    await flood(100, (index) =>
      client.shouldRateLimit('shop', [descriptorOf('agent', `${'x'.repeat(250_000)}${index}`)], 2),
    );
    expect(await remaining(client)).toBe(998);
    const statistics = await weir.statistics();
    expect(statistics.get('ratelimit.memory.keys')).toBe(901);
    expect(statistics.get('ratelimit.memory.bytes')).toBeLessThan(901 * 200);
    expect(statistics.get('ratelimit.memory.evicted_keys')).toBe(0);
    expect(statistics.get('ratelimit.localcache.entryCount')).toBe(900);
    expect(peakMemory(weir.pid!)).toBeLessThan(300);
    expect(weir.output.length).toBeLessThan(MIB);
  });

  it('keeps no body in memory because a part of it is in a table', async () => {
    await using weir = await start();
    const padding = ' '.repeat(900_000);
    await flood(200, async (index) => {
      const agent = { entries: [{ key: 'agent', value: `agent number ${index}` }] };
      const body = padding + JSON.stringify({ domain: 'shop', descriptors: [agent] });
      expect((await weir.http('/json', { method: 'POST', body })).status).toBe(200);
    });
    expect((await weir.statistics()).get('ratelimit.statistics.runtime_keys')).toBe(200);
    expect(peakMemory(weir.pid!)).toBeLessThan(300);
  });

  it('evicts the keys that expire soonest beyond MEMORY_MAX_BYTES', async () => {
    await using weir = await start({ MEMORY_MAX_BYTES: String(2 * MIB) });
    using client = new RateLimitClient(weir.grpcAddress);
    expect(await remaining(client)).toBe(999);
    await flood(40, (index) =>
      client.shouldRateLimit(
        'shop',
        Array.from({ length: 1000 }, (_, at) => descriptorOf('path', `/${index}/${at}`)),
      ),
    );
    expect(await remaining(client)).toBe(998);
    const statistics = await weir.statistics();
    expect(statistics.get('ratelimit.memory.bytes')).toBeLessThanOrEqual(2 * MIB);
  });
});
