// The whole service, counting in memcached, with default settings.
import { startService } from '../../service/start-service.mjs';

export async function start({ dist, memcachedPort }) {
  const port = await startService(dist, {
    BACKEND_TYPE: 'memcache',
    PLAINCACHE_HOST_PORT: `127.0.0.1:${memcachedPort}`,
  });
  return { port };
}
