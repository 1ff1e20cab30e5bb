import { isUtf8 } from 'node:buffer';
import type { Context } from 'koa';
import type { BodyMemory } from '../json/body-memory';
import { type BodyLimits, type BodyProblem, BodyRejected, readBody } from '../json/read-body';
import { CallerDisconnected, HttpError, MalformedBody } from '../server/errors';
import { type EarlyResponse, respondEarly } from '../server/respond-early';
import { PROBLEM_TYPE, problem } from './problems';

const KIB = 1024;

/** The limits of bodies, which are those of /json. */
export const BODY_LIMITS: BodyLimits = {
  maxBytes: 1024 * KIB,
  smallPieceBytes: 256,
  maxShortfallBytes: 256 * KIB,
};
/** Bytes of unfinished bodies of all connections. */
export const MAX_UNFINISHED_BYTES = 8 * 1024 * KIB;

const RESPONSES: Readonly<Record<BodyProblem, EarlyResponse>> = {
  too_large: { status: 413, code: 'body_too_large', message: 'the request body is larger than 1 MiB' },
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

/**
 * Reads the text of a JSON body. Rejects with an error that is answered as a problem; a body that is too large is answered here, before
 * it is read.
 */
export async function readJson(ctx: Context, memory: BodyMemory): Promise<string> {
  try {
    const body = await readBody(ctx.req, ctx.res, { limits: BODY_LIMITS, memory });
    if (!isUtf8(body)) throw new MalformedBody('$: the body is not valid UTF-8');
    return body.toString();
  } catch (error) {
    if (!(error instanceof BodyRejected)) throw error;
    const response = RESPONSES[error.problem];
    ctx.respond = false;
    const body = JSON.stringify(problem(response));
    respondEarly(ctx.req, ctx.res, { ...response, body: { type: PROBLEM_TYPE, text: body } });
    throw new CallerDisconnected('the body was rejected', { cause: error });
  }
}

/** A form of a browser cannot send this type to another site without asking it first. */
export function requireJson(ctx: Context): void {
  const [type = ''] = ctx.get('Content-Type').split(';');
  if (/^application\/(?:json|[\w.-]+\+json)$/i.test(type.trim())) return;
  const message = 'the request must have the header Content-Type: application/json';
  throw new HttpError({
    status: 415,
    code: 'unsupported_media_type',
    message,
    headers: { Accept: 'application/json' },
  });
}
