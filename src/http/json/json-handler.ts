import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { DecisionError } from '../../limiter/decision-error';
import type { RateLimitRequest } from '../../limiter/request';
import { Code } from '../../limiter/verdict';
import type { Decide } from '../../streams/ports/decide';
import type { Log } from '../../streams/ports/log';
import type { CallTrace, Tracer } from '../../streams/ports/tracer';
import { errorBody, responseTo } from '../server/error-boundary';
import { MalformedBody } from '../server/errors';
import type { OnHttpRejected } from '../server/rejections';
import { type EarlyResponse, respondEarly } from '../server/respond-early';
import { type RequestHandler, respondJson } from '../server/respond-json';
import { beginTrace, endTrace, headersOf } from '../traced';
import { BodyMemory } from './body-memory';
import { type BodyLimits, type BodyProblem, receiveBody } from './read-body';
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

export interface JsonHandlerOptions {
  readonly decide: Decide;
  /** Called for each body that is not a RateLimitRequest, or too large a one, and so is not decided. */
  readonly onMalformed: OnMalformed;
  readonly onRejected: OnHttpRejected;
  readonly log: Log;
  /** Chooses the requests to trace. */
  readonly tracer?: Tracer | undefined;
  /** The limits that differ from the defaults. */
  readonly limits?: Partial<JsonLimits> | undefined;
}

/** One exchange of `POST /json`. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly trace: CallTrace | undefined;
}

/**
 * `POST /json`: a RateLimitRequest in proto3 JSON in, a RateLimitResponse out, with status 429 when its overall code is
 * OVER_LIMIT. The Content-Type of the request is ignored. A request is cancelled when its caller disconnects.
 *
 * Works on the request and response of Node: what Koa and Promises cost per request is more than the decision.
 */
export function jsonHandler(options: JsonHandlerOptions): RequestHandler {
  const { tracer, limits: given } = options;
  const limits = { ...DEFAULT_LIMITS, ...given };
  const bodies = { limits, memory: new BodyMemory(limits.maxUnfinishedBytes) };
  return (request, response) => {
    const exchange = { request, response, trace: tracer && beginTrace(request, '/json', tracer) };
    receiveBody(exchange, bodies, {
      complete: (body) => answer(body, exchange, options),
      rejected: (problem) => reject(problem, exchange, options),
      // There is no response, and so no status.
      disconnected: () => exchange.trace?.ended({}, false),
    });
  };
}

function reject(
  problem: BodyProblem,
  { request, response, trace }: Exchange,
  { onRejected }: JsonHandlerOptions,
): void {
  const early = RESPONSES[problem];
  if (problem !== 'too_large') onRejected(KINDS[problem], request.socket, early.message);
  respondEarly(request, response, early);
  endTrace(trace, response);
}

/** Every error becomes a response, an unexpected one too. */
function answer(body: Buffer, exchange: Exchange, options: JsonHandlerOptions): void {
  try {
    decide(requestOf(body, exchange, options), exchange, options);
  } catch (error) {
    fail(error, exchange, options);
  }
}

function decide(request: RateLimitRequest, exchange: Exchange, options: JsonHandlerOptions): void {
  const { response, trace } = exchange;
  let isDecided = false;
  const pending = options.decide(request, {
    verdict: (verdict) => {
      isDecided = true;
      try {
        const status = verdict.overallCode === Code.OVER_LIMIT ? 429 : 200;
        respondJson(response, { status, json: writeVerdict(verdict) });
        endTrace(trace, response);
      } catch (error) {
        fail(error, exchange, options);
      }
    },
    error: (error) => {
      isDecided = true;
      fail(error, exchange, options);
    },
    trace,
    caller: { peer: exchange.request.socket, metadata: headersOf(exchange.request) },
  });
  if (isDecided) return;
  response.on('close', () => {
    if (isDecided) return;
    pending.cancel('cancelled');
    // There is no response, and so no status.
    trace?.ended({}, false);
  });
}

function fail(error: unknown, { response, trace }: Exchange, { log }: JsonHandlerOptions): void {
  const { status, code, message, headers } = responseTo(error, log);
  respondJson(response, { status, json: errorBody(code, message), headers });
  endTrace(trace, response);
}

function requestOf(body: Buffer, { request }: Exchange, { onMalformed }: JsonHandlerOptions): RateLimitRequest {
  try {
    if (!isUtf8(body)) throw new MalformedBody('$: the body is not valid UTF-8');
    return readRequest(body.toString());
  } catch (error) {
    if (error instanceof MalformedBody || error instanceof DecisionError) onMalformed(error.message, request.socket);
    throw error;
  }
}
