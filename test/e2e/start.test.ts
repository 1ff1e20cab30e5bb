import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { VERSION } from '../../src/version';
import { RateLimitClient } from '../support/clients/grpc-client';
import { freePorts } from '../support/processes/free-ports';
import { isListening } from '../support/processes/is-listening';
import { SHOP, Shop } from './shop';

type Environment = Readonly<Record<string, string>>;

const ROOT = join(__dirname, '../..');
const EXAMPLES = { RUNTIME_ROOT: join(ROOT, 'examples'), RUNTIME_WATCH_ROOT: 'false', DISABLE_STATS: 'true' };
const MEMORY = { BACKEND_TYPE: 'memory' };

/** The standard error of the program, which must exit with 1. */
async function failToStart(env: Environment): Promise<string> {
  const ports = { HOST: '127.0.0.1', DEBUG_HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', DEBUG_PORT: '0' };
  const run = promisify(execFile)(process.execPath, [join(ROOT, 'dist/main.js')], {
    env: { ...ports, ...env },
    timeout: 60_000,
  });
  const error = await run.then(
    () => undefined,
    (failure: unknown) => failure as { code: unknown; stderr: string },
  );
  expect(error?.code).toBe(1);
  return error?.stderr.trimEnd() ?? '';
}

describe('what prevents the service from starting', () => {
  it('is in the log, a line for each invalid setting or missing file, before anything listens', async () => {
    const file = '/none/such.file';
    const stderr = await failToStart({
      ...{ ...EXAMPLES, ...MEMORY, DISABLE_STATS: 'false', USE_PROMETHEUS: 'true', PROMETHEUS_MAPPER_YAML: file },
      ...{ GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: file, GRPC_SERVER_TLS_KEY: file },
      ...{ DECISION_LOG: 'all', DECISION_LOG_OUTPUT: file, PORT: 'x' },
    });
    const missing = 'it cannot be read (ENOENT)';
    const lines = stderr
      .split('\n')
      .map((line) => /^time="[-\dT:.]+Z" level=fatal msg=(".*")$/.exec(line)?.[1] ?? line);
    expect(lines.map((text) => String(JSON.parse(text)).replace('invalid setting: ', ''))).toEqual([
      'PORT="x" is invalid; allowed: whole number, 0 to 65535.',
      `cannot use GRPC_SERVER_TLS_CERT=${file}: ${missing}.`,
      `cannot use GRPC_SERVER_TLS_KEY=${file}: ${missing}.`,
      `PROMETHEUS_MAPPER_YAML=${file} cannot be used: ${missing}.`,
      expect.stringContaining(`cannot use DECISION_LOG_OUTPUT=${file}: its folder cannot be written to: ENOENT`),
    ]);
  });

  it.each([
    ['HOST, PORT', 'PORT', {}],
    ['GRPC_HOST, GRPC_PORT', 'GRPC_PORT', { WORKERS: '2' }],
    ['DEBUG_HOST, DEBUG_PORT', 'DEBUG_PORT', {}],
    ['PROMETHEUS_ADDR', 'PROMETHEUS_ADDR', { DISABLE_STATS: 'false', USE_PROMETHEUS: 'true' }],
  ])('is in the log with the settings %s when a port is in use', async (settings, name, more) => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const at = name === 'PROMETHEUS_ADDR' ? `127.0.0.1:${port}` : String(port);
    const stderr = await failToStart({ ...EXAMPLES, ...MEMORY, GRPC_HOST: '127.0.0.1', ...more, [name]: at });
    server.close();
    expect(stderr).toMatch(/time="[-\dT:.]+Z" level=fatal msg="the service cannot run: cannot listen on 127/);
    expect(stderr).toContain(
      `127.0.0.1:${port} (${settings}): another process is already listening there (EADDRINUSE)`,
    );
  });

  it('shows every character of an invalid setting in its place', async () => {
    expect(await failToStart({ PORT: '80\u202e' })).toContain(String.raw`PORT=\"80\u202e\" is invalid`);
  });

  it('is one JSON object for each invalid setting with LOG_FORMAT=json, without secrets', async () => {
    const secret = 'correct-horse';
    const stderr = await failToStart({
      LOG_FORMAT: 'JSON',
      REDIS_AUTH: secret,
      KVSTORE_URL: 'a:1',
      REDIS_URL: `redis://:${secret}@a:1`,
      PORT: secret,
      GRPC_UDS: `/${'x'.repeat(200)}`,
      OPERATOR_TOKEN: 'short',
      DECISION_LOG: 'all',
      USE_STATSD: 'false',
    });
    expect(stderr).not.toContain(secret);
    const records = stderr.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
    for (const record of records) expect(record).toMatchObject({ level: 'fatal', '@timestamp': expect.any(String) });
    const messages = records.map((record) => String(record['@message']));
    const names = messages.map((message) => /^invalid setting: (\w+)/.exec(message)?.[1]);
    expect(names).toHaveLength(5);
    expect(new Set(names)).toEqual(new Set(['DECISION_LOG', 'GRPC_UDS', 'KVSTORE_URL', 'OPERATOR_TOKEN', 'PORT']));
    expect(messages).toContain('invalid setting: PORT="***" is invalid; allowed: whole number, 0 to 65535.');
    expect(messages.join('\n')).toContain(
      'KVSTORE_URL="a:1" and REDIS_URL="redis://***@a:1" are two names of one setting',
    );
  });
});

describe('the service at its start', () => {
  it('listens on the addresses of its settings and on no others, and logs them with its version, store and rules', async () => {
    const [metrics] = await freePorts(1);
    const hosts = { HOST: '127.0.0.2', GRPC_HOST: '127.0.0.3', DEBUG_HOST: '127.0.0.4' };
    const pull = { USE_PULLMETRICS: 'true', PULLMETRICS_ADDR: `127.0.0.1:${metrics}` };
    await using shop = await Shop.start({ env: { ...hosts, ...pull, LOG_LEVEL: '' } });
    const { http, grpc, debug } = shop.weir.ports;
    expect(await shop.weir.line(/msg="serving"/)).toContain(
      ` level=info msg="serving" version=${VERSION} grpc=127.0.0.3:${grpc} http=127.0.0.2:${http} ` +
        `debug=127.0.0.4:${debug} metrics=127.0.0.1:${metrics} store=memory ` +
        `source="files in ${shop.rules.root}/config" domains=1 rules=1`,
    );
    using client = new RateLimitClient(`127.0.0.3:${grpc}`);
    expect((await client.shouldRateLimit('shop', ['user=x'])).overallCode).toBe(1);
    for (const at of [`2:${http}/healthcheck`, `4:${debug}/rlconfig`, `1:${metrics}/metrics`]) {
      expect((await fetch(`http://127.0.0.${at}`)).status).toBe(200);
    }
    expect(await Promise.all([http, grpc, debug].map(isListening))).toEqual([false, false, false]);
  });

  it('waits for a rule folder, then for valid rules, and says so on its debug listener', async () => {
    const env = { RUNTIME_SUBDIRECTORY: 'later' };
    await using shop = await Shop.start({ env, awaitServing: false });
    const { weir, rules } = shop;
    await weir.line(/does not exist/);
    await weir.line(/level=warning msg="no active rules; not serving until valid rules are loaded"/);
    expect(await weir.debugHealth()).toEqual([500, 'unhealthy: waiting for the first valid rules']);
    expect(await weir.debug('/readyz')).toBe(
      '[-]configuration failed: waiting for the first valid rules\n[+]store ok\n[+]draining ok\n' +
        '[-]listeners failed: not open yet\nreadyz check failed\n',
    );
    expect(await weir.debug('/livez')).toBe('ok');

    await mkdir(join(rules.root, 'later/config'), { recursive: true });
    await rules.write('../later/config/shop.yaml', 'domain: ""\n');
    await weir.line(/cannot have empty domain/);
    expect(await isListening(weir.ports.http)).toBe(false);
    expect(await weir.debug('/rlconfig')).toContain('# no configuration loaded yet');

    await rules.write('../later/config/shop.yaml', SHOP);
    await weir.line(/msg="serving"/);
    expect(await weir.debugHealth()).toEqual([200, 'OK']);
    expect(await shop.hit()).toBe(999_999);
  });

  it('serves at once with FORCE_START_WITHOUT_INITIAL_CONFIG, and fails calls until rules are loaded', async () => {
    const env = { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true', HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: '1' };
    await using shop = await Shop.start({ env }, 'domain: ""\n');
    const noRules = { code: 9, details: 'no rate limit configuration loaded' };
    await expect(shop.hit()).rejects.toMatchObject(noRules);
    expect((await shop.json('x')).status).toBe(503);
    const health = await shop.weir.http('/healthcheck');
    expect([health.status, await health.text()]).toEqual([500, expect.stringContaining('configuration')]);

    await shop.rules.write('shop.yaml', SHOP);
    await shop.weir.until('the health', async () => (await shop.weir.http('/healthcheck')).status === 200);
    expect(await shop.hit()).toBe(999_999);
  });
});

it('the service writes no line in a life without trouble at LOG_LEVEL=error', async () => {
  await using shop = await Shop.start({ env: { LOG_LEVEL: 'error', DISABLE_STATS: 'true' }, awaitServing: false });
  await shop.weir.until('the service to serve', () => isListening(shop.weir.ports.grpc));
  await shop.rules.write('shop.yaml', SHOP.replace('1000000', '6'));
  const changed = 'requests_per_unit=6,';
  await shop.weir.until('the new limit', async () => (await shop.weir.debug('/rlconfig')).includes(changed));
  await shop.drain();
  expect(shop.weir.output).toBe('');
});
