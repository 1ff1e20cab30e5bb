import { execFileSync } from 'node:child_process';
import { RateLimitResponse_Code as Code } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { freePorts } from '../../support/processes/free-ports';
import { WeirProcess } from '../../support/processes/weir-process';
import { workersOf } from '../../support/processes/worker-processes';
import { until } from '../../support/waiting/until';

const RULES = {
  'shop.yaml': [
    'domain: shop',
    'descriptors:',
    '  - { key: user, rate_limit: { unit: day, requests_per_unit: 1000 } }',
    '  - { key: item, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1000000 } }',
  ].join('\n'),
};
const WORKERS = 3;
/** A connection of its own for each client. */
const OWN = { 'grpc.use_local_subchannel_pool': 1 };

let rules: RuleFolder;
let weir: WeirProcess;
let metrics: string;
let clients: readonly RateLimitClient[];

beforeEach(async () => {
  rules = await RuleFolder.with(RULES);
  const [port] = await freePorts(1);
  metrics = `127.0.0.1:${port}`;
  weir = await WeirProcess.start({
    env: {
      ...rules.env,
      WORKERS: String(WORKERS),
      USE_PROMETHEUS: 'true',
      PROMETHEUS_ADDR: metrics,
      STATS_MAX_RUNTIME_KEYS: '50',
      EXTRA_TAGS: 'region:eu',
    },
  });
  clients = Array.from({ length: 8 }, () => new RateLimitClient(weir.grpcAddress, undefined, OWN));
});

afterEach(async () => {
  for (const client of clients) client[Symbol.dispose]();
  await weir[Symbol.asyncDispose]();
  await rules[Symbol.asyncDispose]();
});

