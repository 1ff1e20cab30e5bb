import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import { DecisionError, type DecisionErrorCode } from '../counting/decision-error';
import type { Log } from '../log/log';
import { ReservationError, type ReservationErrorCode } from '../streams/ports/reservations';
import { asError } from '../text/thrown';
import type { HttpRejection } from './limits';

/** A request and its response, as Node has them; a context of Koa is one. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

/** A response to a request that is not answered. */
export interface ErrorResponse {
  readonly status: number;
  /** Machine-readable: lower-case letters and `_`. */
  readonly code: string;
  /** Human-readable: one sentence. */
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Further members of a problem, which only the operators' API answers. */
  readonly members?: Readonly<Record<string, unknown>>;
}

/** An error that is sent to the caller. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly response: ErrorResponse;

  constructor(response: ErrorResponse, options?: ErrorOptions) {
    super(response.message, options);
    this.response = response;
  }
}

/** A body that is not read further: its request is answered before the rest of it has arrived. */
export class BodyRejected extends Error {
  override readonly name = 'BodyRejected';

  constructor(readonly rejection: Rejection) {
    super(rejection.message);
  }
}

/** The caller has closed its connection: no response can be sent. */
export class CallerDisconnected extends Error {
  override readonly name = 'CallerDisconnected';
}

/**
 * A body that is not a RateLimitRequest in proto3 JSON. The message, for the caller, states where and what is expected.
 */
export class MalformedBody extends Error {
  override readonly name = 'MalformedBody';
}

/** The HTTP status of a request without a verdict. */
const DECISION_STATUS: Readonly<Record<DecisionErrorCode, number>> = {
  invalid_request: 400,
  no_configuration: 503,
  too_much_work: 413,
  store_failed: 503,
  store_timeout: 503,
  store_pool_empty: 503,
  shutting_down: 503,
};

const RESERVATION_STATUS: Readonly<Record<ReservationErrorCode, number>> = {
  unknown_reservation: 404,
  reservation_conflict: 409,
  too_many_reservations: 429,
  not_supported: 501,
};

/** The response to an error; an unexpected one is logged, and answered with status 500 without its message. */
export function responseTo(error: unknown, log: Log): ErrorResponse {
  if (error instanceof HttpError) return error.response;
  if (error instanceof DecisionError) {
    return { status: DECISION_STATUS[error.code], code: error.code, message: error.message };
  }
  if (error instanceof ReservationError) {
    return { status: RESERVATION_STATUS[error.code], code: error.code, message: error.message };
  }
  if (error instanceof MalformedBody) return { status: 400, code: 'invalid_request', message: error.message };
  log.error('internal error in an HTTP request; answered with status 500', { error: asError(error) });
  return { status: 500, code: 'internal_error', message: 'internal error; the log of the service has the details' };
}

/** @param message what is wrong with the request */
export function invalidRequest(message: string, options?: ErrorOptions): HttpError {
  return new HttpError({ status: 400, code: 'invalid_request', message }, options);
}

/** @param allow the methods of the path, as in the Allow header */
export function methodNotAllowed(method: string, allow: string): HttpError {
  const message = `${method} is not allowed here; allowed: ${allow}`;
  return new HttpError({ status: 405, code: 'method_not_allowed', message, headers: { Allow: allow } });
}

/** The body of an error of all listeners, except in the operators' API. */
export function errorBody({ code, message }: ErrorResponse): string {
  return JSON.stringify({ error: { code, message } });
}

/** How an error is written. */
export interface ErrorFormat {
  readonly type: string;
  readonly bodyOf: (response: ErrorResponse) => string;
}

const PLAIN: ErrorFormat = { type: 'application/json', bodyOf: errorBody };

/** Turns every error of the inner middleware into a response. */
export function errorBoundary(log: Log, format = PLAIN): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (error instanceof CallerDisconnected) return;
      if (error instanceof BodyRejected) {
        ctx.respond = false;
        respondEarly(ctx, error.rejection, format);
        return;
      }
      const response = responseTo(error, log);
      ctx.status = response.status;
      ctx.set(response.headers ?? {});
      ctx.set('Content-Type', format.type);
      ctx.body = format.bodyOf(response);
    }
  };
}

/** Sends a response as JSON in one write, without Koa; nothing when the connection is closed. */
export function respondJson(
  res: ServerResponse,
  { status, headers }: Pick<ErrorResponse, 'status' | 'headers'>,
  json: string,
): void {
  if (res.destroyed) return;
  // A list, not an object: with one, Node takes a tenth longer for a response.
  const fields = ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(json))];
  if (headers !== undefined) fields.unshift(...Object.entries(headers).flat());
  res.writeHead(status, fields);
  res.end(json);
}

const LINGER_MS = 2_000;

/** The response to a request that is rejected before its body is read. */
export interface Rejection extends ErrorResponse {
  /** The kind under which it is counted; undefined: it is not. */
  readonly kind?: HttpRejection;
  /** How long the rest of the body is received and discarded, in milliseconds. */
  readonly lingerMs?: number;
}

/**
 * Responds to a request whose body has not been read, and closes its connection. The rest of the body is discarded
 * first, for a limited time: closing a socket with unread data resets the connection, and the response may be lost (RFC
 * 9112, section 9.6).
 */
export function respondEarly({ req, res }: Exchange, rejection: Rejection, { type, bodyOf } = PLAIN): void {
  const { status, headers, lingerMs = LINGER_MS } = rejection;
  const body = bodyOf(rejection);
  res.writeHead(status, {
    ...headers,
    Connection: 'close',
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
  });
  // Not ended yet, although complete for the caller: Node closes the connection when the response ends.
  res.write(body);
  function end() {
    clearTimeout(timeout);
    res.end();
  }
  const timeout = setTimeout(end, lingerMs);
  req.once('end', end).once('close', end).resume();
}
