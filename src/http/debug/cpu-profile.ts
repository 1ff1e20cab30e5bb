import { Session } from 'node:inspector/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { Context } from 'koa';
import { CallerDisconnected, type ErrorResponse, HttpError } from '../server/errors';
import type { DebugEndpoint } from './endpoint';

const DEFAULT_SECONDS = 30;
const MIN_SECONDS = 0.1;
const MAX_SECONDS = 300;

const BUSY: ErrorResponse = {
  status: 409,
  code: 'busy',
  message: 'another CPU profile is being recorded; only one can be recorded at a time',
};
const BAD_SECONDS: ErrorResponse = {
  status: 400,
  code: 'invalid_request',
  message: `seconds must be a number from ${MIN_SECONDS} to ${MAX_SECONDS}`,
};

/** `/debug/pprof/profile?seconds=n`: a CPU profile of the next n seconds, in the format of browser dev tools. */
export function cpuProfile(): DebugEndpoint {
  let isRecording = false;
  return {
    path: '/debug/pprof/profile',
    description: `a CPU profile of the next ?seconds=${DEFAULT_SECONDS} for the performance tab of browser dev tools`,
    get: async (ctx) => {
      const seconds = readSeconds(ctx.query['seconds']);
      if (isRecording) throw new HttpError(BUSY);
      isRecording = true;
      try {
        const profile = await record(seconds, disconnectSignal(ctx));
        ctx.set('Content-Type', 'application/json');
        ctx.attachment(`weir-${new Date().toISOString().replaceAll(':', '-')}.cpuprofile`);
        ctx.body = JSON.stringify(profile);
      } finally {
        isRecording = false;
      }
    },
  };
}

function readSeconds(text: string | string[] | undefined): number {
  const seconds = text === undefined ? DEFAULT_SECONDS : /^\d+(\.\d+)?$/.test(String(text)) ? Number(text) : Number.NaN;
  if (!(seconds >= MIN_SECONDS && seconds <= MAX_SECONDS)) throw new HttpError(BAD_SECONDS);
  return seconds;
}

/** Aborts when the caller disconnects. */
function disconnectSignal(ctx: Context): AbortSignal {
  const controller = new AbortController();
  ctx.res.once('close', () => controller.abort());
  return controller.signal;
}

async function record(seconds: number, signal: AbortSignal): Promise<unknown> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await pause(seconds * 1000, undefined, { signal });
    return (await session.post('Profiler.stop')).profile;
  } catch (cause) {
    throw signal.aborted ? new CallerDisconnected('the caller has disconnected', { cause }) : cause;
  } finally {
    // This also ends a profile that was not stopped.
    session.disconnect();
  }
}
