import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { DecisionError } from '../../limiter/decision-error';
import type { RateLimitRequest } from '../../limiter/request';
import { Code, type DescriptorStatus, type HeaderValue, type Verdict } from '../../limiter/verdict';
import type { Decide } from '../../streams/ports/decide';
import type { Log } from '../../streams/ports/log';
import type { CallTrace, Tracer } from '../../streams/ports/tracer';
import { type BodyMemory, receiveBody, textOf } from '../body';
import {
  MalformedBody,
  type Rejection,
  errorBody,
  methodNotAllowed,
  respondEarly,
  respondJson,
  responseTo,
} from '../errors';
import type { OnHttpRejected } from '../limits';
import { readRequest } from './read-request';

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
}

/** One exchange of `/json`. */
interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Undefined for a request that is not traced. */
  readonly trace: CallTrace | undefined;
}

/**
 * `POST /json`: a RateLimitRequest in proto3 JSON in, a RateLimitResponse out, with status 429 when its overall code is
 * OVER_LIMIT. The Content-Type of the request is ignored. A request is cancelled when its caller disconnects. Other methods are
 * rejected.
 *
 * Works on the request and response of Node: what Koa and Promises cost per request is more than the decision.
 */
export function jsonHandler(
  options: JsonHandlerOptions,
  memory: BodyMemory,
): (req: IncomingMessage, res: ServerResponse) => void {
  const { tracer } = options;
  return (req, res) => {
    const exchange = { req, res, trace: tracer && beginTrace(req, tracer) };
    if (req.method !== 'POST') return fail(methodNotAllowed(req.method!, 'POST'), exchange, options);
    return receiveBody(exchange, memory, {
      complete: (body) => answer(body, exchange, options),
      rejected: (rejection) => {
        rejectBody(rejection, exchange, options.onRejected);
        endTrace(exchange);
      },
      // There is no response, and so no status.
      disconnected: () => exchange.trace?.ended({}, false),
    });
  };
}

/** Answers a request whose body is not read further, and reports why. */
export function rejectBody(
  rejection: Rejection,
  exchange: Pick<Exchange, 'req' | 'res'>,
  onRejected: OnHttpRejected,
): void {
  const { kind, message } = rejection;
  if (kind !== undefined) onRejected(kind, exchange.req.socket, message);
  respondEarly(exchange, rejection);
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
  const { req, res, trace } = exchange;
  let isDecided = false;
  const pending = options.decide(request, {
    verdict: (verdict) => {
      isDecided = true;
      try {
        const status = verdict.overallCode === Code.OVER_LIMIT ? 429 : 200;
        respondJson(res, { status }, writeVerdict(verdict));
        endTrace(exchange);
      } catch (error) {
        fail(error, exchange, options);
      }
    },
    error: (error) => {
      isDecided = true;
      fail(error, exchange, options);
    },
    trace,
    caller: { peer: req.socket, metadata: metadataOf(req) },
  });
  if (isDecided) return;
  res.on('close', () => {
    if (isDecided) return;
    pending.cancel('cancelled');
    // There is no response, and so no status.
    trace?.ended({}, false);
  });
}

function fail(error: unknown, exchange: Exchange, { log }: JsonHandlerOptions): void {
  const response = responseTo(error, log);
  respondJson(exchange.res, response, errorBody(response));
  endTrace(exchange);
}

function requestOf(body: Buffer, { req }: Exchange, { onMalformed }: JsonHandlerOptions): RateLimitRequest {
  try {
    return readRequest(textOf(body));
  } catch (error) {
    if (error instanceof MalformedBody || error instanceof DecisionError) onMalformed(error.message, req.socket);
    throw error;
  }
}

/** Begins the span of a request, if the tracer chooses it. */
function beginTrace(req: IncomingMessage, tracer: Tracer): CallTrace | undefined {
  const method = req.method ?? '';
  const attributes = { 'http.request.method': method, 'http.route': '/json' };
  return tracer.begin(`${method} /json`, attributes, { metadata: metadataOf(req) });
}

/** Ends the span of a request with the status of its response. */
function endTrace({ trace, res: { statusCode } }: Exchange): void {
  trace?.ended({ 'http.response.status_code': statusCode }, statusCode >= 500);
}

/** Reads the headers of a request, by their names in lower case. */
function metadataOf({ headers }: IncomingMessage): (name: string) => string | undefined {
  return (name) => headers[name]?.toString() || undefined;
}

/** Writes a verdict as a RateLimitResponse in proto3 JSON: without default values, enums by name, durations as `"30s"`. */
export function writeVerdict({ overallCode, statuses, responseHeaders, dynamicMetadata }: Verdict): string {
  let json = `{"overallCode":${codeName(overallCode)}`;
  if (statuses.length > 0) json += `,"statuses":[${statuses.map(writeStatus).join(',')}]`;
  if (responseHeaders.length > 0) json += `,"responseHeadersToAdd":[${responseHeaders.map(writeHeader).join(',')}]`;
  if (dynamicMetadata !== undefined) json += `,"dynamicMetadata":${JSON.stringify(dynamicMetadata)}`;
  return `${json}}`;
}

function writeStatus({ code, currentLimit, limitRemaining, secondsUntilReset }: DescriptorStatus): string {
  let json = `{"code":${codeName(code)}`;
  if (currentLimit !== undefined) {
    const { requestsPerUnit, unit, name } = currentLimit;
    json += ',"currentLimit":{';
    if (requestsPerUnit !== 0) json += `"requestsPerUnit":${requestsPerUnit},`;
    json += `"unit":"${unit.name}"`;
    if (name !== '') json += `,"name":${JSON.stringify(name)}`;
    json += '}';
  }
  if (limitRemaining !== 0) json += `,"limitRemaining":${limitRemaining}`;
  if (secondsUntilReset !== undefined) json += `,"durationUntilReset":"${secondsUntilReset}s"`;
  return `${json}}`;
}

function writeHeader({ key, value }: HeaderValue): string {
  return JSON.stringify({ ...(key !== '' && { key }), ...(value !== '' && { value }) });
}

function codeName(code: Code): string {
  return code === Code.OVER_LIMIT ? '"OVER_LIMIT"' : '"OK"';
}
