// A redis-server for one run, and its own usage figures.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startStore } from '../service/store-process.mjs';

export async function startRedis() {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-redis-'));
  function removeFolder() {
    rmSync(folder, { recursive: true, force: true });
  }
  const persistence = ['--save', '', '--appendonly', 'no'];
  const store = await startStore(
    'redis-server',
    (port) => ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...persistence],
    removeFolder,
  );
  const { port } = store;
  const control = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 20, maxRetriesPerRequest: null });
  control.on('error', () => undefined);
  await control.ping();
  return {
    port,
    /** CPU time in µs and commands received, since its start. */
    async usage() {
      const info = await control.info('everything');
      function read(name) {
        return Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)[1]);
      }
      function calls(command) {
        return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(info)?.[1] ?? 0);
      }
      return {
        cpu: (read('used_cpu_user') + read('used_cpu_sys')) * 1e6,
        // Redis counts commands called by a script as processed, although no client sent them.
        commands: calls('evalsha') > 0 ? calls('evalsha') + calls('eval') : read('total_commands_processed'),
      };
    },
    async stop() {
      control.disconnect();
      await store.stop();
      removeFolder();
    },
  };
}
