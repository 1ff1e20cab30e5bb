import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type IncomingMessage, get } from 'node:http';
import { join } from 'node:path';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { requestMessage } from '../../support/clients/grpc-client';
import { Http2Connection } from '../../support/clients/http2-connection';
import type { PinnedClient } from '../../support/clients/pinned-client';
import { eventsOf } from '../../support/clients/read-events';
import { RuleFolder } from '../../support/data/rule-folder';
import { freePorts } from '../../support/processes/free-ports';
import { WeirProcess } from '../../support/processes/weir-process';
import { connectionsTo, workersOf } from '../../support/processes/worker-processes';
import { until } from '../../support/waiting/until';
import * as instance from './instance';

const LIMITS = '[{ unit: year, requests_per_unit: 60 }, { unit: year, unit_multiplier: 2, requests_per_unit: 30 }]';
const MORE_RULES = `
  - { key: caller, rate_limit: { unit: year, requests_per_unit: 3 } }
  - { key: exact, rate_limit: { unit: year, requests_per_unit: 1000 } }
  - { key: several, rate_limits: ${LIMITS} }
`;
const HITS = 'ratelimit.service.rate_limit.shop.exact.total_hits';
const SEVERAL_HITS = 'ratelimit.service.rate_limit.shop.several.2year.total_hits';
const REPORT_FLAGS = join(__dirname, '../../support/processes/report-flags.cjs');

let rules: RuleFolder;
let weir: WeirProcess;
let clients: instance.Clients;
let metrics: string;
beforeAll(async () => {
  rules = await RuleFolder.with({ 'shop.yaml': instance.ruleFile(1, MORE_RULES) });
  const [port] = await freePorts(1);
  metrics = `http://127.0.0.1:${port}/metrics`;
  weir = await WeirProcess.start({
    env: {
      ...rules.env,
      ...{ WORKERS: '2', LOCAL_CACHE_SIZE_IN_BYTES: '100000', OPERATOR_TOKEN: instance.TOKEN, EXTRA_TAGS: 'region:eu' },
      ...{ USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: `127.0.0.1:${port}`, NODE_OPTIONS: `--require ${REPORT_FLAGS}` },
    },
  });
});
afterAll(async () => {
  await weir?.[Symbol.asyncDispose]();
  await rules[Symbol.asyncDispose]();
});
/** Calls on all connections, eight at a time on each; returns how many passed. */
async function call(count: number, descriptor: string): Promise<number> {
  let passed = 0;
  let left = count;
  async function caller(client: PinnedClient): Promise<void> {
    while (left > 0) {
      left -= 1;
      const { overallCode } = await client.shouldRateLimit('shop', [descriptor]);
      if (overallCode === instance.OK) passed += 1;
    }
  }
  await Promise.all(clients.all.flatMap((client) => Array.from({ length: 8 }, () => caller(client))));
  return passed;
}

/** The statistics, when a value has arrived from all workers. */
function statisticsWhen(name: string, value: number): Promise<ReadonlyMap<string, number>> {
  return weir.until(`${name} to be ${value}`, async () => {
    const statistics = await weir.statistics();
    return statistics.get(name) === value && statistics;
  });
}

