import { exec, execSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import packageFile from '../../package.json';
import { SecretMount } from '../support/data/secret-mount';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { freePorts } from '../support/processes/free-ports';
import { RedisProcess } from '../support/processes/redis/redis-process';

const ROOT = join(__dirname, '../..');

/**
 * Calls of three rules with smaller limits are not suggested: one bans, one needs quotes, and `a*` matches before
 * `ax*`.
 */
const MAIL = `domain: mail
descriptors:
  - {key: sender, value: spam, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: sender, value: "it's", rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: sender, value: "a*", rate_limit: {unit: day, requests_per_unit: 3}}
  - {key: sender, value: "ax*", rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: sender, rate_limit: {unit: day, requests_per_unit: 9}}
  - key: sender
    value: "list-*"
    descriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 7}}]
`;

/** What `npm start` runs after the installation and the build. */
async function start(env: Readonly<Record<string, string>>) {
  const [http, grpc, debug, metrics] = await freePorts(4);
  const own = {
    ...{ PORT: String(http), GRPC_PORT: String(grpc), DEBUG_PORT: String(debug) },
    SHUTDOWN_DELAY: '0',
    ...(env['USE_PULLMETRICS'] !== undefined && { PULLMETRICS_ADDR: `127.0.0.1:${metrics}` }),
  };
  const child = spawn('sh', ['-c', packageFile.scripts.start], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], ...own, ...env },
  });
  const lines: string[] = [];
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => {
        lines.push(line);
        if (line.startsWith('Open http')) resolve();
      });
    }
    child.once('close', () => reject(new Error(lines.join('\n'))));
  });
  return {
    lines,
    ports: { http, grpc, debug, metrics },
    metrics: `http://127.0.0.1:${metrics}/metrics`,
    debug: async (path: string) => (await fetch(`http://127.0.0.1:${debug}${path}`)).text(),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** The log lines that report trouble; not those that the start takes longer than a second, as on a busy machine. */
function troubles(lines: readonly string[]) {
  return lines.filter((line) => / level=(?!info)/.test(line) && !line.includes('; not serving until '));
}

describe('npm start', () => {
  it('runs with the example rules, says where, and logs no warning', async () => {
    await using weir = await start({});
    expect(weir.lines.join('\n')).toMatch(/-domain shop -descriptors path=\/orders,user=anna$/m);
    expect(await weir.debug('/rlconfig')).toContain('shop.user');
    expect(await weir.debug('/stats')).not.toContain('certs.');
    expect(troubles(weir.lines)).toEqual([]);
    expect(weir.lines).toContain('Counters are stored in this process.');
    const { http, grpc, debug } = weir.ports;
    expect(weir.lines).toContain(
      `weir is running: gRPC on port ${grpc}, HTTP on port ${http}, debug on port ${debug}.`,
    );
  });

  it('ends before it installs or builds when a port is in use, and names the settings', async () => {
    using checkout = new TemporaryFolder();
    checkout.write('package.json', '{"engines":{"node":">=20"}}');
    for (const name of ['prepare.mjs', 'workspace.mjs'])
      checkout.write(`scripts/${name}`, readFileSync(join(ROOT, 'scripts', name), 'utf8'));
    const servers = [1, 2].map(() => createServer().listen(0, '127.0.0.1'));
    await Promise.all(servers.map((server) => once(server, 'listening')));
    const [PORT, DEBUG_PORT] = servers.map((server) => String((server.address() as AddressInfo).port));
    const env = { PATH: process.env['PATH'], HOST: '127.0.0.1', PORT, GRPC_PORT: '0', DEBUG_PORT };
    const run = promisify(exec)(packageFile.scripts.prestart, { cwd: checkout.base, env });
    await expect(run).rejects.toMatchObject({
      code: 1,
      stderr:
        `weir: another process is already listening on port ${PORT}: end it, or set PORT to another port\n` +
        `weir: another process is already listening on port ${DEBUG_PORT}: end it, or set DEBUG_PORT to another port\n`,
    });
    for (const server of servers) server.close();
  });

  it('suggests calls that are limited by the rules that it runs with', async () => {
    using rules = new TemporaryFolder();
    rules.write('config/mail.yaml', MAIL);
    await using weir = await start({ RUNTIME_ROOT: rules.base });
    const suggested = weir.lines.slice(weir.lines.indexOf('Try it in another terminal:'));
    expect(suggested.slice(0, 6)).toEqual([
      'Try it in another terminal:',
      '',
      `  curl -s -X POST http://localhost:${weir.ports.http}/json \\`,
      `    -d '{"domain":"mail","descriptors":[{"entries":[{"key":"sender","value":"ax"}]}]}'`,
      '',
      `  node dist/cli/weir-client.js -address localhost:${weir.ports.grpc} -domain mail -descriptors sender=list-x,user=anna`,
    ]);
    expect(execSync(suggested[5]!, { cwd: ROOT, encoding: 'utf8' })).toMatch(/ OK {2}6 of 7 per hour left/);
    // Also without a warning of Node.
    const repeated = execSync(`${suggested[5]} -n 30 -rate 100 2>&1`, { cwd: ROOT, encoding: 'utf8' });
    expect(repeated).toMatch(/^30 calls in [\d.]+ s: 6 OK, 24 OVER_LIMIT\n {2}latency: .*\n$/);
    expect(execSync(suggested.slice(2, 4).join('\n'), { encoding: 'utf8' })).toContain('"requestsPerUnit":3');
  });

  it.each(['KVSTORE_URL', 'REDIS_URL_FILE'])(
    'stores counters in the Redis of %s, and sends no statistics when an output is switched off',
    async (name) => {
      await using redis = await RedisProcess.start();
      using secrets = new SecretMount({ url: redis.address });
      const url = name.endsWith('_FILE') ? secrets.path('url') : redis.address;
      await using weir = await start({ [name]: url, USE_PULLMETRICS: 'false' });
      const descriptors = [{ entries: [{ key: 'user', value: 'anna' }] }];
      const body = JSON.stringify({ domain: 'shop', descriptors });
      await fetch(`http://127.0.0.1:${weir.ports.http}/json`, { method: 'POST', body });
      expect(await redis.control.dbsize()).toBe(1);
      expect(weir.lines).not.toContain('Counters are stored in this process.');
      expect(await weir.debug('/api/settings')).toMatch(/\{"name":"DISABLE_STATS","source":"\w+","value":"true",/);
    },
  );
});
