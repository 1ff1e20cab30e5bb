// The whole service, counting in Redis, as its settings come.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const RULES = `domain: bench
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 4000000000 }
`;

export async function start({ dist, redisPort }) {
  const root = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  mkdirSync(join(root, 'config'));
  writeFileSync(join(root, 'config', 'bench.yaml'), RULES);
  const { run } = (await import(`${dist}/main.js`)).default;
  const environment = {
    BACKEND_TYPE: 'kvstore',
    KVSTORE_URL: `127.0.0.1:${redisPort}`,
    RUNTIME_ROOT: root,
    RUNTIME_WATCH_ROOT: 'false',
    HOST: '127.0.0.1',
    PORT: '0',
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: '0',
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: '0',
    DISABLE_STATS: 'true',
    ...(process.env.BENCH_POOL_SIZE && { KVSTORE_POOL_SIZE: process.env.BENCH_POOL_SIZE }),
  };
  const port = await new Promise((resolve, reject) => {
    void run(environment, ({ grpc }) => resolve(grpc)).then((code) => reject(new Error(`weir ended with ${code}`)));
  });
  return { port };
}
