import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { RuleFolder } from '../support/data/rule-folder';
import { RateLimitClient } from '../support/clients/grpc-client';
import { isListening } from '../support/processes/is-listening';
import { WeirProcess } from '../support/processes/weir-process';

const MAIN = join(__dirname, '../../dist/main.js');
const PLAIN = 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 5}}]\n';

/** Runs the program until it exits. */
async function runToEnd(env: Record<string, string>, ...args: string[]) {
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [MAIN, ...args], { env, timeout: 60_000 });
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

async function refuses(url: string) {
  return fetch(url).then(
    () => false,
    () => true,
  );
}

describe('the settings of the service', () => {
  it('are all listed in one message when they are wrong, and the process exits with 1', async () => {
    const { code, stderr } = await runToEnd({
      PORT: 'tcp://10.0.0.1:80',
      NEAR_LIMIT_RATIO: '2',
      KVSTORE_TIMEOUT: '10',
      GRPC_PORT: '99999',
    });
    expect(code).toBe(1);
    for (const name of ['PORT', 'NEAR_LIMIT_RATIO', 'KVSTORE_TIMEOUT', 'GRPC_PORT']) expect(stderr).toContain(name);
  });

  it('are listed by --help, each with its alias', async () => {
    const { code, stdout } = await runToEnd({}, '--help');
    expect(code).toBe(0);
    expect(stdout).toContain('KVSTORE_URL');
    expect(stdout).toContain('REDIS_URL');
  });
});

describe('the service at its start', () => {
  it('exits with 1 and a message that names the port when a port is in use', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': PLAIN });
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    const { code, stderr } = await runToEnd({
      ...rules.env,
      BACKEND_TYPE: 'memory',
      HOST: '127.0.0.1',
      PORT: String(port),
      GRPC_PORT: '0',
      DEBUG_PORT: '0',
    });
    taken.close();
    expect(code).toBe(1);
    expect(stderr).toContain(String(port));
  });

  it('listens on the addresses of HOST, GRPC_HOST and DEBUG_HOST, and on no others', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': PLAIN });
    const env = { ...rules.env, HOST: '127.0.0.2', GRPC_HOST: '127.0.0.3', DEBUG_HOST: '127.0.0.4' };
    await using weir = await WeirProcess.start({ env });
    const { http, grpc, debug } = weir.ports;
    using client = new RateLimitClient(`127.0.0.3:${grpc}`);
    expect((await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining).toBe(4);
    expect((await fetch(`http://127.0.0.2:${http}/healthcheck`)).status).toBe(200);
    expect((await fetch(`http://127.0.0.4:${debug}/rlconfig`)).status).toBe(200);
    expect(await Promise.all([http, grpc, debug].map(isListening))).toEqual([false, false, false]);
  });

  it('does not serve decisions before the first good rules, also after rules that were rejected', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': 'domain: ""\n' });
    await using weir = await WeirProcess.start({ env: rules.env, awaitServing: false });
    await weir.line(/cannot have empty domain/);
    expect(await refuses(`http://127.0.0.1:${weir.ports.http}/healthcheck`)).toBe(true);
    expect(await weir.debug('/rlconfig')).toContain('# no configuration loaded yet');
    await weir.line(/level=warning msg="no active rules; not serving until valid rules are loaded"/);
    expect(await weir.debugHealth()).toEqual([500, 'unhealthy: waiting for the first valid rules']);

    await rules.write('shop.yaml', PLAIN);
    await weir.line(/msg="?serving/);
    expect(await weir.debugHealth()).toEqual([200, 'OK']);
    using client = new RateLimitClient(weir.grpcAddress);
    expect((await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining).toBe(4);
  });

  it('waits for a rule folder that does not exist yet', async () => {
    await using rules = await RuleFolder.with({});
    await rm(join(rules.root, 'config'), { recursive: true });
    await using weir = await WeirProcess.start({ env: rules.env, awaitServing: false });
    await weir.line(/does not exist/);
    expect(weir.output).not.toMatch(/msg="?serving/);
    await mkdir(join(rules.root, 'config'));
    await writeFile(join(rules.root, 'config', 'shop.yaml'), PLAIN);
    await weir.line(/msg="?serving/);
  });

  it('serves at once with FORCE_START_WITHOUT_INITIAL_CONFIG, and fails calls until rules are loaded', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': 'domain: ""\n' });
    const env = {
      ...rules.env,
      FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
      HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: '1',
    };
    await using weir = await WeirProcess.start({ env });
    using client = new RateLimitClient(weir.grpcAddress);
    await expect(client.shouldRateLimit('shop', ['user=x'])).rejects.toMatchObject({
      code: 9,
      details: 'no rate limit configuration loaded',
    });
    const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user' }] }] });
    expect((await weir.http('/json', { method: 'POST', body })).status).toBe(503);
    const health = await weir.http('/healthcheck');
    expect([health.status, await health.text()]).toEqual([500, expect.stringContaining('configuration')]);

    await rules.write('shop.yaml', PLAIN);
    await weir.until('the service to be healthy', async () => (await weir.http('/healthcheck')).status === 200);
    expect((await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining).toBe(4);
  });

  it('ends at a signal while it waits for rules', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': 'domain: ""\n' });
    await using weir = await WeirProcess.start({ env: rules.env, awaitServing: false });
    await weir.line(/cannot have empty domain/);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  });
});

describe('the running service', () => {
  it('applies a changed file to the next call, keeps its rules when a file is bad, and keeps its counters', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': PLAIN });
    await using weir = await WeirProcess.start({ env: rules.env });
    using client = new RateLimitClient(weir.grpcAddress);
    async function left() {
      return (await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining;
    }
    expect(await left()).toBe(4);

    await rules.write(
      'bad.yaml',
      'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: fortnight, requests_per_unit: 1}}]\n',
    );
    await weir.line(/bad\.yaml.*fortnight/);
    expect(await left()).toBe(3);
    expect((await weir.statistics()).get('ratelimit.service.config_load_error')).toBe(1);

    await rules.remove('bad.yaml');
    await rules.write('shop.yaml', PLAIN.replace('5', '50'));
    await weir.until('the new limit', async () => (await weir.debug('/rlconfig')).includes('requests_per_unit=50'));
    expect(await left()).toBe(47);
  });
});
