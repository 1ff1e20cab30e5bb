import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { SecretMount } from '../support/data/secret-mount';
import { WeirProcess } from '../support/processes/weir-process';
import { SilentPeer } from '../support/servers/silent-peer';

const ROOT = join(__dirname, '../..');
const PROBE = join(ROOT, 'dist/cli/health-probe.js');

/** Runs the built probe with nothing else in its environment. */
async function probe(env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [PROBE], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}

describe('the health probe', () => {
  it('exits with 0 while the service is healthy, and says why it is not', async () => {
    await using weir = await WeirProcess.start({
      env: { RUNTIME_ROOT: '/nonexistent', RUNTIME_WATCH_ROOT: 'false', DISABLE_STATS: 'true' },
      awaitServing: false,
    });
    const at = { DEBUG_HOST: '0.0.0.0', DEBUG_PORT: String(weir.ports.debug) };
    await weir.until('the debug listener answers', () => weir.debugHealth().catch(() => undefined));
    expect(await probe(at)).toEqual({ code: 1, output: '500 unhealthy: waiting for the first valid rules\n' });

    await using serving = await WeirProcess.start({
      env: { RUNTIME_ROOT: join(ROOT, 'examples'), RUNTIME_WATCH_ROOT: 'false', DISABLE_STATS: 'true' },
    });
    const settings = { DEBUG_HOST: '127.0.0.1', DEBUG_PORT: String(serving.ports.debug) };
    expect(await probe(settings)).toEqual({ code: 0, output: '' });
    using secrets = new SecretMount({ token: 'token-of-the-operators' });
    expect(await probe({ ...settings, OPERATOR_TOKEN_FILE: secrets.path('token') })).toEqual({ code: 0, output: '' });
  });

  it('exits with 1 if there is no service, and if its settings are invalid or name no port', async () => {
    const [absent, invalid, unknown] = await Promise.all([
      probe({ DEBUG_PORT: '1' }),
      probe({ DEBUG_PORT: 'x' }),
      probe({ DEBUG_PORT: '0' }),
    ]);

    expect(absent).toEqual({ code: 1, output: expect.stringContaining('on 127.0.0.1 port 1: connect ECONNREFUSED') });
    expect(invalid).toEqual({ code: 1, output: expect.stringContaining('DEBUG_PORT') });
    expect(unknown).toEqual({ code: 1, output: expect.stringContaining('DEBUG_PORT is 0') });
  });

  it('exits with 1 if the debug listener does not answer in time', async () => {
    await using peer = await SilentPeer.start();
    const { code, output } = await probe({ DEBUG_HOST: '127.0.0.1', DEBUG_PORT: peer.address.split(':')[1]! });
    expect(code).toBe(1);
    expect(output).toContain('timeout');
  });
});
