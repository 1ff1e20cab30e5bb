import type { Context, Middleware } from 'koa';
import { DecisionError } from '../../limiter/decision-error';
import type { Log } from '../../streams/ports/log';
import { asError } from '../../text/thrown';
import { CallerDisconnected, DECISION_STATUS, type ErrorResponse, HttpError, MalformedBody } from './errors';

/**
 * Turns every error of the inner middleware into a response: `{"error":{"code":"…","message":"…"}}`. An unexpected error is
 * logged and answered with 500, without its message.
 */
export function errorBoundary(log: Log): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (error instanceof CallerDisconnected) return;
      respond(ctx, responseTo(error, log));
    }
  };
}

export function errorBody(code: string, message: string): string {
  return JSON.stringify({ error: { code, message } });
}

/** The response to an error; an unexpected one is logged. */
export function responseTo(error: unknown, log: Log): ErrorResponse {
  if (error instanceof HttpError) return error.response;
  if (error instanceof DecisionError) {
    return { status: DECISION_STATUS[error.code], code: error.code, message: error.message };
  }
  if (error instanceof MalformedBody) return { status: 400, code: 'invalid_request', message: error.message };
  log.error('internal error in an HTTP request; answered with status 500', { error: asError(error) });
  return { status: 500, code: 'internal_error', message: 'internal error; the log of the service has the details' };
}

function respond(ctx: Context, { status, code, message, headers = {} }: ErrorResponse): void {
  ctx.status = status;
  ctx.set(headers);
  ctx.set('Content-Type', 'application/json');
  ctx.body = errorBody(code, message);
}
