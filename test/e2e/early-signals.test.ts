import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { selfSigned } from '../support/data/certificates';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const MAIN = join(__dirname, '../../dist/main.js');
const SIGNAL_AT_STEP = join(__dirname, '../support/processes/signal-at-step.cjs');
const DAY = 86_400_000;
const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 5}}]\n',
};

let rules: RuleFolder;
let own: string;
let tls: Readonly<Record<string, string>>;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
  own = await mkdtemp(join(tmpdir(), 'weir-signals-'));
  const { cert, key } = selfSigned(new Date(Date.now() - DAY), new Date(Date.now() + DAY));
  tls = {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: join(own, 'cert.pem'),
    GRPC_SERVER_TLS_KEY: join(own, 'key.pem'),
  };
  await Promise.all([writeFile(join(own, 'cert.pem'), cert), writeFile(join(own, 'key.pem'), key)]);
});
afterAll(async () => {
  await rules[Symbol.asyncDispose]();
  await rm(own, { recursive: true });
});

/** The environment of a process that sends itself signals at a step. */
function signalled(step: string): Readonly<Record<string, string>> {
  return { SIGNAL_AT_STEP: step, NODE_OPTIONS: `--require=${SIGNAL_AT_STEP}` };
}

describe('the service, on a signal that it receives while its program is loaded,', () => {
  it.each([
    ['SIGTERM', '1'],
    ['SIGTERM', '2'],
    ['SIGINT', '1'],
  ])('drains as soon as it is put together: %s with WORKERS=%s', async (signal, WORKERS) => {
    const env = { ...rules.env, ...signalled(`load ${signal}`), WORKERS };
    await using weir = await WeirProcess.start({ env, awaitServing: false });
    expect(await weir.exited).toBe(0);
    expect(weir.output).toMatch(new RegExp(`draining: .* signal=${signal}`));
    expect(weir.output).not.toContain('msg="serving"');
    expect(weir.output).not.toMatch(/level=(error|fatal)/);
  });

  // While it reads its certificates, it receives the signal, before its streams have subscribers.
  it.each(['1', '2'])(
    'drains also when it reads files before it subscribes to signals: WORKERS=%s',
    async (WORKERS) => {
      const env = { ...rules.env, ...signalled('load SIGTERM'), ...tls, WORKERS };
      await using weir = await WeirProcess.start({ env, awaitServing: false });
      expect(await weir.exited).toBe(0);
      expect(weir.output).toMatch(/draining: .* signal=SIGTERM/);
      expect(weir.output).not.toContain('msg="serving"');
    },
  );

  it('exits with 1 when there is a second one', async () => {
    const env = { ...rules.env, ...signalled('load SIGTERM SIGINT') };
    await using weir = await WeirProcess.start({ env, awaitServing: false });
    expect(await weir.exited).toBe(1);
    expect(weir.output).not.toContain('msg="serving"');
  });
});

test.each(['1', '2'])(
  'the service exits with the code of its drain when a signal arrives with the last lines, with WORKERS=%s',
  async (WORKERS) => {
    const env = { ...rules.env, ...signalled('flush SIGTERM'), WORKERS };
    await using weir = await WeirProcess.start({ env });
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(weir.output).toContain('drained; the process exits');
  },
);

test('the answer to a command line is ended by a signal, as every program', () => {
  const env = { PATH: process.env['PATH'], ...signalled('load SIGTERM') };
  expect(spawnSync(process.execPath, [MAIN, '--help'], { env }).signal).toBe('SIGTERM');
});
