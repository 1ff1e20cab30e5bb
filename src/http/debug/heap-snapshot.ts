import { getHeapSnapshot } from 'node:v8';
import type { DebugEndpoint } from './endpoint';

/** `/debug/pprof/heap`: a heap snapshot, in the format of browser dev tools. */
export function heapSnapshot(): DebugEndpoint {
  return {
    path: '/debug/pprof/heap',
    description:
      'a heap snapshot for the memory tab of browser dev tools; the service does not respond while it is written',
    get: (ctx) => {
      ctx.attachment(`weir-${new Date().toISOString().replaceAll(':', '-')}.heapsnapshot`);
      ctx.set('Content-Type', 'application/json');
      ctx.body = getHeapSnapshot();
    },
  };
}
