import { Session } from 'node:inspector/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { Context } from 'koa';
import { CallerDisconnected, type ErrorResponse, HttpError } from '../../server/errors';
import { Slot } from './slot';

const MIN_SECONDS = 0.1;
const MAX_SECONDS = 300;

const BAD_SECONDS: ErrorResponse = {
  status: 400,
  code: 'invalid_request',
  message: `seconds must be a number from ${MIN_SECONDS} to ${MAX_SECONDS}`,
};

/** The commands of V8's inspector that start a recording, and that end it and return what was recorded. */
export interface RecordingSteps<T> {
  readonly start: (session: Session) => Promise<unknown>;
  readonly stop: (session: Session) => Promise<T>;
}

/** Records with V8's inspector for the time that a caller requests, one recording at a time. */
export class Recorder {
  readonly #slot: Slot;

  /** @param what what is recorded, for messages */
  constructor(what: string) {
    this.#slot = new Slot(`another ${what} is being recorded; only one can be recorded at a time`);
  }

  /**
   * @param seconds how long to record
   * @throws {HttpError} while another recording is in progress
   * @throws {CallerDisconnected} when the caller disconnects, which ends the recording
   */
  async record<T>(ctx: Context, seconds: number, steps: RecordingSteps<T>): Promise<T> {
    this.#slot.take(seconds * 1_000);
    try {
      return await record(seconds, steps, disconnectSignal(ctx));
    } finally {
      this.#slot.release();
    }
  }
}

/**
 * The query parameter `seconds`.
 *
 * @throws {HttpError} when it is out of range
 */
export function secondsOf(ctx: Context, byDefault: number): number {
  const { seconds: text } = ctx.query;
  const seconds = text === undefined ? byDefault : /^\d+(\.\d+)?$/.test(String(text)) ? Number(text) : Number.NaN;
  if (!(seconds >= MIN_SECONDS && seconds <= MAX_SECONDS)) throw new HttpError(BAD_SECONDS);
  return seconds;
}

/** Aborts when the caller disconnects. */
function disconnectSignal(ctx: Context): AbortSignal {
  const controller = new AbortController();
  ctx.res.once('close', () => controller.abort());
  return controller.signal;
}

async function record<T>(seconds: number, { start, stop }: RecordingSteps<T>, signal: AbortSignal): Promise<T> {
  const session = new Session();
  session.connect();
  try {
    await start(session);
    await pause(seconds * 1000, undefined, { signal });
    return await stop(session);
  } catch (cause) {
    throw signal.aborted ? new CallerDisconnected('the caller has disconnected', { cause }) : cause;
  } finally {
    // This also ends a recording that was not stopped, and releases what the inspector holds for the session.
    session.disconnect();
  }
}
