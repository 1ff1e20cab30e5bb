// The whole service, counting in Redis, with default settings.
import { startService } from '../../service/start-service.mjs';

export async function start({ dist, redisPort }) {
  const { BENCH_POOL_SIZE } = process.env;
  const port = await startService(dist, {
    BACKEND_TYPE: 'kvstore',
    KVSTORE_URL: `127.0.0.1:${redisPort}`,
    ...(BENCH_POOL_SIZE && { KVSTORE_POOL_SIZE: BENCH_POOL_SIZE }),
  });
  return { port };
}
