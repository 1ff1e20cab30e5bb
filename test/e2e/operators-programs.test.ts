import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { RuleFolder } from '../support/data/rule-folder';
import { SecretMount } from '../support/data/secret-mount';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 2, name: per-user }
    descriptors:
      - key: path
        shadow_mode: true
        rate_limit: { unlimited: true }
`;
const TOKEN = 'token-of-the-operators';

let folder: RuleFolder;
let weir: WeirProcess;
beforeAll(async () => {
  folder = await RuleFolder.with({ 'shop.yaml': RULES });
  weir = await WeirProcess.start({ env: { ...folder.env, OPERATOR_TOKEN: TOKEN } });
});
afterAll(async () => {
  await weir?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> {
  const path = join(__dirname, `../../dist/cli/${program}.js`);
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [path, ...args],
      { env: { PATH: process.env['PATH']!, ...env } },
      (error, stdout, stderr) => resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

function admin(...args: readonly string[]): Promise<Run> {
  return run('weir-admin', [...args, '-address', `127.0.0.1:${weir.ports.debug}`], { OPERATOR_TOKEN: TOKEN });
}

const ANN = ['-domain', 'shop', '-descriptors', 'user=ann'] as const;

async function hit(user: string): Promise<void> {
  const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: user }] }] });
  await weir.http('/json', { method: 'POST', body });
}

it('use the token of a file when the variable is empty, as the service does', async () => {
  using secrets = new SecretMount({ token: `${TOKEN}\n` });
  const args = ['counter', 'get', ...ANN, '-address', `127.0.0.1:${weir.ports.debug}`];
  const env = { OPERATOR_TOKEN: '', OPERATOR_TOKEN_FILE: secrets.path('token') };
  expect(await run('weir-admin', args, env)).toMatchObject({ code: 0, stderr: '' });
});

it('weir-admin rules prints the tree of rules with their places and totals', async () => {
  await hit('totals');
  const { code, stdout } = await admin('rules', '-domain', 'shop');
  const [origin, ...lines] = stdout.trimEnd().split('\n');
  expect([code, origin]).toEqual([0, expect.stringMatching(/^2 rules from files in .*, version /)]);
  expect(lines).toEqual([
    'shop',
    expect.stringMatching(/^ {2}user, 2 per year, name per-user, \d+ hits, 0 over, \d near \(shop\.yaml:3:10\)$/),
    '    path, unlimited, shadow mode, 0 hits, 0 over, 0 near (shop.yaml:6:14)',
  ]);
  expect(Object.keys(JSON.parse((await admin('rules', '-json')).stdout) as object)).toEqual([
    'loaded',
    'rejected',
    'domains',
  ]);
});

it('weir-admin counter gets, sets and clears a counter, and explain shows it', async () => {
  await hit('ann');
  expect((await admin('counter', 'get', ...ANN)).stdout).toMatch(
    /^1\n {2}limit 2 per year\n {2}window ends .*\n {2}key shop_user_ann_\d+\n$/,
  );
  expect((await admin('counter', 'set', ...ANN, '-count', '2')).stdout).toMatch(/^1 -> 2\n/);
  const explained = await admin('explain', ...ANN);
  expect(explained.code).toBe(0);
  expect(explained.stdout.split('\n').slice(0, 5)).toEqual([
    'OVER_LIMIT: descriptor 1 is over its limit',
    'descriptor 1: user=ann',
    '  level 1, user=ann: any value chosen',
    '  rule shop.user (shop.yaml:3:10)',
    '  OVER_LIMIT: the count would be 3 after 1 hit, over the limit of 2',
  ]);
  expect((await admin('counter', 'clear', ...ANN)).stdout).toMatch(/^2 -> 0\n/);
  expect(JSON.parse((await admin('counter', 'get', ...ANN, '-json')).stdout)).toMatchObject({ count: 0 });
});

it('weir-admin top prints the callers that are limited most', async () => {
  await admin('counter', 'set', '-domain', 'shop', '-descriptors', 'user=joe', '-count', '9');
  await hit('joe');
  expect((await admin('top', '-domain', 'shop')).stdout).toBe('         1  user=joe  shop.user\n');
  expect((await admin('top', '-domain', 'none')).stdout).toBe('no caller is limited\n');
});

it('weir-admin health prints the health', async () => {
  expect(await admin('health')).toEqual({ code: 0, stdout: 'healthy\n', stderr: '' });
});

it('weir-client -explain shows what would be answered', async () => {
  const address = ['-debug_address', `127.0.0.1:${weir.ports.debug}`];
  const request = ['-explain', '-domain', 'shop', '-descriptors', 'user=client', '-hits_addend', '3', ...address];
  const { code, stdout } = await run('weir-client', [...request, '-exit_code'], { OPERATOR_TOKEN: TOKEN });
  expect([code, stdout.split('\n')[0]]).toEqual([2, 'OVER_LIMIT: descriptor 1 is over its limit']);
  const json = await run('weir-client', [...request, '-json'], { OPERATOR_TOKEN: TOKEN });
  expect(JSON.parse(json.stdout)).toMatchObject({ domain: 'shop', descriptors: [{ counter: { count: 0, hits: 3 } }] });
  const without = await run('weir-client', request);
  expect([without.code, without.stderr]).toEqual([
    1,
    'weir-client: this request needs the operator token: Authorization: Bearer <token>\n',
  ]);
});

it.each([
  [['-address', '127.0.0.1:1', 'health'], /^weir-admin: cannot call the API at 127\.0\.0\.1:1: /],
  [['helth'], /^weir-admin: unexpected argument "helth"\nThe commands are rules, explain, counter get, /],
  [[], /^weir-admin: a command is required\nThe commands are rules, /],
  [['explain'], /^weir-admin: flag -domain is required\n/],
  [['counter', 'set', ...ANN], /^weir-admin: flag -count requires a whole number\n/],
  [['counter', 'get', ...ANN, '-descriptors', 'a=b'], /^weir-admin: a counter is that of one descriptor/],
  [
    ['health', '-token_file', '/does/not/exist'],
    /^weir-admin: cannot use the file of the operator token: it cannot be read \(ENOENT\)/,
  ],
])('weir-admin %j prints what is wrong', async (args, message) => {
  const { code, stdout, stderr } = await run('weir-admin', args);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(message);
});
