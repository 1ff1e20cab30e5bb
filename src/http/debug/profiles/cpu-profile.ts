import type { Profiler } from 'node:inspector';
import type { DebugEndpoint } from '../endpoint';
import { cpuToPprof } from './cpu-to-pprof';
import { Recorder, secondsOf } from './recorder';
import { formatOf, nameFile, respondWithProfile } from './response';

const DEFAULT_SECONDS = 30;
const PATH = '/debug/pprof/profile';

/** `/debug/pprof/profile?seconds=n`: a CPU profile of the next n seconds. */
export function cpuProfile(): DebugEndpoint {
  const recorder = new Recorder('CPU profile');
  return {
    path: PATH,
    description: `a CPU profile of the next ?seconds=${DEFAULT_SECONDS}, for go tool pprof`,
    variants: [
      { path: `${PATH}?format=v8`, description: 'the same for the performance tab of the developer tools of browsers' },
    ],
    get: async (ctx) => {
      const format = formatOf(ctx);
      const profile = await recorder.record(ctx, secondsOf(ctx, DEFAULT_SECONDS), {
        start: async (session) => {
          await session.post('Profiler.enable');
          await session.post('Profiler.start');
        },
        stop: async (session): Promise<Profiler.Profile> => (await session.post('Profiler.stop')).profile,
      });
      if (format === 'pprof') return respondWithProfile(ctx, cpuToPprof(profile));
      nameFile(ctx, 'cpuprofile');
      ctx.set('Content-Type', 'application/json');
      ctx.body = JSON.stringify(profile);
    },
  };
}
