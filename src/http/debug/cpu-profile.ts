import { Session } from 'node:inspector/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { Context } from 'koa';
import { CallerGone, HttpError } from '../server/errors';
import type { DebugEndpoint } from './endpoint';

const DEFAULT_SECONDS = 30;
const MIN_SECONDS = 0.1;
const MAX_SECONDS = 300;

/** `/debug/pprof/profile?seconds=n`: a CPU profile of the next n seconds, in the format of browser dev tools. */
export function cpuProfile(): DebugEndpoint {
  let running = false;
  return {
    path: '/debug/pprof/profile',
    about: `a CPU profile of the next ?seconds=${DEFAULT_SECONDS}, to open in the performance tab of browser dev tools`,
    get: async (ctx) => {
      const seconds = readSeconds(ctx.query['seconds']);
      if (running) throw new HttpError(409, 'busy', 'a CPU profile is being taken already; one at a time');
      running = true;
      try {
        const profile = await record(seconds, callerOf(ctx));
        ctx.set('Content-Type', 'application/json');
        ctx.attachment(`weir-${new Date().toISOString().replaceAll(':', '-')}.cpuprofile`);
        ctx.body = JSON.stringify(profile);
      } finally {
        running = false;
      }
    },
  };
}

function readSeconds(text: string | string[] | undefined): number {
  const seconds = text === undefined ? DEFAULT_SECONDS : /^\d+(\.\d+)?$/.test(String(text)) ? Number(text) : Number.NaN;
  if (!(seconds >= MIN_SECONDS && seconds <= MAX_SECONDS)) {
    throw new HttpError(400, 'invalid_request', `seconds must be a number from ${MIN_SECONDS} to ${MAX_SECONDS}`);
  }
  return seconds;
}

/** Aborted once the caller has gone. */
function callerOf(ctx: Context): AbortSignal {
  const gone = new AbortController();
  ctx.res.once('close', () => gone.abort());
  return gone.signal;
}

async function record(seconds: number, caller: AbortSignal): Promise<unknown> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await pause(seconds * 1000, undefined, { signal: caller });
    return (await session.post('Profiler.stop')).profile;
  } catch (cause) {
    throw caller.aborted ? new CallerGone('the caller has gone', { cause }) : cause;
  } finally {
    // Ends a profile that was not stopped, too.
    session.disconnect();
  }
}
