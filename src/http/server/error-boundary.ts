import type { Context, Middleware } from 'koa';
import { DecisionError } from '../../limiter/decision-error';
import type { Log } from '../../streams/ports/log';
import { CallerGone, DECISION_STATUS, HttpError, MalformedBody } from './errors';
import { asError } from '../../text/thrown';

/**
 * Turns every failure below into its answer: `{"error":{"code":"…","message":"…"}}`. A failure that nobody foresaw is
 * logged and answered without its message, which is not the caller's business.
 */
export function errorBoundary(log: Log): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (error instanceof CallerGone) return;
      answer(ctx, asRefusal(error, log));
    }
  };
}

export function errorBody(code: string, message: string): string {
  return JSON.stringify({ error: { code, message } });
}

function asRefusal(error: unknown, log: Log): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof DecisionError) return new HttpError(DECISION_STATUS[error.code], error.code, error.message);
  if (error instanceof MalformedBody) return new HttpError(400, 'invalid_request', error.message);
  log.error('an HTTP request failed', { error: asError(error) });
  return new HttpError(500, 'internal_error', 'the service failed to answer; its log says why');
}

function answer(ctx: Context, { status, code, message, headers }: HttpError): void {
  ctx.status = status;
  ctx.set(headers);
  ctx.set('Content-Type', 'application/json');
  ctx.body = errorBody(code, message);
}
