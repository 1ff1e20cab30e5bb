import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Middleware } from 'koa';
import { DecisionError } from '../../limiter/decision-error';
import type { RateLimitRequest } from '../../limiter/request';
import { Code, type DescriptorStatus, type HeaderValue, type Verdict } from '../../limiter/verdict';
import type { Decide } from '../../streams/ports/decide';
import type { Log } from '../../streams/ports/log';
import type { CallTrace, Tracer } from '../../streams/ports/tracer';
import { type BodyMemory, receiveBody, textOf } from '../body';
import {
  type ErrorResponse,
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

/** A call of `/json`, however it was received. */
export interface JsonCall {
  readonly socket: Socket;
  /** The value of a header, by its name in lower case; undefined when it is missing or empty. */
  metadata(name: string): string | undefined;
  /** Sends the response; nothing when the caller has disconnected. */
  respond(response: Pick<ErrorResponse, 'status' | 'headers'>, json: string): void;
  /** The listener, at most one, is called when the caller disconnects, perhaps also after the response. */
  onDisconnect(listener: () => void): void;
}

/**
 * `POST /json`: a RateLimitRequest in proto3 JSON in, a RateLimitResponse out, with status 429 when its overall code is
 * OVER_LIMIT. The Content-Type of the request is ignored. A request is cancelled when its caller disconnects. Other methods are
 * rejected.
 */
export function jsonHandler(options: JsonHandlerOptions, memory: BodyMemory): Middleware {
  const { tracer, onRejected } = options;
  return (ctx) => {
    const { req, res } = ctx;
    ctx.respond = false;
    const call = callOf(req, res);
    const trace = beginTrace(call, tracer, req.method);
    if (req.method !== 'POST') return fail(methodNotAllowed(req.method!, 'POST'), { call, trace }, options);
    return receiveBody({ req, res }, memory, {
      complete: (body) => answer(body, { call, trace }, options),
      rejected: (rejection) => {
        rejectBody(rejection, { req, res }, onRejected);
        endTrace(trace, rejection.status);
      },
      // There is no response, and so no status.
      disconnected: () => trace?.ended({}, false),
    });
  };
}

/** Answers a call whose body has been received. */
export function answerJson(body: Buffer, call: JsonCall, options: JsonHandlerOptions): void {
  answer(body, { call, trace: beginTrace(call, options.tracer) }, options);
}

/** A call that Node's server has received. */
function callOf(req: IncomingMessage, res: ServerResponse): JsonCall {
  return {
    socket: req.socket,
    metadata: (name) => req.headers[name]?.toString() || undefined,
    respond: (response, json) => respondJson(res, response, json),
    onDisconnect: (listener) => void res.on('close', listener),
  };
}

/** Answers a request whose body is not read further, and reports why. */
export function rejectBody(
  rejection: Rejection,
  exchange: { readonly req: IncomingMessage; readonly res: ServerResponse },
  onRejected: OnHttpRejected,
): void {
  const { kind, message } = rejection;
  if (kind !== undefined) onRejected(kind, exchange.req.socket, message);
  respondEarly(exchange, rejection);
}

interface Traced {
  readonly call: JsonCall;
  /** Undefined for a request that is not traced. */
  readonly trace: CallTrace | undefined;
}

/** Every error becomes a response, an unexpected one too. */
function answer(body: Buffer, traced: Traced, options: JsonHandlerOptions): void {
  try {
    decide(requestOf(body, traced.call, options), traced, options);
  } catch (error) {
    fail(error, traced, options);
  }
}

function decide(request: RateLimitRequest, traced: Traced, options: JsonHandlerOptions): void {
  const { call, trace } = traced;
  let isDecided = false;
  const pending = options.decide(request, {
    verdict: (verdict) => {
      isDecided = true;
      try {
        const status = verdict.overallCode === Code.OVER_LIMIT ? 429 : 200;
        call.respond({ status }, writeVerdict(verdict));
        endTrace(trace, status);
      } catch (error) {
        fail(error, traced, options);
      }
    },
    error: (error) => {
      isDecided = true;
      fail(error, traced, options);
    },
    trace,
    caller: { peer: call.socket, metadata: (name) => call.metadata(name) },
  });
  if (isDecided) return;
  call.onDisconnect(() => {
    if (isDecided) return;
    pending.cancel('cancelled');
    // There is no response, and so no status.
    trace?.ended({}, false);
  });
}

function fail(error: unknown, { call, trace }: Traced, { log }: JsonHandlerOptions): void {
  const response = responseTo(error, log);
  call.respond(response, errorBody(response));
  endTrace(trace, response.status);
}

function requestOf(body: Buffer, { socket }: JsonCall, { onMalformed }: JsonHandlerOptions): RateLimitRequest {
  try {
    return readRequest(textOf(body));
  } catch (error) {
    if (error instanceof MalformedBody || error instanceof DecisionError) onMalformed(error.message, socket);
    throw error;
  }
}

/** Begins the span of a request, if the tracer chooses it. */
function beginTrace(call: JsonCall, tracer: Tracer | undefined, method = 'POST'): CallTrace | undefined {
  const attributes = { 'http.request.method': method, 'http.route': '/json' };
  return tracer?.begin(`${method} /json`, attributes, { metadata: (name) => call.metadata(name) });
}

/** Ends the span of a request with the status of its response. */
function endTrace(trace: CallTrace | undefined, status: number): void {
  trace?.ended({ 'http.response.status_code': status }, status >= 500);
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
