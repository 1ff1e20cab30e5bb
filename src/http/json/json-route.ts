import { isUtf8 } from 'node:buffer';
import type { Socket } from 'node:net';
import type { Context, Middleware } from 'koa';
import { DecisionError } from '../../limiter/decision-error';
import type { RateLimitRequest } from '../../limiter/request';
import { Code, type Verdict } from '../../limiter/verdict';
import type { Decide } from '../../streams/ports/decide';
import { MalformedBody } from '../server/errors';
import type { OnHttpRejected } from '../server/rejections';
import { type EarlyResponse, respondEarly } from '../server/respond-early';
import { traceOf } from '../traced';
import { BodyMemory } from './body-memory';
import { type BodyLimits, type BodyProblem, BodyRejected, readBody } from './read-body';
import { readRequest } from './read-request';
import { writeVerdict } from './write-verdict';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Small pieces have the limits of small DATA frames on the gRPC listener. */
const DEFAULT_LIMITS: JsonLimits = {
  maxBytes: MIB,
  smallPieceBytes: 256,
  maxShortfallBytes: 256 * KIB,
  maxUnfinishedBytes: 64 * MIB,
};

const RESPONSES: Readonly<Record<BodyProblem, EarlyResponse>> = {
  too_large: { status: 413, code: 'body_too_large', message: 'the request body is larger than 1 MiB' },
  // The rest of such a body is not worth receiving.
  small_pieces: {
    status: 400,
    code: 'body_in_small_pieces',
    message: 'the request body arrives in too many small pieces',
    lingerMs: 0,
  },
  out_of_memory: {
    status: 503,
    code: 'out_of_memory',
    message: 'the unfinished bodies of all requests take too much memory',
    headers: { 'Retry-After': '1' },
  },
};

const KINDS = { small_pieces: 'data_dribble', out_of_memory: 'request_memory' } as const;

export interface JsonLimits extends BodyLimits {
  /** Bytes of unfinished bodies of all connections. */
  readonly maxUnfinishedBytes: number;
}

/** Called with what is wrong with a body, and with the socket of its caller. */
export type OnMalformed = (reason: string, caller: Socket) => void;

export interface JsonRouteOptions {
  readonly decide: Decide;
  /** Called for each body that is not a RateLimitRequest, or too large a one, and so is not decided. */
  readonly onMalformed: OnMalformed;
  readonly onRejected: OnHttpRejected;
  /** The limits that differ from the defaults. */
  readonly limits?: Partial<JsonLimits> | undefined;
}

/**
 * `POST /json`: a RateLimitRequest in proto3 JSON in, a RateLimitResponse out, with status 429 when its overall code is
 * OVER_LIMIT. The Content-Type of the request is ignored. A request is cancelled when its caller disconnects.
 */
export function jsonRoute({ decide, onMalformed, onRejected, limits: given }: JsonRouteOptions): Middleware {
  const limits = { ...DEFAULT_LIMITS, ...given };
  const memory = new BodyMemory(limits.maxUnfinishedBytes);
  return async (ctx) => {
    let body: Buffer;
    try {
      body = await readBody(ctx.req, ctx.res, { limits, memory });
    } catch (error) {
      if (!(error instanceof BodyRejected)) throw error;
      const { problem } = error;
      const response = RESPONSES[problem];
      if (problem !== 'too_large') onRejected(KINDS[problem], ctx.req.socket, response.message);
      ctx.respond = false;
      respondEarly(ctx.req, ctx.res, response);
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
    if (error instanceof MalformedBody || error instanceof DecisionError) onMalformed(error.message, ctx.req.socket);
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
      caller: { peer: ctx.req.socket, metadata: (name) => ctx.get(name) || undefined },
    });
    ctx.res.once('close', () => {
      if (!isDecided) pending.cancel('cancelled');
    });
  });
}
