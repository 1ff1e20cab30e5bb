import { isUtf8 } from 'node:buffer';
import type { ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import type { RateLimitRequest } from '../../limiter/request';
import { Code, type Verdict } from '../../limiter/verdict';
import type { Decide } from '../../streams/ports/decide';
import type { CallTrace } from '../../streams/ports/tracer';
import { answerEarly } from './answer-early';
import { errorBody } from '../server/error-boundary';
import { MalformedBody } from '../server/errors';
import { readRequest } from './read-request';
import { writeVerdict } from './write-verdict';
import { BodyTooLarge, readBody } from './read-body';
import { traceOf } from '../traced';

const MAX_BODY_BYTES = 1024 * 1024;
const TOO_LARGE = errorBody('body_too_large', 'a request body may have up to 1 MiB');

/**
 * `POST /json`: a RateLimitRequest in proto3 JSON in, a RateLimitResponse out, with status 429 when it says OVER_LIMIT
 * (document 1, section 4). The request's Content-Type is not looked at. A caller that goes away takes its question back.
 *
 * @param onMalformed told of each body that is no request, which the decisions never see
 */
export function jsonRoute(decide: Decide, onMalformed: () => void): Middleware {
  return async (ctx) => {
    let body: Buffer;
    try {
      body = await readBody(ctx.req, ctx.res, MAX_BODY_BYTES);
    } catch (error) {
      if (!(error instanceof BodyTooLarge)) throw error;
      ctx.respond = false;
      answerEarly(ctx.req, ctx.res, 413, TOO_LARGE);
      return;
    }
    const verdict = await ask(decide, requestOf(body, onMalformed), ctx.res, traceOf(ctx));
    ctx.status = verdict.overallCode === Code.OVER_LIMIT ? 429 : 200;
    ctx.set('Content-Type', 'application/json');
    ctx.body = writeVerdict(verdict);
  };
}

function requestOf(body: Buffer, onMalformed: () => void): RateLimitRequest {
  try {
    if (!isUtf8(body)) throw new MalformedBody('$: the body is not UTF-8');
    return readRequest(body.toString());
  } catch (error) {
    if (error instanceof MalformedBody) onMalformed();
    throw error;
  }
}

/** Never settles when the caller goes away first: then nobody waits for it either. */
function ask(
  decide: Decide,
  request: RateLimitRequest,
  response: ServerResponse,
  trace: CallTrace | undefined,
): Promise<Verdict> {
  return new Promise((resolve, reject) => {
    let answered = false;
    const question = decide(request, {
      verdict: (verdict) => {
        answered = true;
        resolve(verdict);
      },
      error: (error) => {
        answered = true;
        reject(error);
      },
      trace,
    });
    response.once('close', () => {
      if (!answered) question.cancel('cancelled');
    });
  });
}
