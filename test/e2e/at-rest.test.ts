import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { residentMemory } from '../support/processes/process-memory';
import { WeirProcess } from '../support/processes/weir-process';

const LIST_LOADED = join(__dirname, '../integration/traces/list-loaded.cjs');
const RULES = { RUNTIME_ROOT: join(__dirname, '../../examples'), RUNTIME_WATCH_ROOT: 'false', DISABLE_STATS: 'true' };

/** The resident memory in MiB of a Node process with an HTTP server, and nothing of weir. */
async function memoryOfBareNode(): Promise<number> {
  const program = "require('node:http').createServer().listen(0, () => console.log('listening'))";
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    await once(child.stdout, 'data');
    return residentMemory(child.pid!);
  } finally {
    child.kill();
  }
}

/** The packages that the service has loaded by the time it ends. */
async function loadedPackages(env: Readonly<Record<string, string>>, ready: RegExp): Promise<readonly string[]> {
  using folder = new TemporaryFolder();
  const list = folder.at('packages.txt');
  await using weir = await WeirProcess.start({
    env: { ...RULES, ...env, NODE_OPTIONS: `--require ${LIST_LOADED}`, LIST_LOADED_TO: list },
    awaitServing: false,
  });
  await weir.line(ready);
  weir.signal('SIGTERM');
  await weir.exited;
  return readFileSync(list, 'utf8').split('\n');
}

describe('the service at rest', () => {
  it('takes at most 60 MiB more memory than bare Node', async () => {
    const bare = await memoryOfBareNode();
    await using weir = await WeirProcess.start({ env: RULES });

    await weir.until('it has released what the start needed', () => residentMemory(weir.pid!) - bare < 60);
    expect(residentMemory(weir.pid!)).toBeGreaterThan(bare);
  });

  it('has loaded one file and, of the packages that few use, only those that it uses', async () => {
    const statistics = {
      DISABLE_STATS: 'false',
      PUSHSTATS_HOST: '127.0.0.1',
      PUSHSTATS_PORT: '1',
      PUSHSTATS_PROTOCOL: 'udp',
    };
    const [files, pushed, exported, xds] = await Promise.all([
      loadedPackages({}, /serving/),
      loadedPackages({ ...statistics, USE_PUSHSTATS: 'true' }, /serving/),
      loadedPackages({ ...statistics, USE_OTLP_METRICS: 'true' }, /serving/),
      // No server: the service waits for one.
      loadedPackages({ CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: '127.0.0.1:1' }, /127\.0\.0\.1:1/),
    ]);

    expect(files).toEqual(['weir']);
    expect(pushed).toEqual(files);
    expect(exported).toContain('@opentelemetry/sdk-metrics');
    expect(exported).not.toContain('@opentelemetry/sdk-trace-base');
    expect(xds).toContain('@grpc/grpc-js');
  });
});
