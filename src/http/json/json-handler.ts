import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { DecisionError } from '../../counting/decision-error';
import type { Purpose } from '../../counting/algorithms/algorithm';
import type { RateLimitRequest } from '../../limiter/request';
import { Code, type DescriptorStatus, type HeaderValue, type Verdict } from '../../limiter/verdict';
import { wholeNumber, wireNumber } from '../../text/plain-number';
import type { Decide } from '../../streams/ports/decide';
import type { Log } from '../../log/log';
import type { CallTrace, Tracer } from '../../streams/ports/tracer';
import { type BodyMemory, receiveBody, textOf } from '../body';
import {
  type Exchange,
  MalformedBody,
  errorBody,
  methodNotAllowed,
  respondEarly,
  respondJson,
  responseTo,
} from '../errors';
import type { Handler } from '../listener';
import { readRequest } from './read-request';

/** Called with what is wrong with a body, with the socket of its caller, and with the path. */
export type OnMalformed = (reason: string, caller: Socket, via: string) => void;

export interface JsonHandlerOptions {
  readonly decide: Decide;
  /** Called for each body that is not a RateLimitRequest, or too large a one, and so is not decided. */
  readonly onMalformed: OnMalformed;
  readonly log: Log;
  /** Chooses the requests to trace. */
  readonly tracer?: Tracer | undefined;
}

/** A path, and what its requests are for. */
interface JsonRoute {
  readonly path: string;
  readonly purpose?: Purpose;
}

const ROUTES: readonly JsonRoute[] = [
  { path: '/json' },
  { path: '/v1/check', purpose: 'ask' },
  { path: '/v1/report', purpose: 'report' },
];

/**
 * `POST` to the paths: a RateLimitRequest in proto3 JSON in, a RateLimitResponse out, with status 429 when its overall
 * code is OVER_LIMIT, except for a report, which has counted. The Content-Type of the request is ignored. A request is
 * cancelled when its connection is lost, and answered when its caller ends its half of it. Other methods are rejected.
 */
export function jsonHandlers(options: JsonHandlerOptions, memory: BodyMemory): ReadonlyMap<string, Handler> {
  return new Map(ROUTES.map((route) => [route.path, handlerOf(route, options, memory)]));
}

function handlerOf(route: JsonRoute, options: JsonHandlerOptions, memory: BodyMemory): Handler {
  return (req, res) => {
    const call: Call = { req, res, route, trace: beginTrace(req, route, options.tracer) };
    if (req.method !== 'POST') {
      fail(methodNotAllowed(req.method!, 'POST'), call, options);
      return;
    }
    receiveBody({ req, res }, memory, {
      complete: (body) => answer(body, call, options),
      rejected: (rejection) => {
        respondEarly(call, rejection);
        endTrace(call, rejection.status);
      },
      // There is no response, and so no status.
      disconnected: () => call.trace?.ended({}, false),
    });
  };
}

/** Decided requests wait for at most so many others, which takes them about 2 ms. */
const MOST_TOGETHER = 64;

/**
 * Responses that are written one after the other once the current turn of the event loop is over. A write to a receiver
 * that sleeps takes longer, because it wakes it up: with the memory store, which decides at once, a request of many
 * callers takes up to 1.7 times the CPU time when each is answered before the next one is read.
 */
class Responses {
  #waiting: (() => void)[] = [];
  readonly #onTurnEnd = (): void => this.#write();

  /** @param send must not throw */
  add(send: () => void): void {
    const count = this.#waiting.push(send);
    if (count === 1) setImmediate(this.#onTurnEnd);
    else if (count === MOST_TOGETHER) this.#write();
  }

  #write(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const send of waiting) send();
  }
}

const responses = new Responses();

interface Call extends Exchange {
  readonly route: JsonRoute;
  /** Undefined for a request that is not traced. */
  readonly trace: CallTrace | undefined;
}

/** Every error becomes a response, an unexpected one too. */
function answer(body: Buffer, call: Call, options: JsonHandlerOptions): void {
  try {
    decide(requestOf(body, call, options), call, options);
  } catch (error) {
    fail(error, call, options);
  }
}

function decide(request: RateLimitRequest, call: Call, options: JsonHandlerOptions): void {
  const { req, res, trace } = call;
  let isDecided = false;
  const pending = options.decide(request, {
    verdict: (verdict) => {
      isDecided = true;
      responses.add(() => respond(verdict, call, options));
    },
    error: (error) => {
      isDecided = true;
      fail(error, call, options);
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

function respond(verdict: Verdict, call: Call, options: JsonHandlerOptions): void {
  try {
    const status = verdict.overallCode === Code.OVER_LIMIT && call.route.purpose !== 'report' ? 429 : 200;
    respondJson(call.res, { status }, writeVerdict(verdict));
    endTrace(call, status);
  } catch (error) {
    fail(error, call, options);
  }
}

function fail(error: unknown, call: Call, { log }: JsonHandlerOptions): void {
  const response = responseTo(error, log);
  respondJson(call.res, response, errorBody(response));
  endTrace(call, response.status);
}

function requestOf(body: Buffer, { req, route }: Call, { onMalformed }: JsonHandlerOptions): RateLimitRequest {
  try {
    return readRequest(textOf(body), route.purpose);
  } catch (error) {
    if (error instanceof MalformedBody || error instanceof DecisionError)
      onMalformed(error.message, req.socket, route.path);
    throw error;
  }
}

/** Returns the value of a header, by its name in lower case; undefined when it is missing or empty. */
function metadataOf({ headers }: IncomingMessage): (name: string) => string | undefined {
  return (name) => headers[name]?.toString() || undefined;
}

/** Begins the span of a request, if the tracer chooses it. */
function beginTrace(req: IncomingMessage, { path }: JsonRoute, tracer: Tracer | undefined): CallTrace | undefined {
  if (tracer === undefined) return undefined;
  const { method = '' } = req;
  const attributes = { 'http.request.method': method, 'http.route': path };
  return tracer.begin(`${method} ${path}`, attributes, { metadata: metadataOf(req) });
}

/** Ends the span of a request with the status of its response. */
function endTrace({ trace }: Call, status: number): void {
  trace?.ended({ 'http.response.status_code': status }, status >= 500);
}

/**
 * Writes a verdict as a RateLimitResponse in proto3 JSON: without default values, enums by name, durations as `"30s"`.
 */
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
    if (requestsPerUnit !== 0) json += `"requestsPerUnit":${wireNumber(requestsPerUnit)},`;
    json += `"unit":"${unit.name}"`;
    if (name !== '') json += `,"name":${JSON.stringify(name)}`;
    json += '}';
  }
  if (limitRemaining !== 0) json += `,"limitRemaining":${wireNumber(limitRemaining)}`;
  if (secondsUntilReset !== undefined) json += `,"durationUntilReset":"${wholeNumber(secondsUntilReset)}s"`;
  return `${json}}`;
}

function writeHeader({ key, value }: HeaderValue): string {
  return JSON.stringify({ ...(key !== '' && { key }), ...(value !== '' && { value }) });
}

function codeName(code: Code): string {
  return code === Code.OVER_LIMIT ? '"OVER_LIMIT"' : '"OK"';
}
