import type { HeapProfiler } from 'node:inspector';
import type { Context } from 'koa';
import type { DebugEndpoint } from '../endpoint';
import { ALLOCATED, IN_USE, heapToPprof } from './heap-to-pprof';
import { HeapSnapshots } from './heap-snapshot';
import { Recorder, secondsOf } from './recorder';
import { formatOf, respondWithProfile } from './response';

const DEFAULT_SECONDS = 10;
const HEAP = '/debug/pprof/heap';
const ALLOCS = '/debug/pprof/allocs';
/** Bytes between two samples on average; less than the 512 KiB of Go, because a recording is short. */
const SAMPLING_INTERVAL = 32 * 1024;

/**
 * `/debug/pprof/heap` and `/debug/pprof/allocs`: which functions allocate memory, by sampling.
 *
 * @param availableMemory the bytes that the process can still allocate
 */
export function heapProfiles(availableMemory: () => number): readonly DebugEndpoint[] {
  // V8 has one heap sampler.
  const recorder = new Recorder('heap profile');
  const snapshots = new HeapSnapshots(availableMemory);

  function record(ctx: Context, seconds: number, includesCollected: boolean) {
    return recorder.record(ctx, seconds, {
      start: (session) =>
        session.post('HeapProfiler.startSampling', {
          samplingInterval: SAMPLING_INTERVAL,
          includeObjectsCollectedByMajorGC: includesCollected,
          includeObjectsCollectedByMinorGC: includesCollected,
        }),
      stop: async (session): Promise<HeapProfiler.SamplingHeapProfile> =>
        (await session.post('HeapProfiler.stopSampling')).profile,
    });
  }

  const heap: DebugEndpoint = {
    path: HEAP,
    description: `memory that is allocated in the next ?seconds=${DEFAULT_SECONDS} and still in use at their end, for go tool pprof`,
    variants: [
      {
        path: `${HEAP}?format=v8`,
        description:
          'a heap snapshot for the memory tab of the developer tools of browsers; the service does not respond while it is written',
      },
    ],
    get: async (ctx) => {
      if (formatOf(ctx) === 'v8') return snapshots.respond(ctx);
      const seconds = secondsOf(ctx, DEFAULT_SECONDS);
      const profile = await record(ctx, seconds, false);
      return respondWithProfile(ctx, heapToPprof(profile, IN_USE, { interval: SAMPLING_INTERVAL, seconds }));
    },
  };
  const allocs: DebugEndpoint = {
    path: ALLOCS,
    description: `memory that is allocated in the next ?seconds=${DEFAULT_SECONDS}, still in use or not, for go tool pprof`,
    get: async (ctx) => {
      const seconds = secondsOf(ctx, DEFAULT_SECONDS);
      const profile = await record(ctx, seconds, true);
      return respondWithProfile(ctx, heapToPprof(profile, ALLOCATED, { interval: SAMPLING_INTERVAL, seconds }));
    },
  };
  return [heap, allocs];
}
