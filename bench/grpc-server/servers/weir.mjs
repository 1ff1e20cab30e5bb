// The whole service with a rule file, counting in memory, with DISABLE_STATS.
import { startService } from '../../service/start-service.mjs';

export function start({ dist }) {
  return startService(dist, { BACKEND_TYPE: 'memory' });
}
