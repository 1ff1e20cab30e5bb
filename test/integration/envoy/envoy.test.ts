import { join } from 'node:path';
import { EnvoyProcess } from '../../support/processes/envoy-process';
import { RuleFolder } from '../../support/data/rule-folder';
import { WeirProcess } from '../../support/processes/weir-process';
import { roomInMinute } from '../../support/waiting/window-room';

const EXAMPLE = {
  RUNTIME_ROOT: join(__dirname, '../../../examples/envoy'),
  RUNTIME_WATCH_ROOT: 'false',
  LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
  LIMIT_RESET_HEADER: 'X-Seconds-To-Go',
};

describe('weir behind Envoy, with the configuration of examples/envoy,', () => {
  let weir: WeirProcess;
  let envoy: EnvoyProcess;
  beforeAll(async () => {
    weir = await WeirProcess.start({ env: EXAMPLE });
    envoy = await EnvoyProcess.start({ weirPort: weir.ports.grpc });
  });
  afterAll(async () => {
    await envoy[Symbol.asyncDispose]();
    await weir[Symbol.asyncDispose]();
  });

  beforeEach(roomInMinute);

  async function statuses(count: number, path: string, user: string) {
    const seen: number[] = [];
    for (let call = 0; call < count; call += 1) seen.push((await envoy.get(path, { 'x-user': user })).status);
    return seen;
  }

  it('allows requests up to the limit, then responds with 429 and x-envoy-ratelimited', async () => {
    expect(await statuses(3, '/orders', 'anna')).toEqual([200, 200, 200]);
    const limited = await envoy.get('/orders', { 'x-user': 'anna' });
    expect([limited.status, limited.headers.get('x-envoy-ratelimited')]).toEqual([429, 'true']);
    expect((await envoy.get('/orders', { 'x-user': 'bert' })).status).toBe(200);
  });

  it('returns the limit, the remaining requests and the reset time as headers with the names that are set', async () => {
    const { headers } = await envoy.get('/orders', { 'x-user': 'carl' });
    expect([headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]).toEqual(['3', '2']);
    expect(headers.has('ratelimit-reset')).toBe(false);
    expect(Number(headers.get('x-seconds-to-go'))).toBeGreaterThan(0);
    expect(Number(headers.get('x-seconds-to-go'))).toBeLessThanOrEqual(60);
  });

  it('counts several descriptors of one request, each against its own rule', async () => {
    const before = await weir.statistics();
    await envoy.get('/orders', { 'x-user': 'dora' });
    const after = await weir.statistics();
    function increase(key: string) {
      const name = `ratelimit.service.rate_limit.edge.${key}.total_hits`;
      return (after.get(name) ?? 0) - (before.get(name) ?? 0);
    }
    expect([increase('user'), increase('path_/orders.user')]).toEqual([1, 1]);
  });

  it('counts a request with a hits addend as that many requests', async () => {
    expect(await statuses(11, '/report', 'emil')).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
  });

  it('rejects no request for a rule in shadow mode, and counts those it would have rejected', async () => {
    expect(await statuses(3, '/search?q=x', 'fred')).toEqual([200, 200, 200]);
    const name = 'ratelimit.service.rate_limit.edge.path_/search*.user.shadow_mode';
    expect((await weir.statistics()).get(name)).toBe(2);
  });

  it('receives no call for a request without a descriptor', async () => {
    const before = (await weir.statistics()).get('ratelimit_server.ShouldRateLimit.total_requests');
    expect((await envoy.get('/plain')).status).toBe(200);
    expect((await weir.statistics()).get('ratelimit_server.ShouldRateLimit.total_requests')).toBe(before);
  });
});

describe('Envoy, when weir is stopped,', () => {
  it.each([
    ['false', 200],
    ['true', 500],
  ])('responds as failure_mode_deny: %s defines (%i), and calls weir again when it is back', async (deny, status) => {
    await using rules = await RuleFolder.with({ 'edge.yaml': edgeRules(1) });
    const first = await WeirProcess.start({ env: rules.env });
    await using envoy = await EnvoyProcess.start({
      weirPort: first.ports.grpc,
      changes: [['failure_mode_deny: false', `failure_mode_deny: ${deny}`]],
    });
    async function get() {
      return (await envoy.get('/', { 'x-user': 'anna' })).status;
    }
    expect([await get(), await get()]).toEqual([200, 429]);

    first.signal('SIGTERM');
    expect(await first.exited).toBe(0);
    expect(await get()).toBe(status);

    await using second = await WeirProcess.start({ env: { ...rules.env, GRPC_PORT: String(first.ports.grpc) } });
    await second.until('Envoy to call the new instance', async () => (await get()) === 429);
    await first[Symbol.asyncDispose]();
  });
});

it('a reload under load fails no request, and the new limit applies', async () => {
  await using rules = await RuleFolder.with({ 'edge.yaml': edgeRules(1_000_000) });
  await using weir = await WeirProcess.start({ env: rules.env });
  await using envoy = await EnvoyProcess.start({
    weirPort: weir.ports.grpc,
    changes: [['failure_mode_deny: false', 'failure_mode_deny: true']],
  });
  const seen = new Map<number, number>();
  let isRunning = true;
  const traffic = Array.from({ length: 8 }, async () => {
    while (isRunning) {
      const response = await envoy.get('/', { 'x-user': 'anna' });
      await response.text();
      seen.set(response.status, (seen.get(response.status) ?? 0) + 1);
    }
  });
  for (let reload = 1; reload <= 4; reload += 1) {
    await rules.write('edge.yaml', edgeRules(1_000_000 + reload));
    await weir.until('the reload', async () => (await weir.debug('/rlconfig')).includes(`=${1_000_000 + reload},`));
  }
  await weir.until('many responses', () => (seen.get(200) ?? 0) > 50);
  expect([...seen.keys()]).toEqual([200]);
  await rules.write('edge.yaml', edgeRules(1));
  await weir.until('the new limit to apply', () => seen.has(429));
  isRunning = false;
  await Promise.all(traffic);
  expect(new Set(seen.keys())).toEqual(new Set([200, 429]));
});

function edgeRules(limit: number): string {
  return `domain: edge\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: ${limit}}}]\n`;
}
