// The whole service: rules loaded, counters in its own memory, no statistics sent.
import { startService } from '../../service/whole.mjs';

export const start = ({ dist }) => startService(dist, { BACKEND_TYPE: 'memory' });
