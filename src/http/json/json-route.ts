import { isUtf8 } from 'node:buffer';
import type { Socket } from 'node:net';
import type { Context, Middleware } from 'koa';
import type { RateLimitRequest } from '../../limiter/request';
import { Code, type Verdict } from '../../limiter/verdict';
import type { Decide } from '../../streams/ports/decide';
import { errorBody } from '../server/error-boundary';
import { MalformedBody } from '../server/errors';
import { traceOf } from '../traced';
import { BodyTooLarge, readBody } from './read-body';
import { readRequest } from './read-request';
import { respondEarly } from './respond-early';
import { writeVerdict } from './write-verdict';

const MAX_BODY_BYTES = 1024 * 1024;
const TOO_LARGE = errorBody('body_too_large', 'the request body is larger than 1 MiB');

/** Called with what is wrong with a body, and with the socket of its caller. */
export type OnMalformed = (reason: string, caller: Socket) => void;

/**
 * `POST /json`: a RateLimitRequest in proto3 JSON in, a RateLimitResponse out, with status 429 when its overall code is
 * OVER_LIMIT. The Content-Type of the request is ignored. A request is cancelled when its caller disconnects.
 *
 * @param onMalformed called for each body that is not a RateLimitRequest and so is not decided
 */
export function jsonRoute(decide: Decide, onMalformed: OnMalformed): Middleware {
  return async (ctx) => {
    let body: Buffer;
    try {
      body = await readBody(ctx.req, ctx.res, MAX_BODY_BYTES);
    } catch (error) {
      if (!(error instanceof BodyTooLarge)) throw error;
      ctx.respond = false;
      respondEarly(ctx.req, ctx.res, { status: 413, json: TOO_LARGE });
      return;
    }
    const verdict = await verdictOf(decide, requestOf(body, ctx, onMalformed), ctx);
    ctx.status = verdict.overallCode === Code.OVER_LIMIT ? 429 : 200;
    ctx.set('Content-Type', 'application/json');
    ctx.body = writeVerdict(verdict);
  };
}

function requestOf(body: Buffer, ctx: Context, onMalformed: OnMalformed): RateLimitRequest {
  try {
    if (!isUtf8(body)) throw new MalformedBody('$: the body is not valid UTF-8');
    return readRequest(body.toString());
  } catch (error) {
    if (error instanceof MalformedBody) onMalformed(error.message, ctx.req.socket);
    throw error;
  }
}

/** Never settles when the caller disconnects first: then there is no response to send. */
function verdictOf(decide: Decide, request: RateLimitRequest, ctx: Context): Promise<Verdict> {
  return new Promise((resolve, reject) => {
    let isDecided = false;
    const pending = decide(request, {
      verdict: (verdict) => {
        isDecided = true;
        resolve(verdict);
      },
      error: (error) => {
        isDecided = true;
        reject(error);
      },
      trace: traceOf(ctx),
    });
    ctx.res.once('close', () => {
      if (!isDecided) pending.cancel('cancelled');
    });
  });
}
