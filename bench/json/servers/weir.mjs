// The whole service, counting in memory, with default settings.
import { startService } from '../../service/start-service.mjs';

export async function start({ dist }) {
  return { port: await startService(dist, { BACKEND_TYPE: 'memory' }, 'http') };
}
