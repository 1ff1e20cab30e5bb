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
});

it('Envoy responds as failure_mode_deny defines while weir is stopped, and calls weir again when it is back', async () => {
  await using rules = await RuleFolder.with({
    'edge.yaml': 'domain: edge\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 1 } }]\n',
  });
  await using first = await WeirProcess.start({ env: rules.env });
  const weirPort = first.ports.grpc;
  await using allowing = await EnvoyProcess.start({ weirPort });
  await using denying = await EnvoyProcess.start({
    weirPort,
    changes: [['failure_mode_deny: false', 'failure_mode_deny: true']],
  });
  async function statuses(user: string) {
    return [
      (await allowing.get('/', { 'x-user': `${user}1` })).status,
      (await denying.get('/', { 'x-user': `${user}2` })).status,
    ];
  }
  expect([await statuses('anna'), await statuses('anna')]).toEqual([
    [200, 200],
    [429, 429],
  ]);

  first.signal('SIGTERM');
  expect(await first.exited).toBe(0);
  expect(await statuses('anna')).toEqual([200, 500]);

  await using second = await WeirProcess.start({ env: { ...rules.env, GRPC_PORT: String(weirPort) } });
  await second.until('both to call the new instance', async () => String(await statuses('anna')) === '429,429');
});