function debug(path: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${weir.ports.debug}${path}`);
}

async function statistics(): Promise<ReadonlyMap<string, number>> {
  const lines = (await (await debug('/stats')).text()).trim().split('\n');
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(':')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

/** Sends calls, each on the next of the connections; returns how many passed. */
async function call(count: number, key: string, value: (call: number) => string): Promise<number> {
  const calls = Array.from({ length: count }, (_, number) =>
    clients[number % clients.length]!.shouldRateLimit('shop', [`${key}=${value(number)}`]),
  );
  const responses = await Promise.all(calls);
  return responses.filter(({ overallCode }) => overallCode === Code.OK).length;
}

const HITS = 'ratelimit.service.rate_limit.shop.user.total_hits';

describe('an instance with several workers and the memory store', () => {
  it('lets exactly as many calls pass as the limit, also after the death of a worker, and shows the statistics of all', async () => {
    expect(await call(4000, 'user', () => 'a')).toBe(1000);
    // A worker that is late is shown by its last report.
    const before = await until('all are counted', async () => {
      const all = await statistics();
      const isComplete =
        all.get(HITS) === 4000 && all.get('ratelimit_server.ShouldRateLimit.response_time.count') === 4000;
      return isComplete && all;
    });
    expect(before.get('ratelimit.service.rate_limit.shop.user.within_limit')).toBe(1000);
    expect(before.get('ratelimit.service.rate_limit.shop.user.over_limit')).toBe(3000);
    expect(before.get('ratelimit_server.ShouldRateLimit.total_requests')).toBe(4000);
    expect(before.get('ratelimit_server.ShouldRateLimit.response_time.count')).toBe(4000);
    expect(before.get('ratelimit_server.grpc.connections')).toBe(8);
    expect(before.get('ratelimit.memory.keys')).toBe(1);
    expect(before.get('ratelimit.workers.ready')).toBe(WORKERS);
    expect(before.get('ratelimit.workers.restarts')).toBe(0);

    const [victim] = workersOf(weir);
    process.kill(victim!.pid, 'SIGKILL');
    await until('it is replaced', async () => (await statistics()).get('ratelimit.workers.restarts') === 1);
    await until('all are ready', async () => (await statistics()).get('ratelimit.workers.ready') === WORKERS);
    const after = await statistics();
    expect(after.get(HITS)).toBe(4000);
    expect(after.get('ratelimit_server.ShouldRateLimit.response_time.count')).toBe(4000);
    // The connections of the dead worker are not counted, and those that replace them are.
    await until('the clients are connected', async () => {
      await Promise.all(clients.map((client) => client.shouldRateLimit('shop', ['item=x']).catch(() => undefined)));
      return (await statistics()).get('ratelimit_server.grpc.connections') === 8;
    });
    expect(await call(100, 'user', () => 'a')).toBe(0);
    await until('all are counted', async () => (await statistics()).get(HITS) === 4100);
    const lines = (await (await debug('/workers')).text()).trim().split('\n');
    expect(lines).toHaveLength(WORKERS);
    expect(lines[victim!.number - 1]).toMatch(
      /^worker \d: pid=\d+ state=serving connections=\d+ uptime=\d+s restarts=1$/,
    );
    const connections = lines.map((line) => Number(/connections=(\d+)/.exec(line)?.[1]));
    expect(connections.reduce((sum, own) => sum + own, 0)).toBe(8);
  });

  it('limits the statistics keys of all workers together, and loses no hit', async () => {
    await call(300, 'item', (number) => `i${number}`);
    function items(all: ReadonlyMap<string, number>): readonly (readonly [string, number])[] {
      return [...all].filter(([name]) => /rate_limit\.shop\.item.*\.total_hits$/.test(name));
    }
    await until('all are counted', async () => {
      const hits = items(await statistics()).reduce((sum, [, value]) => sum + value, 0);
      return hits === 300;
    });
    const all = await statistics();
    expect(items(all)).toHaveLength(51);
    expect(all.get('ratelimit.statistics.runtime_keys')).toBe(50);
  });

  it('shows Prometheus the statistics of all workers, and the metrics of each process', async () => {
    await call(80, 'user', (number) => `u${number}`);
    const page = await until('all are counted', async () => {
      const text = await (await fetch(`http://${metrics}/metrics`)).text();
      // A worker that is late for its first page is not on it.
      const processes = text.match(/^process_resident_memory_bytes\{/gm);
      return (
        processes?.length === WORKERS + 1 &&
        /^ratelimit_service_response_time_seconds_count\{.*\} 80$/m.test(text) &&
        text
      );
    });
    expect(page).toMatch(/^ratelimit_service_rate_limit_total_hits\{domain="shop",key1="user",region="eu"\} 80$/m);
    expect(page).toMatch(/^ratelimit_service_response_time_seconds_bucket\{.*le="\+Inf"\} 80$/m);
    const processes = [...page.matchAll(/^process_resident_memory_bytes\{(.*)\} \d+$/gm)].map(([, labels]) => labels);
    expect(processes).toEqual([
      'region="eu"',
      ...Array.from({ length: WORKERS }, (_, index) => `region="eu",worker="${index + 1}"`),
    ]);
    expect(page.match(/^# TYPE process_cpu_seconds_total counter$/gm)).toHaveLength(1);
    // Fails for a page that is not in the format; lint that also concerns one process alone is not of interest.
    try {
      execFileSync('promtool', ['check', 'metrics'], { input: page, stdio: ['pipe', 'pipe', 'pipe'] });
    } catch (error) {
      expect(String((error as { stderr: Buffer }).stderr)).not.toMatch(/error while linting|second HELP|second TYPE/);
    }
  });

  it('takes profiles and heap snapshots of a worker or of the primary', async () => {
    for (const query of ['', '&worker=1', `&worker=${WORKERS}`]) {
      const response = await debug(`/debug/pprof/profile?seconds=0.1${query}`);
      expect([query, response.status]).toEqual([query, 200]);
      expect(Buffer.from(await response.arrayBuffer()).subarray(0, 2)).toEqual(Buffer.of(0x1f, 0x8b));
    }
    const snapshot = await (await debug('/debug/pprof/heap?format=v8&worker=2')).text();
    expect((JSON.parse(snapshot) as { nodes: number[] }).nodes.length).toBeGreaterThan(10_000);
    expect((await debug(`/debug/pprof/profile?seconds=0.1&worker=${WORKERS + 1}`)).status).toBe(404);
  });
});