describe('an instance with two workers, and counters in memory,', () => {
  beforeEach(async () => {
    // Those of the test before would be counted, too.
    await weir.until('no connections', async () => !/connections=[1-9]/.test(await weir.debug('/workers')));
    clients = await instance.Clients.open(weir, 6);
  });
  afterEach(() => clients[Symbol.dispose]());

  it('gives each worker half of the connections, also in a burst and after some have closed', async () => {
    await instance.expectSpread(weir, [3, 3]);
    // The odd ones are all of one worker.
    for (const [index, client] of clients.all.entries()) if (index % 2 === 1) client[Symbol.dispose]();
    await instance.untilPrimaryCounts(weir, [3, 0]);
    await Promise.all(Array.from({ length: 5 }, () => clients.add()));
    await instance.expectSpread(weir, [4, 4]);
    const agent = new Agent({ keepAlive: true });
    const options = { agent, port: weir.ports.http, host: '127.0.0.1', path: '/healthcheck' };
    const answers = await Promise.all(Array.from({ length: 6 }, () => once(get(options), 'response')));
    for (const [answer] of answers) (answer as IncomingMessage).resume();
    await instance.expectSpread(weir, [3, 3], (pid) => connectionsTo(weir.ports.http, pid));
    agent.destroy();
  });

  it('lets exactly as many calls pass as the limit, and shows the statistics of all workers', async () => {
    const calls = await weir.statistics();
    const before = calls.get('ratelimit_server.ShouldRateLimit.total_requests') ?? 0;
    expect(await call(2000, 'exact=a')).toBe(1000);
    const statistics = await statisticsWhen(HITS, 2000);
    expect(statistics.get('ratelimit.service.rate_limit.shop.exact.within_limit')).toBe(1000);
    expect(statistics.get('ratelimit.service.rate_limit.shop.exact.over_limit')).toBe(1000);
    expect(statistics.get('ratelimit_server.ShouldRateLimit.total_requests')).toBe(before + 2000);
    expect(statistics.get('ratelimit_server.grpc.connections')).toBe(6);
    expect(statistics.get('ratelimit.workers.ready')).toBe(2);
    const line = /^worker 1: pid=\d+ state=serving connections=3 uptime=\d+s restarts=0\nworker 2: /;
    expect(await weir.debug('/workers')).toMatch(line);
    const [event] = await eventsOf(await fetch(`http://127.0.0.1:${weir.ports.debug}/api/events`), 1);
    expect(event).toMatchObject({ workers: [{ worker: 1, connections: 3 }, { worker: 2 }], loaded: { rules: 4 } });
    // Each process sets its own flags of V8.
    const pids = [weir.pid, ...workersOf(weir).map(({ pid }) => pid)];
    for (const pid of pids) await weir.line(new RegExp(`process ${pid} sets --no-parallel-scavenge$`));
  });

  it('shows Prometheus the statistics of all workers, and the metrics of each process', async () => {
    await call(80, 'exact=b');
    await call(80, 'several=b');
    const statistics = await weir.statistics();
    const ofRules = {
      'key1="exact",region="eu"': statistics.get(HITS),
      'key1="several",region="eu",window="year"': statistics.get(SEVERAL_HITS),
      'key1="several",region="eu",window="2year"': statistics.get(SEVERAL_HITS),
    };
    // A worker that is late is shown by its last report.
    const page = await weir.until('a complete page', async () => {
      const text = await (await fetch(metrics, { headers: { connection: 'close' } })).text();
      const totals = Object.entries(ofRules).map(
        ([labels, hits]) => `ratelimit_service_rate_limit_total_hits{domain="shop",${labels}} ${hits}\n`,
      );
      return (
        totals.every((total) => text.includes(total)) &&
        text.match(/^process_resident_memory_bytes\{/gm)?.length === 3 &&
        text
      );
    });
    expect(page).toMatch(/^ratelimit_service_response_time_seconds_bucket\{.*le="\+Inf"\} \d{3,}$/m);
    const processes = [...page.matchAll(/^process_resident_memory_bytes\{(.*)\} \d+$/gm)].map(([, labels]) => labels);
    expect(processes).toEqual(['region="eu"', 'region="eu",worker="1"', 'region="eu",worker="2"']);
    expect(page.match(/^# TYPE process_cpu_seconds_total counter$/gm)).toHaveLength(1);
    // Fails for a page that is not in the format; lint that also concerns one process alone is not of interest.
    try {
      execFileSync('promtool', ['check', 'metrics'], { input: page, stdio: ['pipe', 'pipe', 'pipe'] });
    } catch (error) {
      expect(String((error as { stderr: Buffer }).stderr)).not.toMatch(/error while linting|second HELP|second TYPE/);
    }
  });

  it('takes profiles and heap snapshots of a worker or of the primary', async () => {
    const debug = `http://127.0.0.1:${weir.ports.debug}/debug/pprof`;
    const post = { method: 'POST', headers: { Authorization: `Bearer ${instance.TOKEN}` } };
    for (const query of ['', '&worker=1', '&worker=2']) {
      const response = await fetch(`${debug}/profile?seconds=0.1${query}`, post);
      const [first, second] = new Uint8Array(await response.arrayBuffer());
      expect([query, response.status, first, second]).toEqual([query, 200, 0x1f, 0x8b]);
    }
    const form = { method: 'POST', body: new URLSearchParams({ worker: '2', token: instance.TOKEN }) };
    const snapshot = (await (await fetch(`${debug}/heap?format=v8`, form)).json()) as { nodes: number[] };
    expect(snapshot.nodes.length).toBeGreaterThan(10_000);
    expect((await fetch(`${debug}/profile?seconds=0.1&worker=3`, post)).status).toBe(404);
    expect((await fetch(`${debug}/heap?format=v8&worker=2`)).status).toBe(405);
  });

  it('explains, counts and clears for operators what all workers do', () =>
    instance.expectOperatorsSeeAllWorkers(weir, clients));

  it('removes a key from the local caches of all workers when negative hits have lowered its count', async () => {
    const codes = [instance.OK, instance.OK, instance.OK, ...Array<number>(3).fill(instance.OVER_LIMIT)];
    const counter = 'GET /api/counters?domain=shop&descriptor=caller=refunded';
    expect(await clients.codes('caller=refunded')).toEqual(codes);
    await clients.codes('caller=refunded');
    expect(await instance.api(weir, counter)).toMatchObject({ isInLocalCache: true });
    const entries = [{ key: 'caller', value: 'refunded' }];
    const [client] = clients.all;
    await client!.shouldRateLimit('shop', [{ entries, limit: undefined, hitsAddend: 9n, isNegativeHits: true }]);
    // The others are told when the answer is there.
    const state = await weir.until('no worker to have it', async () => {
      const found = await instance.api(weir, counter);
      return found['isInLocalCache'] === false && found;
    });
    expect(state).toMatchObject({ count: 0 });
    expect(await clients.codes('caller=refunded')).toEqual(codes);
  });

  it('replaces rules in all workers, and rejects invalid ones, each with one line and one count', async () => {
    await rules.write('shop.yaml', 'domain: shop\ndescriptors: [{ value: x }]\n');
    await weir.line(/new rules rejected; keeping the active rules/);
    expect(await clients.versions()).toEqual(Array(6).fill(1));
    await rules.write('shop.yaml', instance.ruleFile(2, MORE_RULES));
    await weir.line(/the rules are valid again/);
    const statistics = await statisticsWhen('ratelimit.service.config_load_success', 2);
    expect(await clients.versions()).toEqual(Array(6).fill(2));
    expect(await weir.debug('/rlconfig')).toContain(`requests_per_unit=${instance.limitOf(2)},`);
    expect(statistics.get('ratelimit.service.config_load_error')).toBe(1);
    await weir.until('the line of the load', () => instance.linesWith(weir, 'msg="rules loaded"') === 2);
    expect(instance.linesWith(weir, 'new rules rejected')).toBe(1);
  });

  it('keeps what a killed worker has counted, its rules, and the connections of the others, and replaces it', async () => {
    const before = (await weir.statistics()).get(HITS);
    const [victim, survivor] = workersOf(weir);
    const owners = await clients.owners();
    const replacement = await instance.replace(weir, victim!.pid, 'SIGKILL');
    await weir.line(/level=error msg="a worker has ended; .*worker=1 .*reason="killed by SIGKILL" in=100ms/);
    const statistics = await statisticsWhen('ratelimit.workers.ready', 2);
    expect([statistics.get('ratelimit.workers.restarts'), statistics.get(HITS)]).toEqual([1, before]);
    expect(clients.all.map(({ isClosed }) => isClosed)).toEqual(owners.map((pid) => pid === victim!.pid));
    expect(workersOf(weir)[1]).toEqual(survivor);
    clients[Symbol.dispose]();
    clients = new instance.Clients(weir);
    await clients.addUntilServedBy(replacement);
    expect(new Set(await clients.versions())).toEqual(new Set([2]));
    expect(new Set(await clients.codes('exact=a'))).toEqual(new Set([instance.OVER_LIMIT]));
  });

  it('is unhealthy while no worker is left, and recovers', async () => {
    const answer = await weir.until('the health to turn', async () => {
      for (const { pid } of workersOf(weir)) process.kill(pid, 'SIGKILL');
      const response = await weir.http('/healthcheck').catch(() => undefined);
      return response?.status === 503 && response.text();
    });
    expect(answer).toBe('unhealthy: workers');
    await weir.until('the health to recover', async () => (await weir.debugHealth())[0] === 200);
    using client = await clients.add();
    await expect(client.shouldRateLimit('shop', ['user=recovered'])).resolves.toMatchObject({
      overallCode: instance.OK,
    });
  });

  it('does not start a second time on the same port, with one message', async () => {
    const env = { ...rules.env, WORKERS: '2', GRPC_PORT: String(weir.ports.grpc) };
    await using second = await WeirProcess.start({ env, awaitServing: false });
    expect(await second.exited).toBe(1);
    expect(instance.linesWith(second, 'the service cannot run: ')).toBe(1);
    expect(second.output).toMatch(
      /cannot listen on 127\.0\.0\.1:\d+ \(GRPC_HOST, GRPC_PORT\): another process is already listening there/,
    );
  });

  it('answers on SIGTERM every call that it does not refuse, exits with 0, and leaves no process', async () => {
    await weir.until('both workers', async () => (await weir.statistics()).get('ratelimit.workers.ready') === 2);
    const workers = workersOf(weir);
    const connections = Array.from({ length: 4 }, () => new Http2Connection(weir.grpcAddress));
    let answered = 0;
    const calls = connections.map(async (connection) => {
      for (let status = 0; status === 0; answered += 1) {
        status = await connection.call(SHOULD_RATE_LIMIT, requestMessage('shop', ['user=drained'])).status;
      }
    });
    // A caller ends with a call that was refused, or cannot be made any more.
    const callers = Promise.allSettled(calls);
    await weir.until('calls to be answered', () => answered > 500);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    await callers;
    // What a killed worker does not send.
    const areEnded = connections.map(({ events }) => events.some((event) => event.startsWith('GOAWAY 0')));
    expect(areEnded).toEqual([true, true, true, true]);
    const life = ['msg="serving"', 'msg="draining: ', 'msg="drained; '];
    expect(life.map((line) => instance.linesWith(weir, line))).toEqual([1, 1, 1]);
    await until('the workers have ended', () => workers.every(({ pid }) => !instance.isRunning(pid)));
  });
});

test('WORKERS=1 is a single process', async () => {
  await using single = await WeirProcess.start({ env: { ...rules.env, WORKERS: '1' } });
  expect(workersOf(single)).toEqual([]);
});
