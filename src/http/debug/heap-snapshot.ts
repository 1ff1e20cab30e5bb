import { getHeapSnapshot } from 'node:v8';
import type { DebugEndpoint } from './endpoint';

/** `/debug/pprof/heap`: a heap snapshot, in the format of browser dev tools. */
export function heapSnapshot(): DebugEndpoint {
  return {
    path: '/debug/pprof/heap',
    about:
      'a heap snapshot, to open in the memory tab of browser dev tools; the service stands still while it is taken',
    get: (ctx) => {
      ctx.attachment(`weir-${new Date().toISOString().replaceAll(':', '-')}.heapsnapshot`);
      ctx.set('Content-Type', 'application/json');
      ctx.body = getHeapSnapshot();
    },
  };
}
