import { execFile } from 'node:child_process';
import { join } from 'node:path';
import packageFile from '../../package.json';
import { answerCommandLine } from '../../src/main/command-line';
import { SecretMount } from '../support/data/secret-mount';
import { SilentPeer } from '../support/servers/silent-peer';
import { WeirProcess } from '../support/processes/weir-process';
import { Shop } from './shop';

type Environment = Readonly<Record<string, string>>;

const ROOT = join(__dirname, '../..');
const PROGRAMS: Readonly<Record<string, string>> = packageFile.bin;
const PROBE = 'dist/cli/health-probe.js';
const TOKEN = 'token-of-the-operators';
const RULES = `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 2, name: per-user }
    descriptors:
      - key: path
        shadow_mode: true
        rate_limit: { unlimited: true }
`;

let shop: Shop;
let address: string;
beforeAll(async () => {
  shop = await Shop.start({ env: { OPERATOR_TOKEN: TOKEN } }, RULES);
  address = `127.0.0.1:${shop.weir.ports.debug}`;
});
afterAll(() => shop[Symbol.asyncDispose]());

/** Runs a built program by its own file, as an installed one is run. */
function run(program: string, args: readonly string[] = [], env: Environment = {}) {
  const path = PROGRAMS[program];
  const [file, before] = path === undefined ? [process.execPath, [join(ROOT, program)]] : [join(ROOT, path), []];
  const options = { env: { PATH: process.env['PATH'], ...env }, timeout: 60_000 };
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    execFile(file, [...before, ...args], options, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

function admin(...args: readonly string[]) {
  return run('weir-admin', [...args, '-address', address], { OPERATOR_TOKEN: TOKEN });
}

const ANN = ['-domain', 'shop', '-descriptors', 'user=ann'] as const;

describe.each(Object.keys(PROGRAMS))('%s', (name) => {
  it('prints the version of package.json with --version', async () => {
    const stdout = `${name} ${packageFile.version}\n`;
    expect(await run(name, ['--version'])).toEqual({ code: 0, stdout, stderr: '' });
  });

  it.each([
    ['--verison', 'unknown flag -verison; did you mean -version?'],
    ['serve', 'unexpected argument "serve"'],
  ])('rejects %s, says what it is, and does nothing else', async (argument, message) => {
    // An argument of weir-check is a path; of two rule sets, a third is one too many.
    const isPath = name === 'weir-check' && !argument.startsWith('-');
    const { code, stdout, stderr } = await run(name, isPath ? ['-diff', '.', '.', argument] : [argument]);
    expect([code, stdout]).toEqual([2, '']);
    if (isPath) return;
    // weir-bump is of another package, and has the messages of Node.
    expect(stderr).toContain(name === 'weir-bump' ? 'weir-bump: Un' : `${name}: ${message}`);
  });
});

it.each(['examples/config', 'examples/envoy/config'])('weir-check reports no problem in %s', async (folder) => {
  const { code, stdout } = await run('weir-check', ['-config_dir', join(ROOT, folder), '-strict']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('0 errors, 0 warnings')]);
});

it('weir --help prints all characters as they are in the source', async () => {
  let help = '';
  const stdout = { write: (text: string) => (help += text) };
  expect(answerCommandLine(['--help'], { stdout, stderr: stdout })).toBe(0);
  expect(help).toContain('±10 %');
  expect((await run('weir', ['--help'])).stdout).toBe(help);
});

describe('weir-client', () => {
  it('calls the port of GRPC_PORT, once, or repeatedly with a summary', async () => {
    const env = { GRPC_PORT: String(shop.weir.ports.grpc) };
    const flags = ['-domain', 'shop', '-descriptors', 'user=client'];
    expect((await run('weir-client', flags, env)).stdout).toMatch(/^OK\n {2}user=client {2}OK {2}1 of 2 per year left/);
    const { code, stdout, stderr } = await run('weir-client', [...flags, '-n', '4', '-rate', '200', '-exit_code'], env);
    expect([code, stdout, stderr]).toEqual([
      3,
      expect.stringMatching(/^4 calls in [\d.]+ s: 1 OK, 3 OVER_LIMIT\n {2}latency: half within [\d.]+ ms, /),
      '',
    ]);
  });
});

describe('weir-admin', () => {
  it('prints the health, also with the token of a file when its variable is empty, as the service', async () => {
    expect(await admin('health')).toEqual({ code: 0, stdout: expect.stringMatching(/^healthy\n/), stderr: '' });
    using secrets = new SecretMount({ token: `${TOKEN}\n` });
    const env = { OPERATOR_TOKEN: '', OPERATOR_TOKEN_FILE: secrets.path('token') };
    const args = ['counter', 'get', ...ANN, '-address', address];
    expect(await run('weir-admin', args, env)).toMatchObject({ code: 0, stderr: '' });
  });

  it('rules prints the tree of rules with their places and totals', async () => {
    await shop.hit('totals');
    const { code, stdout } = await admin('rules', '-domain', 'shop');
    const [origin, ...lines] = stdout.trimEnd().split('\n');
    expect([code, origin]).toEqual([0, expect.stringMatching(/^2 rules from files in .*, version /)]);
    expect(lines).toEqual([
      'shop',
      expect.stringMatching(/^ {2}user, 2 per year, name per-user, \d+ hits, \d over, \d near \(shop\.yaml:3:10\)$/),
      '    path, unlimited, shadow mode, 0 hits, 0 over, 0 near (shop.yaml:6:14)',
    ]);
    const { stdout: json } = await admin('rules', '-json');
    expect(Object.keys(JSON.parse(json) as object)).toEqual(['loaded', 'rejected', 'domains']);
  });

  it('counter gets, sets and clears a counter, explain shows it, and top the callers that are limited most', async () => {
    await shop.hit('ann');
    expect((await admin('counter', 'get', ...ANN)).stdout).toMatch(
      /^1\n {2}limit 2 per year\n {2}window ends .*\n {2}key shop_user_ann_\d+\n$/,
    );
    expect((await admin('counter', 'set', ...ANN, '-count', '2')).stdout).toMatch(/^1 -> 2\n/);
    const explained = await admin('explain', ...ANN);
    expect([explained.code, ...explained.stdout.split('\n').slice(0, 5)]).toEqual([
      0,
      'OVER_LIMIT: descriptor 1 is over its limit',
      'descriptor 1: user=ann',
      '  level 1, user=ann: the rule without a value matches',
      '  rule shop.user (shop.yaml:3:10)',
      '  OVER_LIMIT: the count would be 3 after 1 hit, over the limit of 2',
    ]);
    await shop.hit('ann');
    expect((await admin('top', '-domain', 'shop')).stdout).toMatch(/^ {9}1 {2}user=ann {2}shop\.user$/m);
    expect((await admin('top', '-domain', 'none')).stdout).toBe('no caller is limited\n');
    expect((await admin('counter', 'clear', ...ANN)).stdout).toMatch(/^3 -> 0\n/);
    expect(JSON.parse((await admin('counter', 'get', ...ANN, '-json')).stdout)).toMatchObject({ count: 0 });
  });
});

describe('the health probe', () => {
  it('exits with 0 while the service is healthy, and says why it is not', async () => {
    const at = { DEBUG_HOST: '127.0.0.1', DEBUG_PORT: String(shop.weir.ports.debug) };
    expect(await run(PROBE, [], at)).toEqual({ code: 0, stdout: '', stderr: '' });
    using secrets = new SecretMount({ token: TOKEN });
    const withFile = { ...at, OPERATOR_TOKEN_FILE: secrets.path('token') };
    expect(await run(PROBE, [], withFile)).toEqual({ code: 0, stdout: '', stderr: '' });

    await using weir = await WeirProcess.start({
      env: { RUNTIME_ROOT: '/nonexistent', RUNTIME_WATCH_ROOT: 'false' },
      awaitServing: false,
    });
    await weir.until('the debug listener answers', () => weir.debugHealth().catch(() => undefined));
    const env = { DEBUG_HOST: '0.0.0.0', DEBUG_PORT: String(weir.ports.debug) };
    const { code, stdout, stderr } = await run(PROBE, [], env);
    expect([code, stdout + stderr]).toEqual([1, '500 unhealthy: waiting for the first valid rules\n']);
  });

  it('exits with 1 without a service, with invalid settings, and without an answer in time', async () => {
    await using silent = await SilentPeer.start();
    const ports = { '1': 'on 127.0.0.1 port 1: connect ECONNREFUSED', x: 'DEBUG_PORT', '0': 'DEBUG_PORT is 0' };
    const hidden = { '6070\u202e': String.raw`DEBUG_PORT="6070\u202e" is invalid` };
    const expected = { ...ports, ...hidden, [silent.address.split(':')[1]!]: 'timeout' };
    for (const [DEBUG_PORT, reason] of Object.entries(expected)) {
      const { code, stdout, stderr } = await run(PROBE, [], { DEBUG_HOST: '127.0.0.1', DEBUG_PORT });
      expect([code, stdout + stderr]).toEqual([1, expect.stringContaining(reason)]);
    }
  });
});
