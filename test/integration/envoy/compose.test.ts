import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { ENVOY, EnvoyProcess } from '../../support/processes/envoy-process';
import { WeirProcess } from '../../support/processes/weir-process';
import { roomInMinute } from '../../support/waiting/window-room';

const ROOT = join(__dirname, '../../..');
const CONFIG = join(ROOT, 'deploy/compose/envoy.yaml');
const exec = promisify(execFile);

interface Compose {
  readonly services: Readonly<
    Record<'envoy', { readonly healthcheck: { readonly test: readonly [string, string, ...string[]] } }>
  >;
}

/** The address of a listener on a Unix socket, as it is in the configuration. */
function own(folder: string): string {
  return `address: { pipe: { path: ${join(folder, 'upstream.sock')} } }\n      filter_chains`;
}

describe('the configuration of Envoy in deploy/compose', () => {
  it('is valid for Envoy', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'weir-envoy-'));
    try {
      const options = ['--mode', 'validate', '--disable-hot-restart', '--base-id-path', join(folder, 'id')];
      const { stdout, stderr } = await exec(ENVOY, ['-c', CONFIG, ...options]);
      expect(stdout + stderr).toContain('OK');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('limits with the rules that compose.yaml mounts, and its health check sees a live Envoy only', async () => {
    const rules = { RUNTIME_ROOT: join(ROOT, 'examples/envoy'), RUNTIME_WATCH_ROOT: 'false', DISABLE_STATS: 'true' };
    await using weir = await WeirProcess.start({ env: rules });
    const folder = await mkdtemp(join(tmpdir(), 'weir-envoy-'));
    const changes = [
      // The upstream of the test takes the place of this listener, which gets an address of its own.
      ['address: { socket_address: { address: 127.0.0.1, port_value: 9000 } }\n      filter_chains', own(folder)],
      ['address: weir,', 'address: 127.0.0.1,'],
      ['address: 0.0.0.0,', 'address: 127.0.0.1,'],
    ] as const;
    const { healthcheck } = (parse(await readFile(join(ROOT, 'compose.yaml'), 'utf8')) as Compose).services.envoy;
    const [, shell, ...args] = healthcheck.test;
    async function isLive(port: number): Promise<boolean> {
      return exec(
        shell,
        args.map((text) => text.replace('/9901', `/${port}`)),
      ).then(
        () => true,
        () => false,
      );
    }
    let adminPort: number;
    {
      await using envoy = await EnvoyProcess.start({ weirPort: weir.ports.grpc, config: CONFIG, changes });
      adminPort = envoy.admin.port;
      await roomInMinute();
      const statuses = [];
      for (let call = 0; call < 4; call += 1) {
        statuses.push((await envoy.get('/orders', { 'x-user': 'anna' })).status);
      }
      expect(statuses).toEqual([200, 200, 200, 429]);
      expect(await isLive(adminPort)).toBe(true);
    }
    expect(await isLive(adminPort)).toBe(false);
    await rm(folder, { recursive: true });
  });
});
